"""Counts change in the middle of a roll: a surge keeps its place in N + S, and what serves stays.

Every roll of up to four replicas is played; `make explore` plays those of up to six.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pytest

from builders import NOW, pods, rendered, source, twin
from splitter.core.floor import kept_by_twin
from splitter.core.labels_annotations.policy import RolloutOrder
from splitter.core.model import Pool
from splitter.core.twins.rollout import Circumstances, Roll, next_roll
from stories.cluster import Cluster, Deployment, Pod
from stories.controllers import sync_deployment, sync_replica_set
from stories.counting import Story
from stories.sight import observe

BROKEN = "v2-broken"


def stuck(order: str, percent: str) -> Story:
    """Return a story of a workload whose rollout stands still in the first twin, beside one surge pod."""
    story = Story("A rollout stands still", replicas=6, surge=1, unavailable=0)
    story.label(on_demand_base="1", spot_percent=percent, rollout_order=order)
    story.wait(1200)
    story.set_image(BROKEN)
    story.wait(300)
    assert sum(pod.template == BROKEN or "broken" in pod.template for pod in story.cluster.pods.values()) == 1
    return story


class TestAnotherDivision:
    """The policy asks for another division while a rollout stands still."""

    @pytest.mark.parametrize(("order", "percent"), [("spot-first", "0"), ("on-demand-first", "100")])
    def test_leaves_room_for_the_surge(self, order: str, percent: str) -> None:
        """The surge pod is there, ready or not: nothing else takes its place (promise 2, at every step)."""
        story = stuck(order, "50")
        story.annotate(spot_percent=percent)
        story.wait(600)
        assert story.promises.most_placed == 7
        assert story.promises.least_available == 6

    @pytest.mark.parametrize("order", ["spot-first", "on-demand-first"])
    def test_goes_on_afterwards(self, order: str) -> None:
        """A good image ends the rollout, and the division comes."""
        story = stuck(order, "50")
        story.annotate(spot_percent="0")
        story.set_image("v3")
        story.wait(3600)
        assert [twin.replicas for twin in story.cluster.twins.values()] == [6, 0]
        assert story.promises.most_placed == 7


@pytest.mark.parametrize(
    ("replicas", "surge", "base"), [(6, 1, 1), (6, 2, 1), (6, 3, 1), (6, 9, 1), (6, 12, 2), (8, 12, 3)]
)
def test_spot_comes_back_while_a_rollout_stands_still(replicas: int, surge: int, base: int) -> None:
    """On-demand is lowered as far as is safe in the middle of a roll, again and again."""
    story = Story("An image that cannot be pulled, and an outage", replicas, surge, unavailable=0)
    story.label(on_demand_base=str(base), rollout_order="on-demand-first")
    story.wait(1200)
    story.set_image(BROKEN)
    story.wait(300)
    story.notice("spot-a", "spot-b", "spot-c")
    story.wait(60)
    story.vanish("spot-a", "spot-b", "spot-c")
    story.wait(600)
    assert story.available() == story.cluster.twins[Pool.ON_DEMAND].replicas == replicas
    story.promises.least_available = replicas
    story.add_spot("spot-d", "spot-e", "spot-f")
    story.wait(7200)
    assert [twin.replicas for twin in story.cluster.twins.values()] == [base, replicas - base]
    assert story.promises.least_available == replicas


@pytest.mark.parametrize("unavailable", [1, 2])
def test_a_notice_that_lasts_does_not_take_a_roll_back_again_and_again(unavailable: int) -> None:
    """Without a surge a roll begins with fewer than N; that is no reason to put the last template back."""
    story = Story("A roll beside nodes that somebody has cordoned", surge=0, unavailable=unavailable)
    story.label(on_demand_base="2")
    story.wait(600)
    story.notice("spot-a", "spot-b", "spot-c")
    story.wait(30)
    before = len(story.lines)
    story.set_image("v2")
    story.wait(900)
    assert not [line for line in story.lines[before:] if "put the template" in line]
    assert story.cluster.twins[Pool.ON_DEMAND].template == "v2|on-demand"
    assert story.available() == 10


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
@pytest.mark.parametrize("base", ["2", "6"])
@pytest.mark.parametrize("full", ["nodes", "quota"])
def test_a_surge_without_room_does_not_stop_a_roll(full: str, base: str, order: str) -> None:
    """The source's own maxUnavailable lets it go on, in the twin that is rolled first, too (H64)."""
    story = Story("A roll without room", surge=3, unavailable=2)
    story.label(on_demand_base=base, rollout_order=order)
    story.wait(900)
    if full == "quota":
        story.limit_pods(10)
    for node in story.cluster.nodes.values():
        if full == "nodes":
            node.slots = sum(pod.node == node.name for pod in story.cluster.pods.values())
    story.set_image("v2")
    for _ in range(3):
        story.wait(300)
        story.happens("it is looked at again")
    assert {pod.template.partition("|")[0] for pod in story.cluster.pods.values()} == {"v2"}
    assert story.available() == 10
    assert story.promises.least_available >= 8


@pytest.mark.parametrize(("surge", "unavailable"), [(3, 2), (0, 2)])
def test_a_probe_that_a_quota_refuses_stops_no_roll(surge: int, unavailable: int) -> None:
    """Spot is gone, on-demand has all that the quota allows: a new image comes all the same."""
    story = Story("A roll while spot is away and the quota full", surge=surge, unavailable=unavailable)
    story.label(on_demand_base="2")
    story.wait(900)
    story.limit_pods(10)
    story.vanish("spot-a", "spot-b", "spot-c")
    story.wait(300)
    story.set_image("v2")
    for _ in range(3):
        story.wait(300)
        story.happens("it is looked at again")
    assert {pod.template for pod in story.cluster.pods.values() if pod.node is not None} == {"v2|on-demand"}
    assert story.available() == 10


def partly_short(
    surge: int, unavailable: int, order: str, *, replicas: int = 10, on_demand: int = 40
) -> Story:
    """Return a workload of which spot has room for all but two, for good; on-demand covers what it can."""
    story = Story("Spot is partly short, then an image change", replicas, surge, unavailable)
    story.label(on_demand_base="0", rollout_order=order)
    story.wait(900)
    nodes = story.cluster.nodes
    for name in ("spot-b", "spot-c", "od-2"):
        story.cluster.vanish(name)
    nodes["spot-a"].slots, nodes["od-1"].slots = replicas - 2, on_demand
    story.happens("spot has room for all but two")
    story.wait(1800)
    story.promises.least_available = replicas
    return story


def look(story: Story, seconds: int) -> None:
    """Let time pass, and have it looked at again, as the resync does."""
    for _ in range(seconds // 300):
        story.wait(300)
        story.happens("it is looked at again")


def old(story: Story) -> int:
    """Count the pods of the old image that serve."""
    return sum("v1" in pod.template and pod.ready_since is not None for pod in story.cluster.pods.values())


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
@pytest.mark.parametrize(("surge", "unavailable"), [(3, 2), (3, 1), (1, 1), (0, 1), (0, 2)])
def test_a_roll_ends_while_spot_is_partly_short(surge: int, unavailable: int, order: str) -> None:
    """Kubernetes counts those that are missing already among what may be unavailable (H64)."""
    story = partly_short(surge, unavailable, order)
    story.set_image("v2")
    look(story, 1800)
    assert old(story) == 0
    assert story.promises.least_available >= 10 - unavailable


@pytest.mark.parametrize("quota", [10, 11, 12])
def test_a_roll_ends_while_spot_is_partly_short_and_the_quota_full(quota: int) -> None:
    """Neither the Pending replicas nor those that are refused keep the old image."""
    story = partly_short(3, 2, "on-demand-first")
    story.limit_pods(quota)
    story.set_image("v2")
    look(story, 3600)
    assert old(story) == 0
    assert story.promises.least_available >= 8


@pytest.mark.parametrize("order", ["on-demand-first", "spot-first"])
def test_a_roll_ends_while_both_pools_are_short(order: str) -> None:
    """It begins with fewer than N, since those that are missing may be so for ever."""
    story = partly_short(3, 2, order, on_demand=1)
    assert story.available() == 9
    story.set_image("v2")
    look(story, 3600)
    assert old(story) == 0
    assert story.promises.least_available >= 8


def test_a_roll_whose_shortage_grows() -> None:
    """What is missing is counted again: the first number would keep the roll where it is."""
    story = partly_short(3, 2, "on-demand-first")
    story.set_image("v2")
    story.wait(200)
    story.cluster.nodes["spot-a"].slots = 7
    pod = next(pod for pod in story.cluster.pods.values() if pod.node == "spot-a")
    story.cluster.terminate(pod)
    story.happens("spot has room for one less")
    look(story, 3600)
    assert old(story) == 0


@pytest.mark.parametrize(("replicas", "surge", "unavailable"), [(10, 1, 0), (3, 1, 0), (10, 3, 2)])
def test_a_roll_ends_or_says_what_it_waits_for(replicas: int, surge: int, unavailable: int) -> None:
    """Where the source lets no more be unavailable, it says so, and goes on by itself."""
    on_demand = 40 if unavailable == 0 else 0
    story = partly_short(surge, unavailable, "spot-first", replicas=replicas, on_demand=on_demand)
    story.set_image("v2")
    look(story, 1800)
    assert old(story)
    assert story.cluster.split is not None
    message = str(story.cluster.split.status["message"])
    assert story.reason() == "RolloutHeld"
    assert "surge replicas found no node for 180 s, and none of the" in message
    assert f"maxUnavailable {unavailable} keeps {replicas - unavailable}." in message
    story.add_spot("spot-d")
    look(story, 1800)
    assert old(story) == 0
    assert story.promises.least_available >= replicas - unavailable


@dataclass(frozen=True)
class Held:
    """A ReplicaSet in a roll: replicas asked for, those of them that serve, and more that serve still."""

    spec: int
    ready: int
    cut: int = 0


def in_a_roll(count: int, surge: int, old: Held, new: Held) -> tuple[Cluster, Deployment]:
    """Return a spot twin in mid-roll, with two ReplicaSets."""
    cluster = Cluster(0, surge, 0)
    cluster.add_node("spot-a", spot=True, slots=100)
    twin = Deployment("web-spot", "uid-spot", Pool.SPOT, "v2", count, surge, 0, 1, observed_generation=1)
    cluster.twins[Pool.SPOT] = twin
    for template, held in (("v1", old), ("v2", new)):
        cluster.now += 1
        rs = cluster.make_replica_set(twin, template, held.spec)
        rs.status_replicas, rs.status_available = held.spec, held.ready
        for number in range(held.spec + held.cut):
            pod = Pod(
                f"{template}-{number}", f"{template}-{number}", rs.uid, Pool.SPOT, template, cluster.now
            )
            pod.node, pod.hash = "spot-a", rs.hashes[0]
            pod.ready_since = cluster.now if number < held.ready + held.cut else None
            cluster.pods[pod.name] = pod
    twin.status_replicas, twin.status_available = old.spec + new.spec, old.ready + new.ready
    return cluster, twin


def fewest(cluster: Cluster, twin: Deployment, shown: str) -> int:
    """Return how few serve while its controllers do what is written, and no pod becomes ready.

    `shown`: the templates whose ReplicaSets' statuses come at once; the others stay as they were.
    """
    for rs in cluster.owned_by(twin):  # a status of before what was cut went
        rs.status_available = sum(pod.ready_since is not None for pod in cluster.pods_of(rs))
    least, changed = len(cluster.pods), True
    while changed:
        changed = sync_deployment(cluster, twin)
        for rs in cluster.owned_by(twin):
            before = (rs.status_replicas, rs.status_available)
            moved = sync_replica_set(cluster, rs)
            if rs.template in shown:
                changed = changed or moved
            else:
                rs.status_replicas, rs.status_available = before
        least = min(least, sum(map(cluster.available, cluster.pods.values())))
    return least


def as_shown(count: int, surge: int, old: Held, new: Held) -> tuple[Cluster, Deployment]:
    """Return it while its statuses show what was cut."""
    cluster, twin = in_a_roll(count, surge, old, new)
    for rs, held in zip(cluster.owned_by(twin), (old, new), strict=True):
        rs.status_replicas, rs.status_available = held.spec + held.cut, held.ready + held.cut
    return cluster, twin


SHOWN = ("", "v1", "v2", "v1 v2")  # whose statuses come at once
MOST = 6 if os.environ.get("SPLITTER_EXPLORE") == "full" else 4  # replicas
ONE_CUT = ((0, 0), (1, 0), (0, 1))
TWO_CUT = (*ONE_CUT, (2, 0), (1, 1))


def rolls(surge: int, cuts: Sequence[tuple[int, int]] = TWO_CUT) -> Iterator[tuple[int, Held, Held]]:
    """Yield rolls of up to `MOST` replicas; `cuts`: how many old and new ones serve still that were cut."""
    for count, old, new in product(range(1, MOST + 1), repeat=3):
        if not count <= old + new <= count + surge or new > count:
            continue
        for ready, newest in product(range(old + 1), range(new + 1)):
            for cut, cut_newest in cuts:
                if (not cut or ready == old) and (not cut_newest or newest == new):
                    yield count, Held(old, ready, cut), Held(new, newest, cut_newest)


@pytest.mark.slow
@pytest.mark.parametrize("surge", [1, 2, 3])
def test_a_lowering_in_mid_roll_keeps_what_was_counted(surge: int) -> None:
    """Its controller goes by statuses, which may still show what it has just taken (ADR 90)."""
    broken, counts = [], 0
    for was, old, new in rolls(surge, ONE_CUT):
        view = observe(in_a_roll(was, surge, old, new)[0]).spot
        assert view is not None
        for wanted in range(was + 1):
            counted = kept_by_twin(view, wanted)
            for shown in SHOWN if counted else ():
                cluster, twin = in_a_roll(was, surge, old, new)
                twin.replicas = wanted
                left = fewest(cluster, twin, shown)
                counts += 1
                if left < counted:
                    broken.append(f"{was} -> {wanted}, {old}, {new}, {shown}: {counted} counted, {left} left")
    assert broken == []
    assert counts


@pytest.mark.slow
@pytest.mark.parametrize("surge", [1, 2, 3])
@pytest.mark.parametrize("template", ["v1", "v3"])
def test_a_template_in_mid_roll_comes_when_nothing_is_taken(template: str, surge: int) -> None:
    """Put back or new: statuses may still show what its controller has just taken (ADR 91)."""
    broken, written, would_break = [], 0, set[str]()
    other, made = twin(Pool.ON_DEMAND, pods(2), template=template), rendered(template)
    where = Circumstances(
        source(8), RolloutOrder.ON_DEMAND_FIRST, available=8, headroom=surge, now=NOW, grace_s=180, needed=8
    )
    for count, old, new in rolls(surge):
        view = observe(as_shown(count, surge, old, new)[0]).spot
        assert view is not None
        due = isinstance(next_roll(other, view, made, where), Roll)
        written += due
        for shown in SHOWN if due else set(SHOWN) - would_break:
            cluster, spot = as_shown(count, surge, old, new)
            spot.template = template
            if fewest(cluster, spot, shown) < min(count, old.ready + new.ready):
                would_break.add(shown)
                broken += [f"{count} replicas, {old}, {new}, {shown}"] if due else []
    assert broken == []
    assert written
    assert would_break >= {"", "v1", "v2"}
