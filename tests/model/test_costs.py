"""What a lowering costs, against what the controllers of Kubernetes may do with it: an upper bound (H56).

Each holder is drawn with doomed, dead, unready and costed pods, in a roll, unobserved, or with a status that
is behind; then it is lowered, and its controllers act in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import pod, replica_set, twin_of
from holding import kept_by, most_lost, share
from model.cluster import Cluster, Deployment, Pod
from model.controllers import sync_deployment, sync_replica_set
from model.sight import observe
from splitter.core.holders.holder import serves
from splitter.core.holders.shares import Share, break_
from splitter.core.model import ReplicaSetView, TwinView
from splitter.core.replica import NodeStatus, Pool, Replica

NODES = {"sound": NodeStatus.SOUND, "doomed": NodeStatus.DOOMED, "silent": NodeStatus.LOST}


@dataclass(frozen=True)
class Made:
    """A pod of a drawn Deployment: the kind of its node, and whether a ReplicaSet takes it for ready."""

    node: str
    ready: bool
    cost: str | None


PODS = st.builds(
    Made, st.sampled_from(["sound", "sound", *NODES]), st.booleans(), st.sampled_from([None, None, "-1000"])
)


@dataclass(frozen=True)
class Drawn:
    """A Deployment twin: its count and strategy, and of each of its ReplicaSets the spec and the pods."""

    replicas: int
    surge: int
    unavailable: int
    sets: tuple[tuple[int, tuple[Made, ...]], ...]
    written: str  # what its controller has not seen: nothing, another count, another template
    behind: int  # so many available replicas no status shows yet


@st.composite
def deployments(draw: st.DrawFn) -> Drawn:
    """Draw one that is at rest, rolls or is unobserved; a roll holds no more than its surge allows."""
    surge, unavailable = draw(st.sampled_from([(1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]))
    first = tuple(draw(st.lists(PODS, min_size=1, max_size=5)))
    sets = [(len(first), first)]
    if draw(st.booleans()):
        second = tuple(draw(st.lists(PODS, min_size=1, max_size=3)))
        sets.append((len(second), second))
    held = sum(spec for spec, _ in sets)
    replicas = held if len(sets) == 1 else max(1, held - draw(st.integers(0, surge)))
    written = draw(st.sampled_from(["", "", "count", "template"]))
    return Drawn(replicas, surge, unavailable, tuple(sets), written, draw(st.integers(0, 2)))


def built(drawn: Drawn) -> tuple[Cluster, Deployment]:
    """Return a spot twin as it was drawn, and its world."""
    cluster = Cluster(0, 1, 0)
    cluster.stalls_as_kubernetes = False
    for name in NODES:
        cluster.add_node(name, spot=True, slots=100)
    cluster.nodes["doomed"].doomed = True
    cluster.nodes["silent"].ready = False
    cluster.now = 100
    twin = Deployment(
        "web-spot", "uid-spot", Pool.SPOT, f"v{len(drawn.sets)}", drawn.replicas, drawn.surge, 0, 1
    )
    twin.max_unavailable, twin.observed_generation = drawn.unavailable, twin.generation
    cluster.twins[Pool.SPOT] = twin
    for number, (spec, pods) in enumerate(drawn.sets, 1):
        cluster.now += 1
        rs = cluster.make_replica_set(twin, f"v{number}", spec)
        for nth, made in enumerate(pods):
            one = Pod(f"v{number}-{nth}", f"v{number}-{nth}", rs.uid, Pool.SPOT, f"v{number}", nth, made.node)
            one.hash, one.cost, one.cost_before = rs.hashes[0], made.cost, "" if made.cost else None
            one.ready_since = nth if made.ready else None
            cluster.pods[one.name] = one
        ready = sum(made.ready for made in pods)
        rs.status_replicas, rs.status_available = len(pods), max(0, ready - drawn.behind)
    twin.status_replicas = sum(spec for spec, _ in drawn.sets)
    twin.status_available = sum(rs.status_available for rs in cluster.owned_by(twin))
    if drawn.written == "count":
        twin.replicas += 1
    if drawn.written == "template":
        twin.template = "v9"
    if drawn.written:
        twin.generation += 1
    return cluster, twin


def seen(cluster: Cluster) -> TwinView:
    """Return what splitter sees of it."""
    view = observe(cluster).spot
    assert view is not None
    return view


def left(cluster: Cluster, twin: Deployment, order: Sequence[int]) -> tuple[int, int]:
    """Return how few serve, and are available, while its controllers act; no pod becomes ready.

    `order`: which of them acts next; afterwards all do what is left.
    """
    served, stayed = len(cluster.pods), len(cluster.pods)
    idle = 0
    acting = iter(order)
    while idle < 2:
        owned = cluster.owned_by(twin)
        who = next(acting, None)
        chosen = [None, *owned] if who is None else [[None, *owned][who % (len(owned) + 1)]]
        changed = False
        for rs in chosen:
            changed = (
                sync_deployment(cluster, twin) if rs is None else sync_replica_set(cluster, rs)
            ) or changed
        idle = 0 if changed or who is not None else idle + 1
        served = min(served, sum(map(cluster.serves, cluster.pods.values())))
        stayed = min(stayed, sum(map(cluster.available, cluster.pods.values())))
    return served, stayed


ORDERS = st.lists(st.integers(0, 3), max_size=8)


class TestDeployments:
    """A twin that is a Deployment."""

    @settings(max_examples=600)
    @given(deployments(), st.integers(0, 6), ORDERS)
    def test_no_more_is_lost_than_was_counted(self, drawn: Drawn, wanted: int, order: list[int]) -> None:
        """Whatever its controllers do: of what serves, and of what is available."""
        cluster, twin = built(drawn)
        view, wanted = seen(cluster), min(wanted, twin.replicas)
        before = sum(map(cluster.serves, cluster.pods.values()))
        counted, kept = most_lost(view, wanted), kept_by(view, wanted)
        cluster.change_spec(twin, replicas=wanted)
        served, stayed = left(cluster, twin, order)
        assert before - served <= counted
        assert stayed >= kept

    @settings(max_examples=600)
    @given(deployments(), st.integers(1, 12), ORDERS)
    def test_below_the_floor_nothing_goes_that_serves(
        self, drawn: Drawn, missing: int, order: list[int]
    ) -> None:
        """Not by our write: without it its roll may take what its strategy allows."""
        cluster, twin = built(drawn)
        holder = share(seen(cluster), 0, 0, on_demand=False)
        given_ = holder.shrink(holder.available + missing)
        if not given_:
            return
        before = sum(map(cluster.serves, cluster.pods.values()))
        cluster.change_spec(twin, replicas=twin.replicas - given_)
        assert left(cluster, twin, order)[0] == before

    def test_doomed_replicas_in_a_roll_are_not_free(self) -> None:
        """All serving pods are on cordoned nodes, and none counts as available: none is given away."""
        old = tuple(Made("doomed", ready=True, cost="-1000") for _ in range(4))
        drawn = Drawn(4, 1, 0, ((4, old), (1, (Made("sound", ready=False, cost=None),))), "", 0)
        holder = share(seen(built(drawn)[0]), 0, 0, on_demand=False)
        assert (holder.available, holder.cost(4)) == (0, 4)
        assert break_([holder], floor=4) == {}
        # Beside four of the source's own that are available they may go.
        assert break_([holder], floor=4, others_available=4) == {"web-spot": 0}


@st.composite
def replica_sets(draw: st.DrawFn) -> ReplicaSetView:
    """Draw a parked ReplicaSet, whose status may be behind."""
    pods = [
        pod(
            f"pod-{nth}",
            NODES[made.node],
            ready=made.ready,
            deletion_cost=made.cost,
            cost_before="" if made.cost else None,
        )
        for nth, made in enumerate(draw(st.lists(PODS, max_size=6)))
    ]
    parked = replica_set("web-1", len(pods) + draw(st.integers(0, 2)), pods)
    return replace(parked, available_replicas=draw(st.integers(0, parked.available_replicas)))


@st.composite
def members(draw: st.DrawFn) -> ReplicaSetView | TwinView:
    """Draw a StatefulSet, the source or a twin, that may be in a roll."""
    first, drawn = draw(st.sampled_from([0, 1000])), draw(st.lists(PODS, max_size=6))
    pods = [
        pod(f"db-{first + nth}", NODES[made.node], ready=made.ready, ordinal=first + nth)
        for nth, made in enumerate(drawn)
        if made.ready or draw(st.booleans())
    ]
    rolls, spec = draw(st.booleans()), len(drawn) + draw(st.integers(0, 1))
    of = replica_set("db-1", spec, pods)
    if first == 0:
        return replace(of, first_ordinal=0, rolls=rolls)
    twin = twin_of(Pool.SPOT, [of], updated=spec, first_ordinal=first, observed=not rolls)
    return replace(twin, max_unavailable=1)


def of_view(view: ReplicaSetView | TwinView) -> Share:
    """Return it as a holder that is to give all."""
    if isinstance(view, TwinView):
        return share(view, 0, 0, on_demand=False)
    return share(view, 0, 0)


def worst(view: ReplicaSetView | TwinView, replicas: int) -> Sequence[Replica]:
    """Return what is left of the pods at so many, as badly as its controller may choose."""
    if view.first_ordinal is not None:
        last = view.first_ordinal + replicas
        stay = [one for one in view.pods if one.ordinal is not None and one.ordinal < last]
        rolls = view.rolls if isinstance(view, ReplicaSetView) else not view.observed
        # The roll takes one, if all look ready: its maxUnavailable is 1.
        full = replicas == sum(one.ready_since is not None for one in stay)
        taken = next((one for one in reversed(stay) if serves(one)), None) if rolls and full else None
        return [one for one in stay if one is not taken]
    ready = [one for one in view.pods if one.ready_since is not None]
    ready.sort(key=lambda one: (int(one.deletion_cost or 0), not serves(one)))
    return ready[max(0, len(ready) - replicas) :]


class TestOthers:
    """A parked ReplicaSet, and a StatefulSet as the source or as a twin."""

    @settings(max_examples=400)
    @given(st.one_of(replica_sets(), members()), st.integers(0, 8))
    def test_no_more_is_lost_than_was_counted(self, view: ReplicaSetView | TwinView, wanted: int) -> None:
        """Whatever its controller chooses."""
        wanted = min(wanted, view.spec_replicas)
        after = sum(map(serves, worst(view, wanted)))
        assert sum(map(serves, view.pods)) - after <= most_lost(view, wanted)

    @settings(max_examples=400)
    @given(st.one_of(replica_sets(), members()), st.integers(1, 12))
    def test_below_the_floor_nothing_goes_that_serves(
        self, view: ReplicaSetView | TwinView, missing: int
    ) -> None:
        """No pod among those that are given serves."""
        holder = of_view(view)
        given_ = holder.shrink(holder.available + missing)
        if given_:
            assert sum(map(serves, worst(view, holder.spec - given_))) == sum(map(serves, view.pods))

    @settings(max_examples=400)
    @given(st.one_of(replica_sets(), members()))
    def test_giving_more_costs_no_less(self, view: ReplicaSetView | TwinView) -> None:
        """And keeps no more."""
        holder = of_view(view)
        costs = [holder.cost(given_) for given_ in range(holder.spec + 1)]
        kept = [holder.kept(given_) for given_ in range(holder.spec + 1)]
        assert costs == sorted(costs)
        assert kept == sorted(kept, reverse=True)
