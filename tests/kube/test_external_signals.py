"""What others say: which Events count, for which node, and what is made of autoscalers' statuses."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from kube.autoscaler import NOW, STATUS, config_map
from kube.raw import Raw, deployment, metadata, owner, pod, replica_set
from kube.server import Script, connected, page
from splitter.assembly import cache_of
from splitter.core.names import Key
from splitter.core.nodes.believed_events import BELIEVED
from splitter.core.nodes.facts import Health
from splitter.core.nodes.fit import PodRequest
from splitter.core.nodes.signals import assess
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.external_signals import EVENTS_KEPT, EventFilter
from splitter.settings import Settings

SPOT = {"karpenter.sh/capacity-type": "spot"}
WEB = Key("Deployment", "shop", "web")
BOUND = {"conditions": [{"type": "PodScheduled", "status": "True"}]}


def at(seconds: float) -> str:
    """Return the instant so many seconds after NOW, as the API writes it."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def event(reason: str, name: str = "spot-a", *, version: int = 20, kind: str = "Node", **fields: Any) -> Raw:  # noqa: ANN401 (fields of an Event)
    """Return a core/v1 Event, of this moment."""
    about = {"kind": kind, "name": name, "uid": f"uid-{name}"}
    return {
        "metadata": metadata(f"{name}.{version}", version=version, namespace="default"),
        "involvedObject": about,
        "reason": reason,
        "message": "Spot interruption warning was triggered",
        "lastTimestamp": at(0),
        **fields,
    }


def node(version: int = 5, labels: dict[str, str] | None = None, **spec: object) -> Raw:
    """Return a Ready spot node."""
    result = metadata("spot-a", version=version, namespace="", labels=labels or SPOT)
    return {"metadata": result, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def refusal() -> Raw:
    """Return an Event that says that `claim` got no machine."""
    message = "There is no Spot capacity available"
    return event("InsufficientCapacityError", "claim-1", kind="NodeClaim", message=message)


def claim(*, spot: bool = True, version: int = 10, disrupted: bool = False, launched: bool = False) -> Raw:
    """Return a NodeClaim, by default one without a machine."""
    values = ["spot"] if spot else ["spot", "on-demand"]
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": values}
    is_true = {"DisruptionReason": disrupted, "Launched": launched}
    conditions = [{"type": one, "status": "True"} for one, holds in is_true.items() if holds]
    return {
        "metadata": metadata("claim-1", version=version, namespace=""),
        "spec": {"requirements": [requirement]},
        "status": {"nodeName": "spot-a", "conditions": conditions},
    }


class Woken:
    """A cache with one spot node under the workload shop/web, and who was woken."""

    def __init__(self) -> None:
        self.calls: list[tuple[Key, bool]] = []
        self.cache = Cache(assess, self._enqueue)
        self.cache.sources.upsert(deployment(version=1, labels={"splitter.io/split": "enabled"}))
        self.cache.splits.upsert({"metadata": metadata("web"), "spec": {"takeOver": True}})
        self.cache.replica_sets.upsert(replica_set(version=2))
        self.twin = deployment(
            "web-spot",
            version=3,
            labels={"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"},
            ownerReferences=[owner("Deployment", "web")],
        )
        self.cache.twins.upsert(self.twin)
        self.cache.nodes.upsert(node())
        self.cache.pods.upsert(pod(spec={"nodeName": "spot-a"}, status=BOUND, version=6))
        self.calls.clear()

    def _enqueue(self, key: Key, *, urgent: bool) -> None:
        self.calls.append((key, urgent))

    def wait_for_spot(self) -> None:
        """Have the spot twin lack a replica."""
        twin = deployment(
            "web-spot",
            {"replicas": 2},
            {"availableReplicas": 1},
            version=7,
            labels={"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"},
        )
        self.cache.twins.upsert(twin)
        self.calls.clear()

    def health(self, after_s: float = 1.0) -> Health:
        """Return what the node is some seconds after NOW."""
        record = self.cache.nodes.one("name", "spot-a")
        assert record is not None
        return self.cache.node_state(record, NOW + timedelta(seconds=after_s)).health


@pytest.fixture
def woken() -> Woken:
    """Return a cache."""
    return Woken()


class TestPods:
    """Pods change many times for others, and a reconcile costs ten times what hearing of it costs."""

    def test_wake_nobody_with_what_nobody_looks_at(self, woken: Woken) -> None:
        """An annotation of somebody's is heard, and that is all."""
        raw = pod(spec={"nodeName": "spot-a"}, status=BOUND, version=7)
        woken.cache.pods.upsert({**raw, "metadata": {**raw["metadata"], "annotations": {"theirs": "new"}}})
        record = woken.cache.pods.get("shop", raw["metadata"]["uid"])
        assert record is not None
        assert record.version == 7
        assert woken.calls == []

    def test_wake_their_source_with_everything_else(self, woken: Woken) -> None:
        """A pod that is on its way out is news."""
        raw = pod(spec={"nodeName": "spot-a"}, status=BOUND, version=7)
        raw["metadata"]["deletionTimestamp"] = "2026-01-05T10:00:00Z"
        woken.cache.pods.upsert(raw)
        assert woken.calls == [(WEB, False)]


class TestDoomedNodes:
    """Urgent is what can be helped: a reconcile that raises nobody takes the time of one that does."""

    def doom(self, woken: Woken) -> list[tuple[Key, bool]]:
        """Let the node be announced to go; return who is woken."""
        woken.calls.clear()
        woken.cache.nodes.upsert(node(40, unschedulable=True))
        return woken.calls

    def test_wake_the_owners_urgently(self, woken: Woken) -> None:
        """Of pods that were bound there, and have twins to raise."""
        assert self.doom(woken) == [(WEB, True)]

    def test_pods_that_only_name_the_node(self, woken: Woken) -> None:
        """Whoever creates a pod may write any node into it; the kubelet or a scheduler says that it is so."""
        woken.cache.pods.upsert(pod(spec={"nodeName": "spot-a"}, version=7))
        assert self.doom(woken) == [(WEB, False)]

    def test_workloads_that_are_only_reported_on(self, woken: Woken) -> None:
        """A Split without twins and ordinals reports a refusal: there is nothing to raise."""
        assert woken.cache.splits.find("source", WEB)
        woken.cache.twins.remove(woken.twin)
        assert self.doom(woken) == [(WEB, False)]


class TestNodeEvents:
    """An accelerator: the truth is in taints and conditions."""

    def test_wake_the_owners_urgently(self, woken: Woken) -> None:
        """Just as a taint would."""
        woken.cache.external_signals.events.upsert(event("SpotInterrupted"))
        assert woken.calls == [(WEB, True)]
        assert woken.health() is Health.DOOMED

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_wake_nobody_whose_pods_have_ended(self, woken: Woken, phase: str) -> None:
        """Anybody can have a thousand pods fail on a node, and is at the head of no queue for that."""
        raw = pod(spec={"nodeName": "spot-a"}, version=7)
        woken.cache.pods.upsert({**raw, "status": {**raw["status"], "phase": phase}})
        woken.calls.clear()
        woken.cache.external_signals.events.upsert(event("SpotInterrupted"))
        assert woken.calls == []

    def test_wake_those_who_are_not_split_with_all_others(self, woken: Woken) -> None:
        """Nothing of theirs is moved."""
        woken.cache.splits.replace((), None, 99)
        woken.cache.twins.remove(woken.twin)
        woken.calls.clear()
        woken.cache.external_signals.events.upsert(event("SpotInterrupted"))
        assert woken.calls == [(WEB, False)]

    def test_grow_stale_by_themselves(self, woken: Woken) -> None:
        """A node that outlives its announced end was not interrupted; a reconcile is due just then."""
        woken.cache.external_signals.events.upsert(event("SpotInterrupted"))
        assert woken.cache.silent_from(["spot-a"], NOW) == NOW + timedelta(seconds=420)
        assert woken.health(after_s=421) is Health.HEALTHY
        assert woken.cache.silent_from(["spot-a"], NOW + timedelta(seconds=421)) is None

    @pytest.mark.parametrize("written", ["0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"])
    @pytest.mark.parametrize("reason", ["SpotInterrupted", "SpotRebalanceRecommendation"])
    def test_of_no_time_that_can_be(self, woken: Woken, reason: str, written: str) -> None:
        """Whoever may write Events may write any time: no reconcile fails for it."""
        woken.cache.external_signals.events.upsert(event(reason, lastTimestamp=written))
        assert woken.health() is Health.HEALTHY

    def test_of_a_recommendation_are_a_hint(self, woken: Woken) -> None:
        """It holds up returns, and dooms nobody."""
        woken.cache.external_signals.events.upsert(event("SpotRebalanceRecommendation"))
        assert woken.health() is Health.HINTED

    @pytest.mark.parametrize("uid", ["", "spot-a", "uid-spot-a"])
    def test_name_the_node_in_their_own_ways(self, woken: Woken, uid: str) -> None:
        """AWS's termination handler leaves the UID out, kubelets write the name."""
        about = {"kind": "Node", "name": "spot-a", "uid": uid}
        woken.cache.external_signals.events.upsert(event("SpotInterruption", involvedObject=about))
        assert woken.health() is Health.DOOMED

    def test_about_an_earlier_node_of_the_name_say_nothing(self, woken: Woken) -> None:
        """Another UID, or older than the node: clouds use names again."""
        other = {"kind": "Node", "name": "spot-a", "uid": "uid-before"}
        woken.cache.external_signals.events.upsert(event("SpotInterruption", involvedObject=other))
        anonymous = {"kind": "Node", "name": "spot-a"}
        before = event("SpotInterruption", version=21, involvedObject=anonymous, lastTimestamp=at(-7200))
        woken.cache.external_signals.events.upsert(before)
        assert woken.health() is Health.HEALTHY

    def test_are_heard_before_their_node(self) -> None:
        """Watches come in any order."""
        result = Woken()
        result.cache.external_signals.events.upsert(event("SpotInterrupted", "spot-b"))
        assert result.calls == []
        raw = node(30)
        raw["metadata"] |= {"name": "spot-b", "uid": "uid-spot-b"}
        result.cache.nodes.upsert(raw)
        record = result.cache.nodes.one("name", "spot-b")
        assert record is not None
        assert result.cache.node_state(record, NOW).health is Health.DOOMED

    def test_that_go_leave_no_trace(self, woken: Woken) -> None:
        """The API server forgets Events after an hour."""
        raw = event("SpotInterrupted")
        woken.cache.external_signals.events.upsert(raw)
        woken.cache.external_signals.events.remove(raw)
        assert woken.health() is Health.HEALTHY

    @pytest.mark.parametrize(
        ("fields", "seen_s"),
        [
            ({"lastTimestamp": at(7)}, 7),
            ({"lastTimestamp": None, "eventTime": at(8)}, 8),
            ({"lastTimestamp": None, "series": {"lastObservedTime": at(9)}}, 9),
            ({"lastTimestamp": None, "firstTimestamp": at(3)}, 3),
            ({"lastTimestamp": None}, -3600),
        ],
    )
    def test_tell_their_time_in_their_own_ways(self, fields: dict[str, Any], seen_s: float) -> None:
        """By both Event APIs and by old recorders; at least they were created."""
        result = parse.node_event(event("SpotInterrupted", **fields))
        assert result.event.at == NOW + timedelta(seconds=seen_s)


class TestReflectors:
    """What is followed."""

    @pytest.mark.parametrize(
        ("believed", "expected"),
        [(True, {"involvedObject.kind=Node", "involvedObject.kind=NodeClaim", None}), (False, {None})],
    )
    async def test_events_need_not_be_believed(self, believed: bool, expected: set[str | None]) -> None:
        """Where tenants have workloads in `default`, the administrator leaves them unread: of every kind."""
        cache = cache_of(Settings(hear_node_events=believed), lambda _key, *, urgent: None)  # noqa: ARG005
        script = Script().then(*(page(version=1) for _ in expected))
        async with connected(script) as client:
            for reflector in cache.external_signals.reflectors(client, ""):
                await reflector.list_once()
        assert {one.query.get("fieldSelector") for one in script.asked} == expected
        assert len(script.asked) == len(expected)


class TestEventFilter:
    """The API server selects Events by one reason at most."""

    def test_lets_through_what_matters(self, woken: Woken) -> None:
        """Hundreds of other Events about Nodes are dropped unread, and so is a reason of another kind."""
        events = woken.cache.external_signals.events
        events_about = EventFilter(events, BELIEVED[0])
        others = [event("NodeReady"), event("InsufficientCapacityError", version=19)]
        others.append(event("SpotInterrupted", version=18, kind="Pod"))
        events_about.replace(
            map(events_about.read, [*others, event("SpotInterrupted", version=21)]), "default", 22
        )
        events_about.upsert(event("Starting", version=23))
        assert [record.event.reason for record in events.values()] == ["SpotInterrupted"]
        events_about.remove(event("NodeReady"))
        events_about.remove(event("SpotInterrupted", version=21))
        assert not list(events.values())

    @pytest.mark.parametrize(
        "change", [{"reason": "Rebooted"}, {"involvedObject": {"kind": "Pod", "name": "spot-a", "uid": "u"}}]
    )
    def test_forgets_what_was_changed_into_something_else(self, woken: Woken, change: Raw) -> None:
        """An Event can be edited; as it was it says nothing any more, and goes on saying nothing."""
        events_about = EventFilter(woken.cache.external_signals.events, BELIEVED[0])
        raw = event("SpotInterrupted")
        events_about.upsert(raw)
        assert woken.health() is Health.DOOMED
        newer = {**raw["metadata"], "resourceVersion": "21"}
        events_about.upsert({**raw, "metadata": newer, **change})
        assert woken.health() is Health.HEALTHY
        events_about.upsert({**raw, "metadata": {**newer, "resourceVersion": "22"}})
        assert woken.health() is Health.DOOMED


class TestMemory:
    """Who may write Events may write any number of them, of any size."""

    def test_of_an_event_is_small(self, woken: Woken) -> None:
        """What no object is called is not read, and of the rest no text is kept."""
        external_signals = woken.cache.external_signals
        external_signals.events.upsert(event("SpotInterrupted", "n" * 1_000_000))
        external_signals.refusals.upsert(
            event("InsufficientCapacityError", "c" * 1_000_000, kind="NodeClaim", version=21)
        )
        assert len(external_signals.events) == len(external_signals.refusals) == 0
        long = event("InsufficientCapacityError", "claim-1", kind="NodeClaim", message="spot" * 250_000)
        long["involvedObject"]["uid"] = "u" * 1_000_000
        external_signals.refusals.upsert(long)
        [kept] = external_signals.refusals.values()
        assert len(repr(kept)) < 1000

    def test_is_for_so_many_events(self, woken: Woken) -> None:
        """The oldest go: what it says is old first."""
        events = woken.cache.external_signals.events
        for number in range(EVENTS_KEPT + 10):
            events.upsert(event("SpotInterrupted", f"node-{number}", version=100 + number))
        assert len(events) == EVENTS_KEPT
        assert events.one("node", "node-0") is None
        assert events.one("node", f"node-{EVENTS_KEPT + 9}") is not None

    def test_of_claims_is_for_those_that_got_nothing(self, woken: Woken) -> None:
        """A thousand machines that come and go do not push out the one that was refused."""
        external_signals, refused = woken.cache.external_signals, claim()
        external_signals.claims.upsert(refused)
        external_signals.claims.remove(refused)
        for number in range(1000):
            raw = claim(spot=number % 2 == 0, launched=number % 2 == 0)
            raw["metadata"] |= {"name": f"claim-{number}", "uid": f"uid-of-{number}"}
            external_signals.claims.upsert(raw)
            external_signals.claims.remove(raw)
        external_signals.refusals.upsert(refusal())
        assert woken.cache.spot_blocked(PodRequest(), NOW) is not None


class TestNodeClaims:
    """Karpenter's own records, where they may be read."""

    def test_tell_a_choice_from_a_reclaim(self, woken: Woken) -> None:
        """The node is replaced all the same, and spot is not distrusted for it."""
        disrupted = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        woken.cache.nodes.upsert(node(11, taints=[disrupted]))
        woken.calls.clear()
        woken.cache.external_signals.claims.upsert(claim(version=12))
        assert woken.calls == []
        woken.cache.external_signals.claims.upsert(claim(version=13, disrupted=True))
        assert woken.calls == [(WEB, True)]
        record = woken.cache.nodes.one("name", "spot-a")
        assert record is not None
        state = woken.cache.node_state(record, NOW)
        assert (state.health, state.voluntary) == (Health.DOOMED, True)

    def test_tell_the_deadline(self, woken: Woken) -> None:
        """Karpenter writes it there and not on the Node."""
        woken.cache.nodes.upsert(node(11))
        woken.calls.clear()
        ends = "2026-01-05T10:02:00Z"
        leaving = claim(version=12)
        leaving["metadata"]["annotations"] = {"karpenter.sh/nodeclaim-termination-timestamp": ends}
        woken.cache.external_signals.claims.upsert(leaving)
        assert woken.calls == [(WEB, True)]
        record = woken.cache.nodes.one("name", "spot-a")
        assert record is not None
        state = woken.cache.node_state(record, NOW)
        assert (state.health, state.deadline) == (Health.DOOMED, datetime.fromisoformat(ends))

    def test_tell_that_a_node_may_be_given_up(self, woken: Woken) -> None:
        """Karpenter says so long before it wants it: nobody is woken, whoever looks is told."""
        external_signals, raw = woken.cache.external_signals, claim()
        assert external_signals.consolidate({"spot-a"}) is None
        external_signals.claims.upsert(raw)
        assert external_signals.consolidate({"spot-a", "spot-b"}) is False
        assert external_signals.consolidate({"spot-b"}) is None
        woken.calls.clear()
        raw["metadata"]["resourceVersion"] = "12"
        raw["status"]["conditions"] = [{"type": "Consolidatable", "status": "True"}]
        external_signals.claims.upsert(raw)
        assert external_signals.consolidate({"spot-a"}) is True
        assert woken.calls == []

    @pytest.mark.parametrize("spot", [True, False])
    @pytest.mark.parametrize("gone", [True, False])
    def test_tell_what_could_not_be_had(self, woken: Woken, spot: bool, gone: bool) -> None:
        """The claim is deleted in the moment in which the Event says that it got nothing."""
        external_signals, raw = woken.cache.external_signals, claim(spot=spot)
        external_signals.claims.upsert(raw)
        if gone:
            external_signals.claims.remove(raw)
        external_signals.refusals.upsert(refusal())
        assert (woken.cache.spot_blocked(PodRequest(), NOW) is not None) is spot

    @pytest.mark.parametrize("about", [{"name": "claim-9"}, {"uid": "uid-invented"}, {"uid": ""}])
    def test_that_were_never_seen_are_not_believed(self, woken: Woken, about: Raw) -> None:
        """An Event about an invented claim, or with the UID of one and the name of another: any words."""
        external_signals = woken.cache.external_signals
        external_signals.claims.upsert(claim())
        woken.wait_for_spot()
        raw = refusal()
        external_signals.refusals.upsert({**raw, "involvedObject": {**raw["involvedObject"], **about}})
        assert woken.cache.spot_blocked(PodRequest(), NOW) is None
        assert woken.calls == []

    def test_that_got_a_machine_were_not_refused(self, woken: Woken) -> None:
        """Karpenter says so before it has launched one, and never after."""
        external_signals = woken.cache.external_signals
        external_signals.claims.upsert(claim(launched=True))
        external_signals.refusals.upsert(refusal())
        assert woken.cache.spot_blocked(PodRequest(), NOW) is None

    def test_are_heard_after_their_refusal(self, woken: Woken) -> None:
        """Watches come in any order, and so do lists: who waits for spot is woken when both are there."""
        external_signals = woken.cache.external_signals
        woken.wait_for_spot()
        external_signals.refusals.upsert(refusal())
        assert woken.calls == []
        external_signals.claims.upsert(claim())
        assert woken.calls == [(WEB, False)]
        assert woken.cache.spot_blocked(PodRequest(), NOW) is not None


class TestStatusOfClusterAutoscaler:
    """YAML since 1.30."""

    def test_wakes_who_waits_for_spot_when_it_changes(self, woken: Woken) -> None:
        """It is written every ten seconds, and hardly ever says anything new."""
        woken.wait_for_spot()
        indexer = woken.cache.external_signals.autoscaler
        indexer.upsert(config_map("time: x", 20))
        assert woken.calls == []
        indexer.upsert(config_map(STATUS, 21))
        assert woken.calls == [(WEB, False)]
        indexer.upsert(config_map(STATUS.replace("09:59:50", "09:59:59"), 22))
        assert woken.calls == [(WEB, False)]
        indexer.remove(config_map(STATUS, 23))
        assert woken.calls == [(WEB, False), (WEB, False)]


class TestContradictoryNodes:
    """Somebody has to mend their labels."""

    def test_are_said_once(self, woken: Woken, caplog: pytest.LogCaptureFixture) -> None:
        """A node changes every few seconds; its labels are wrong once."""
        odd = SPOT | {"eks.amazonaws.com/capacityType": "ON_DEMAND"}
        woken.cache.nodes.upsert(node(40, odd))
        woken.cache.nodes.upsert(node(41, odd, unschedulable=True))
        [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert said == (
            "node spot-a has contradictory marks and counts as on-demand: karpenter.sh/capacity-type=spot"
            " says spot, eks.amazonaws.com/capacityType=ON_DEMAND says on-demand. Mend its labels, or name"
            " your own in spot_selectors or on_demand_selectors"
        )
