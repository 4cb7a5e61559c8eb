"""What is counted in the middle of a roll, against what its controller may do with it.

Every roll of up to four replicas is played; `make explore` plays those of up to six.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pytest

from builders import NOW, pods, rendered, source, twin
from holding import kept_by
from model.cluster import Cluster, Deployment, Pod
from model.controllers import sync_deployment, sync_replica_set
from model.sight import observe
from splitter.core.clock import Waits
from splitter.core.labels_annotations.policy import RolloutOrder
from splitter.core.replica import Pool
from splitter.core.twins.rollout import Circumstances, Roll, next_roll


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
            counted = kept_by(view, wanted)
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
        source(8), RolloutOrder.ON_DEMAND_FIRST, 8, headroom=surge, waits=Waits(NOW), grace_s=180, needed=8
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
