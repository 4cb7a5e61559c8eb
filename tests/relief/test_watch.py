"""Real use is looked at while somebody asks, and at no other time."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from builders import KEY, NOW, observation, pod, replica_set, source, split, twin
from splitter.core.actions import CreatePlaceholder
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.handover import Step
from splitter.core.hot_nodes import HotNodes
from splitter.core.labels_annotations.policy import Policy, SpotAffinity
from splitter.core.model import Attachment, Note, Observation, RelatedObjects
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.facts import CapacityClass, Health, NodeState, Taint
from splitter.core.nodes.fit import MatchExpression, NodeHeadroom, PodRequest, SpreadConstraint
from splitter.core.placeable import Reach
from splitter.core.plan import Plan, PolicyInForce, Rules
from splitter.core.reasons import Reason, State
from splitter.core.relief.model import Amounts, Sample, Tuning
from splitter.core.replica import Pool
from splitter.core.split_status import RebalanceState, ReliefMove, ReliefStatus, Restart
from splitter.core.stateful import StatefulView
from splitter.kube import parse
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from splitter.kube.real_use import RealUse
from splitter.kube.records import PodRecord
from splitter.relief.decide import Relief
from splitter.relief.loads import Cluster as CoreCluster
from splitter.relief.watch import HotNodesWatch, _left, watch_of
from splitter.settings import Settings

GIB = 1024**3
ALLOCATABLE = {"cpu": 8000, "memory": 32 * GIB, "pods": 110}
OF_WEB = MatchExpression("app", "In", ("web",))
CLOSED = Taint("dedicated", "others", "NoSchedule")
MOVE = ReliefMove(
    at=NOW,
    pool="spot",
    pod="web-spot-0",
    pod_uid="uid-web-spot-0",
    node="hot-1",
    node_uid="uid-hot-1",
    replicas=8,
    newer_than=NOW,
    raised=True,
)


@dataclass
class Twin:
    """What the cache knows of a twin."""

    request: PodRequest
    spreads: tuple[SpreadConstraint, ...]
    pool: Pool = Pool.SPOT


class Twins:
    """The index of twins."""

    def __init__(self, spreads: tuple[SpreadConstraint, ...] = ()) -> None:
        self.spreads = spreads
        self.request = PodRequest({"cpu": 100, "memory": GIB})

    def find(self, index: str, key: Key) -> tuple[Twin, ...]:
        """Return the one."""
        assert index == "source"
        return (Twin(self.request, self.spreads),) if key == KEY else ()


class Pods:
    """What the cache knows of pods, so far as it matters: those that wait for a node."""

    def __init__(self) -> None:
        self.waiting: list[object] = []

    def values(self) -> list[object]:
        """Return them."""
        return self.waiting


class Quotas:
    """A reader of ResourceQuotas: these, or none may be read."""

    def __init__(self) -> None:
        self.items: list[dict[str, object]] | None = []

    async def get(self, path: ResourcePath, **query: str) -> dict[str, object]:
        """Answer."""
        assert (str(path), query) == ("/api/v1/namespaces/shop/resourcequotas", {"limit": "101"})
        if self.items is None:
            raise ApiError(403, "Forbidden", "no")
        return {"items": self.items}


class Cache:
    """Two spot nodes: one is full of use, the other empty."""

    def __init__(self) -> None:
        self.doomed = ""
        self.twins = Twins()
        self.labels: dict[str, dict[str, str]] = {}
        self.taints: dict[str, tuple[Taint, ...]] = {}
        self.pods = Pods()
        self.nodes = {"hot-1": CapacityClass.SPOT, "cool-1": CapacityClass.SPOT}

    def headroom(self, now: object) -> list[NodeHeadroom]:
        """Return both."""
        del now
        return [
            NodeHeadroom(
                NodeState(
                    name,
                    f"uid-{name}",
                    capacity,
                    Health.DOOMED if name == self.doomed else Health.HEALTHY,
                    allocatable=ALLOCATABLE,
                    labels=self.labels.get(name, {}),
                    taints=self.taints.get(name, ()),
                ),
                {"cpu": 800, "memory": 8 * GIB, "pods": 8},
            )
            for name, capacity in self.nodes.items()
        ]

    def carries_split(self, name: str) -> bool:
        """Say that every node does."""
        return bool(name)


def seen(
    relief: str | None = "cpu=85", affinity: SpotAffinity = SpotAffinity.REQUIRED, **fields: object
) -> tuple[Observation, PolicyInForce, Plan]:
    """Return what a reconcile of a Steady workload tells, whose eight replicas stand on the hot node."""
    pods = [pod(f"web-spot-{n}", node="hot-1", node_uid="uid-hot-1", on_spot=True) for n in range(8)]
    observed = observation(source(8), spot=twin(Pool.SPOT, pods), on_demand=twin(Pool.ON_DEMAND))
    in_force = PolicyInForce(Policy(relief=relief, spot_affinity=affinity), (), {}, valid=True)
    planned = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "as wanted"))
    return replace(observed, **fields), in_force, planned  # type: ignore[arg-type]


async def nothing_is_read() -> RealUse:
    """Never be asked."""
    raise AssertionError


class Watch:
    """A watch of which each look is a minute after the last one."""

    def __init__(self, reservations: ReservationRules | None = None) -> None:
        self.enqueued: list[Key] = []
        self.cache = Cache()
        self.quotas = Quotas()
        self.watch = HotNodesWatch(
            self.quotas,  # type: ignore[arg-type] # of real use a test says what was read
            self.cache,  # type: ignore[arg-type]
            self.enqueued.append,
            measure=nothing_is_read,
            tuning=Tuning(),
            interval_s=60,
            reservations=reservations,
        )
        self.now = NOW

    def look(self, times: int = 1, missing: str = "", full: float = 7680) -> HotNodes:
        """Look at 96 % (or `full`) on one node and 10 % on the other; return what the workload is told."""
        for _ in range(times):
            self.now += timedelta(minutes=1)
            samples = {
                name: Sample(self.now, Amounts(cpu, GIB)) for name, cpu in (("hot-1", full), ("cool-1", 800))
            }
            pods = {("shop", f"web-spot-{n}"): Sample(self.now, Amounts(900, GIB / 16)) for n in range(8)}
            used = RealUse(missing=missing) if missing else RealUse(samples, pods)
            asyncio.run(self.watch._look(used, self.now))  # noqa: SLF001 - what `run` does with what was read
        return self.watch.view(KEY)


class TestWatch:
    @pytest.mark.parametrize(
        "forged",
        [
            {"at": NOW - timedelta(days=9)},
            {"at": NOW - timedelta(days=9), "ended": NOW + timedelta(days=4000)},
        ],
    )
    def test_a_move_that_never_ends_keeps_no_node_back(self, forged: dict[str, datetime]) -> None:
        """Left by a dry run, or written by whoever may write a status: nobody else waits for it."""
        one = Watch()
        move = replace(MOVE, **forged)  # type: ignore[arg-type]
        observed, in_force, planned = seen(split=split(relief=ReliefStatus(moves=(move,))))
        one.watch.saw(observed, in_force, planned)
        assert one.look(5).leaves is not None

    def test_why_nothing_leaves_is_said_of_few(self) -> None:
        """A Split has room for a sentence, not for one of each of a hundred nodes."""
        names = [f"node-{number}" for number in range(100)]
        answer = Relief((), {}, left=tuple(f"{name}: no room" for name in names))
        assert _left(answer, names, CoreCluster(NOW)).count("no room") == 3

    def test_nothing_leaves_while_a_node_goes(self) -> None:
        """What stood there comes first; which nodes are hot is known all the same."""
        one = Watch()
        one.watch.saw(*seen())
        one.cache.doomed = "cool-1"
        view = one.look(4)
        assert view.leaves is None
        assert view.paused == ""
        assert view.hot == ("hot-1",)
        assert view.left.startswith("cool-1 is going or gone")

    @pytest.mark.parametrize(
        ("hours", "taken_back", "leaves"), [(2, True, False), (2, False, True), (25, True, True)]
    )
    def test_what_was_in_vain_is_known_from_the_split(
        self, hours: int, *, taken_back: bool, leaves: bool
    ) -> None:
        """Also after a restart: for a day, of a move that was taken back."""
        before = Watch()
        before.watch.saw(*seen())
        wanted = before.look(3).leaves
        assert wanted is not None
        at = NOW - timedelta(hours=hours)
        undone = replace(MOVE, at=at, ended=at, taken_back=taken_back, stand=wanted.stand)
        one = Watch()
        one.watch.saw(*seen(split=split(relief=ReliefStatus(moves=(undone,)))))
        view = one.look(4)
        assert (view.leaves is not None) is leaves
        assert ("a move has not helped" in view.left) is not leaves

    def test_moves_of_the_future_bound_nobody(self) -> None:
        """Whoever may write a status may write any move into it: it keeps no node and no workload back."""
        one = Watch()
        later = replace(MOVE, at=NOW + timedelta(days=400), ended=NOW + timedelta(days=400), taken_back=True)
        observed, in_force, planned = seen(split=split(relief=ReliefStatus(moves=(later,) * 24)))
        one.watch.saw(observed, in_force, planned)
        assert one.look(3).leaves is not None

    def test_a_workload_that_is_gone_is_forgotten(self) -> None:
        """Nothing is kept of it."""
        one = Watch()
        one.watch.saw(*seen())
        one.look()
        one.watch.saw(*seen(source=None))
        assert one.watch.view(KEY) == HotNodes()


class TestToSpot:
    """The first node is on-demand, and not hot; the second is spot, and has room."""

    @staticmethod
    def watch() -> Watch:
        """Return a watch over both."""
        one = Watch()
        one.cache.nodes["hot-1"] = CapacityClass.ON_DEMAND
        return one

    def test_after_losses_the_soak_is_the_longer_one(self) -> None:
        """Spot that flaps has doubled it, and that counts here too."""
        one = self.watch()
        observed, in_force, planned = seen(affinity=SpotAffinity.PREFERRED)
        one.watch.saw(observed, in_force, replace(planned, rebalance=RebalanceState(soak_s=1200.0)))
        assert one.look(20, full=6400).leaves is None
        assert one.look(full=6400).leaves is not None

    def test_one_that_requires_spot_is_not(self) -> None:
        """Where the labels of its node have changed under it, that is no matter of relief."""
        one = self.watch()
        one.watch.saw(*seen())
        view = one.look(30, full=6400)
        assert (view.leaves, view.badly_placed) == (None, "")


class TestSource:
    """The settings say who is asked."""

    @staticmethod
    def watch(**settings: object) -> HotNodesWatch:
        """Return who looks at real use with these settings."""
        made = Settings.model_validate(settings)
        return watch_of(made, Rules(), Quotas(), Cache(), print)  # type: ignore[arg-type]

    async def test_a_prometheus(self) -> None:
        """And not metrics.k8s.io: nobody listens at this address."""
        watch = self.watch(relief_source="prometheus", relief_prometheus="http://127.0.0.1:1")
        used = await watch._read()  # noqa: SLF001 - what `run` does at each look
        assert used.missing.startswith("real use cannot be read: http://127.0.0.1:1/api/v1/query: ")

    async def test_one_that_does_not_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A look ends all the same."""
        monkeypatch.setattr("splitter.relief.watch._LONGEST_READ_S", 0.01)
        watch = self.watch()
        watch._measure = asyncio.Event().wait  # type: ignore[assignment] # noqa: SLF001
        assert "did not answer within" in (await watch._read()).missing  # noqa: SLF001


def waiting_pod(**fields: object) -> PodRecord:
    """Return a pod without a node that requests 1 CPU."""
    raw = {
        "metadata": {
            "namespace": "shop",
            "name": "job",
            "uid": "uid-job",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-05T10:00:00Z",
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
    }
    return replace(parse.pod(raw), **fields)  # type: ignore[arg-type]


PLACEHOLDER = CreatePlaceholder(Pool.SPOT, "relief/hot-1", "{}", "hot-1")


class TestSpread:
    """Eight replicas on one of two spot nodes, which they are to share."""

    @staticmethod
    def watch(**fields: object) -> Watch:
        """Return a watch over both, and over what the twin asks for."""
        one = Watch()
        constraint = SpreadConstraint("kubernetes.io/hostname", 1, strict=True, selector=(OF_WEB,))
        one.cache.twins = Twins(spreads=(replace(constraint, **fields),))  # type: ignore[arg-type]
        for name in one.cache.nodes:
            one.cache.labels[name] = {"kubernetes.io/hostname": name}
        return one

    @pytest.mark.parametrize(
        "fields",
        [
            {"selector": None},
            {"selector": (replace(OF_WEB, values=("api",)),)},
            {"key": "topology.kubernetes.io/zone"},
            {"max_skew": 8},
        ],
    )
    def test_nobody_leaves_where_it_is_kept(self, fields: dict[str, object]) -> None:
        """It counts other pods or none, no node bears its key, or it allows that much."""
        one = self.watch(**fields)
        one.watch.saw(*seen())
        view = one.look(30, full=6400)
        assert (view.leaves, view.badly_placed) == (None, "")

    @pytest.mark.parametrize(
        ("fields", "taints", "said"),
        [
            ({}, (), True),
            ({}, (CLOSED,), True),
            ({"honors_taints": True}, (CLOSED,), False),
            ({}, None, False),
            ({"honors_affinity": False}, None, True),
        ],
    )
    def test_which_nodes_count(
        self, fields: dict[str, object], taints: tuple[Taint, ...] | None, said: bool
    ) -> None:
        """As for the scheduler: tainted ones unless nodeTaintsPolicy is Honor, none that is not admitted."""
        one = self.watch(**fields)
        one.cache.taints["cool-1"] = taints or ()
        if taints is None:
            one.cache.twins.request = PodRequest(node_selector={"kubernetes.io/hostname": "hot-1"})
        one.watch.saw(*seen())
        assert bool(one.look(10, full=6400).badly_placed) is said

    def test_what_changes_of_a_node_is_seen(self) -> None:
        """Where replicas may stand is kept from look to look, and not longer."""
        one = self.watch()
        labels = one.cache.labels.pop("cool-1")
        one.watch.saw(*seen())
        assert one.look(2, full=6400).badly_placed == ""
        one.cache.labels["cool-1"] = labels
        assert one.look(full=6400).badly_placed != ""
        del one.cache.nodes["cool-1"]
        assert one.look(full=6400).badly_placed == ""

    def test_what_nobody_asks_any_more_is_not_kept(self) -> None:
        """A tenant may change its template for ever, and each answer is of all nodes."""
        one, kept = self.watch(), list[int]()
        for number in range(60):
            one.cache.twins.request = PodRequest(node_selector={"version": str(number)})
            one.watch.saw(*seen())
            one.look(full=6400)
            kept.append(one.watch._looks_at._nodes.answers)  # noqa: SLF001 - what it costs is seen nowhere else
        assert max(kept) < 60

    def test_pods_of_another_revision_are_not_alike(self) -> None:
        """matchLabelKeys: pod-template-hash has the pods of each ReplicaSet counted alone."""
        observed, in_force, planned = seen()
        assert observed.spot is not None
        [first] = observed.spot.replica_sets
        sets = [
            replace(
                first,
                uid=f"uid-{n}",
                pods=first.pods[n::2],
                template_labels={"app": "web", "pod-template-hash": str(n)},
            )
            for n in range(2)
        ]
        observed = replace(observed, spot=replace(observed.spot, replica_sets=tuple(sets)))
        for keys, most in ((), 8), (("pod-template-hash",), 4):
            one = self.watch(label_keys=keys)
            one.watch.saw(observed, in_force, planned)
            assert one.look(full=6400).badly_placed.startswith(f"hot-1 holds {most} of its replicas")


class TestHints:
    @pytest.mark.parametrize(
        ("fields", "kept"),
        [
            ({}, ()),
            ({"node": "cool-1"}, ("hot-1",)),
            ({"finished": True}, ("hot-1",)),
            ({"terminating": True}, ("hot-1",)),
            ({"requests": (("cpu", 7300),)}, ("hot-1",)),
            ({"created": NOW - timedelta(minutes=10)}, ("hot-1",)),
            ({"held_for": "relief/hot-1"}, ("hot-1",)),
            ({"held_for": "spot/4/x"}, ()),
        ],
    )
    def test_not_where_somebodys_pod_may_want_the_room(
        self, fields: dict[str, object], kept: tuple[str, ...]
    ) -> None:
        """It waits for a node, and would fit there; one that waits for long waits for something else."""
        one = Watch()
        one.cache.pods.waiting = [waiting_pod(**fields)]
        one.watch.saw(*seen())
        leaves = one.look(3).leaves
        assert leaves is not None
        assert leaves.keep_off == kept

    def test_not_where_quotas_may_not_be_read(self) -> None:
        """An older file of rights is enough for all else."""
        one = Watch()
        one.quotas.items = None
        one.watch.saw(*seen())
        view = one.look(3)
        assert view.leaves is not None
        assert view.leaves.keep_off == ()
        assert view.unhinted.endswith("apply manifests/relief.yaml")


SET = Key(STATEFUL_SET, "shop", "db")
MANIFEST = {"spec": {"template": {"spec": {"containers": [{"name": "db"}]}}}}
IS_SPOT = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "DoesNotExist"}]}
RULES = ReservationRules(NodePresets((IS_SPOT,), (IS_SPOT,), ()), "pause:1")


def members_seen(
    relief: str = "cpu=85,restarts",
    *,
    state: RebalanceState | None = None,
    pinned: str = "",
    there: int = 5,
    **fields: object,
) -> tuple[Observation, PolicyInForce, Plan]:
    """Return what a reconcile of a StatefulSet at rest tells, whose members on spot share the hot node."""
    at_spot = {"node": "hot-1", "node_uid": "uid-hot-1", "on_spot": True}
    pods = [pod(f"web-spot-{n}", ordinal=n, **at_spot) for n in range(there)]  # type: ignore[arg-type]
    claims = ("data",) if pinned else ()
    itself = replace(
        source(5),
        key=SET,
        annotations={"splitter.io/relief": relief},
        manifest_json=json.dumps(MANIFEST),
        stateful=StatefulView(5, 5, 5, NOW, claim_templates=claims),
        **fields,  # type: ignore[arg-type]
    )
    reach = {n: Reach(terms_json=pinned) for n in range(5)} if pinned else {}
    observed = observation(
        itself,
        [replace(replica_set("db", of=pods, attachment=Attachment.PARKED), first_ordinal=0)],
        key=SET,
        split=split(ordinals=()),
        related=RelatedObjects(reach=reach),
    )
    in_force = PolicyInForce(Policy(relief=relief), (), {}, valid=True)
    rested = Plan(Step.PLACE, State.STEADY, Note(Reason.BALANCED, "as wanted"))
    return observed, in_force, replace(rested, rebalance=state or RebalanceState())


class TestMembers:
    """Of StatefulSets in placement mode, only those that ask for restarts are candidates."""

    @staticmethod
    def view(*reconciled: tuple[Observation, PolicyInForce, Plan]) -> Mapping[Key, HotNodes]:
        """Return what is known after three looks."""
        one = Watch(RULES)
        for seen_ in reconciled:
            one.watch.saw(*seen_)
        one.look(3)
        return {key: one.watch.view(key) for key in (KEY, SET)}

    def test_one_is_to_leave(self) -> None:
        """And it gets no hint."""
        view = self.view(members_seen())[SET]
        assert view.hot == ("hot-1",)
        assert view.leaves is not None
        assert view.leaves.keep_off == ()

    @pytest.mark.parametrize(
        "reconciled",
        [
            members_seen("cpu=85"),
            members_seen(state=RebalanceState(restarts=(Restart(0, NOW, planned=True),))),
            members_seen(state=RebalanceState(last_loss=NOW)),
            members_seen(one_a_node="", claims=("shared",)),
            members_seen(
                pinned='[{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["hot-1"]}]}]'
            ),
        ],
        ids=["not asked for", "one has restarted", "spot was lost", "a claim", "bound to its node"],
    )
    def test_none_is(self, reconciled: tuple[Observation, PolicyInForce, Plan]) -> None:
        """Then it takes no turn of others either."""
        assert self.view(reconciled)[SET].leaves is None

    def test_a_volume_that_reaches_the_other_node(self) -> None:
        """It can be attached there, so the member may leave."""
        terms = (
            '[{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["hot-1", "cool-1"]}]}]'
        )
        assert self.view(members_seen(pinned=terms))[SET].leaves is not None

    def test_no_two_on_one_node_where_the_template_says_so(self) -> None:
        """Where another member stands is no room."""
        observed, in_force, planned = members_seen(one_a_node="its anti-affinity")
        [itself] = observed.replica_sets
        elsewhere = replace(itself.pods[0], node="cool-1", node_uid="uid-cool-1")
        apart = replace(observed, replica_sets=(replace(itself, pods=(elsewhere, *itself.pods[1:])),))
        assert self.view((apart, in_force, planned))[SET].leaves is None

    def test_replicas_of_deployments_go_first(self) -> None:
        """Even of a higher priority: those leave without a restart."""
        observed, in_force, planned = seen()
        twin_ = observed.spot
        assert twin_ is not None
        [rs] = twin_.replica_sets
        pods = tuple(replace(one, priority=1_000_000_000) for one in rs.pods)
        high = replace(observed, spot=replace(twin_, replica_sets=(replace(rs, pods=pods),)))
        views = self.view((high, in_force, planned), members_seen(there=3))
        assert views[KEY].leaves is not None
        assert views[SET].hot == ("hot-1",)
