"""The status of a Split: what people read, and what must survive a restart."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from builders import NOW, ago, observation, pod, pods, replica_set, source, split, twin
from splitter.bundled import bundled_path
from splitter.core.actions import EvictPod
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.planner import policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import PoolStarts, RebalanceState, ReliefStatus, SplitStatus, StartTimes
from splitter.core.split_status.moving import FollowedCount
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView
from splitter.report.status import build

BALANCED = Note(Reason.BALANCED, "all is where it should be")
SCALED = Note(Reason.SCALED, "scale web-spot 3 -> 5")
PROBLEM = Note(Reason.INVALID_ANNOTATION, 'splitter.io/soak is "soon"', warning=True)
IN_FORCE = PolicyInForce(Policy(), (), {}, valid=True)
EARLIER = "2026-01-05T08:00:00Z"
AT_NOW = "2026-01-05T10:00:00Z"


def steady(*notes: Note, **fields: Any) -> Plan:  # noqa: ANN401 (fields of a plan)
    """Return the plan of a quiet reconcile, with something to say."""
    return replace(Plan(Step.RUN, State.STEADY, BALANCED, notes=notes), **fields)


def after(status: dict[str, Any]) -> SplitView:
    """Return a Split that has this status."""
    return split(status=SplitStatus.from_json(status))


def show(
    plan: Plan | None = None,
    observed: Observation | None = None,
    in_force: PolicyInForce = IN_FORCE,
    *,
    written: bool = True,
) -> dict[str, Any]:
    """Build the status of a quiet reconcile, or of the one given."""
    return build(observed or observation(), plan or steady(), in_force, written=written).to_json()


def conditions(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions by their type."""
    return {condition["type"]: condition for condition in status["conditions"]}


def on(name: str, number: int, node_status: NodeStatus, **fields: Any) -> list[Replica]:  # noqa: ANN401 (a pod's)
    """Return so many pods on a node."""
    return [pod(f"{name}-{one}", node_status, node=name, on_spot=True, **fields) for one in range(number)]


class TestNodes:
    """Which nodes go under the workload, and who says so."""

    def test_that_go_are_named(self) -> None:
        """With the replicas that stand there, the signal and the deadline, the most urgent first."""
        doomed = on("spot-b", 3, NodeStatus.DOOMED, signal="taint a", deadline=ago(-120))
        lost = on("spot-a", 1, NodeStatus.LOST, signal="the Node object is gone")
        result = show(None, observation(spot=twin(Pool.SPOT, [*lost, *doomed, *pods(4)])))
        assert result["nodes"] == [
            {
                "name": "spot-b",
                "state": "Doomed",
                "replicas": 3,
                "signal": "taint a",
                "deadline": "2026-01-05T10:02:00Z",
            },
            {"name": "spot-a", "state": "Lost", "replicas": 1, "signal": "the Node object is gone"},
        ]

    def test_that_stay_are_not(self) -> None:
        """Nothing is shown while nothing goes; terminating pods are past caring."""
        going = on("spot-b", 1, NodeStatus.DOOMED, terminating=True)
        assert "nodes" not in show(None, observation(spot=twin(Pool.SPOT, [*going, *pods(4)])))

    def test_are_counted_for_the_parked_too(self) -> None:
        """In the middle of a hand-over a node holds pods of several holders."""
        sets = [replica_set(of=on("spot-a", 2, NodeStatus.DOOMED))]
        observed = observation(sets=sets, spot=twin(Pool.SPOT, on("spot-a", 1, NodeStatus.DOOMED)))
        assert [node["replicas"] for node in show(None, observed)["nodes"]] == [3]

    def test_are_ten_at_most(self) -> None:
        """All spot nodes may go at once."""
        every = [one for number in range(40) for one in on(f"spot-{number:02}", 1, NodeStatus.DOOMED)]
        result = show(None, observation(spot=twin(Pool.SPOT, every)))["nodes"]
        assert [node["name"] for node in result] == [f"spot-{number:02}" for number in range(10)]


class TestCounts:
    def test_both_pools(self) -> None:
        """Each pool shows what is wanted, asked for, ready, doomed and pending."""
        observed = observation(
            on_demand=twin(Pool.ON_DEMAND, pods(4)),
            spot=twin(Pool.SPOT, pods(3, starting=1, stuck=2, doomed=1)),
        )
        result = show(steady(wanted_on_demand=3, wanted_spot=7), observed)
        assert result["onDemand"] == {"wanted": 3, "spec": 4, "ready": 4, "doomed": 0, "pending": 0}
        assert result["spot"] == {"wanted": 7, "spec": 7, "ready": 3, "doomed": 1, "pending": 2}
        assert (result["desired"], result["ready"], result["cover"]) == (10, 7, 1)

    def test_parked_pods_serve(self) -> None:
        """Pods that still hang on the source count as ready, in neither pool."""
        observed = observation(sets=[replica_set(of=pods(6))], on_demand=twin(Pool.ON_DEMAND, pods(1)))
        result = show(None, observed)
        assert result["ready"] == 7
        assert (result["onDemand"]["ready"], result["spot"]["ready"]) == (1, 0)

    def test_no_cover_when_refused(self) -> None:
        """What is refused has no cover and no twins."""
        refused = Plan(Step.CONSIDER, State.REFUSED, PROBLEM)
        result = show(refused)
        assert (result["state"], result["reason"], result["cover"]) == ("Refused", "InvalidAnnotation", 0)

    def test_long_messages_are_cut(self) -> None:
        """A message longer than the schema allows is cut, in the conditions too."""
        long = Note(Reason.INVALID_ANNOTATION, "x" * 5000, warning=True)
        result = show(Plan(Step.CONSIDER, State.REFUSED, long))
        assert len(result["message"]) == 1024
        assert len(conditions(result)["Eligible"]["message"]) == 1024


class TestConditions:
    def test_all_well(self) -> None:
        """A quiet life in conditions."""
        shown = show(steady(updated=4), observation(source(4), on_demand=twin(Pool.ON_DEMAND, pods(4))))
        result = conditions(shown)
        assert {name: condition["status"] for name, condition in result.items()} == {
            "Eligible": "True",
            "PolicyValid": "True",
            "Ready": "True",
            "Updated": "True",
            "Reconciling": "False",
            "Stalled": "False",
            "PodsHealthy": "True",
            "Progressing": "False",
            "PoolsFit": "True",
            "SpotAvailable": "True",
            "Conflict": "False",
        }
        assert result["Eligible"]["reason"] == "AsExpected"
        assert {condition["observedGeneration"] for condition in result.values()} == {3}
        assert (shown["observedGeneration"], shown["sourceGeneration"]) == (3, 7)

    def test_too_few(self) -> None:
        """Too few replicas, and too few on spot, are said with the numbers."""
        observed = observation(source(4), spot=twin(Pool.SPOT, pods(1, stuck=2)))
        result = conditions(show(steady(wanted_spot=3), observed))
        assert (result["Ready"]["status"], result["Ready"]["message"]) == (
            "False",
            "1 of 4 replicas are available",
        )
        assert (result["SpotAvailable"]["status"], result["SpotAvailable"]["message"]) == (
            "False",
            "1 of 3 wanted spot replicas are available",
        )

    def test_a_quiet_pass_changes_nothing(self) -> None:
        """Built again later with nothing new, the status is the same: it is not written again."""
        before = show(steady(SCALED), observation(now=ago(7200)))
        assert show(steady(), observation(split=after(before))) == before


class TestDecisions:
    def test_listed(self) -> None:
        """What was decided is listed with its time, oldest first."""
        before = show(steady(SCALED), observation(now=ago(7200)))
        result = show(steady(BALANCED), observation(split=after(before)))
        assert result["decisions"] == [
            {"time": EARLIER, "reason": "Scaled", "message": SCALED.message},
            {"time": AT_NOW, "reason": "Balanced", "message": BALANCED.message},
        ]

    def test_bounded(self) -> None:
        """The last twenty are kept."""
        status: dict[str, Any] = {}
        for number in range(50):
            observed = observation(split=after(status), now=ago(5000 - number * 100))
            status = show(steady(Note(Reason.SCALED, str(number))), observed)
        assert [decision["message"] for decision in status["decisions"]] == [str(n) for n in range(30, 50)]

    @pytest.mark.parametrize(("seconds", "times"), [(1, 1), (59, 1), (61, 2)])
    def test_not_twice_within_a_minute(self, seconds: float, times: int) -> None:
        """One said again within a minute is listed once."""
        scales = steady(SCALED, actions=(EvictPod("db-4", "uid-db-4", Pool.SPOT),))
        before = show(scales, observation(now=ago(seconds)))
        result = show(scales, observation(split=after(before)))
        assert len(result["decisions"]) == times

    def test_what_stands_is_listed_once(self) -> None:
        """However long it holds: else the list would have nothing but this, and each look be a write."""
        held = steady(PROBLEM, BALANCED)
        before = show(held, observation(now=ago(7200)))
        assert show(held, observation(split=after(before))) == before
        between = show(steady(SCALED), observation(split=after(before), now=ago(3600)))
        again = show(held, observation(split=after(between)))["decisions"]
        assert [one["message"] for one in again] == [
            one.message for one in (PROBLEM, BALANCED, SCALED, PROBLEM, BALANCED)
        ]

    def test_only_what_was_done(self) -> None:
        """A plan whose writes were refused decided nothing."""
        assert show(steady(SCALED), written=False)["decisions"] == []


class TestMemory:
    def test_rebalance(self) -> None:
        """The rebalancing state goes into the status, and stays when a reconcile has none of its own."""
        state = RebalanceState(lost=True, window=4)
        result = show(steady(rebalance=state))
        assert result["memory"]["rebalance"] == state.to_json()
        assert show(None, observation(split=after(result)))["memory"] == result["memory"]

    def test_good_annotations(self) -> None:
        """The annotations in force are remembered, for when they are spoilt."""
        written = {"splitter.io/soak": "5m"}
        memory = show(None, None, replace(IN_FORCE, good_annotations=written))["memory"]
        assert memory["policyAnnotations"] == written

    def test_that_is_empty_is_left_out(self) -> None:
        """An empty object would arrive as null, which the schema refuses, if one was written before."""
        assert "memory" not in show(None, None, replace(IN_FORCE, good_annotations={}))

    def test_no_bounds_are_left_out(self) -> None:
        """Only bounds that were asked for are shown."""
        policy = show()["policy"]
        assert not {"onDemandMax", "spotMax"} & set(policy)
        bounded = show(None, None, replace(IN_FORCE, policy=Policy(on_demand_max=4, spot_max=0)))["policy"]
        assert (bounded["onDemandMax"], bounded["spotMax"]) == (4, 0)

    def test_nothing_is_null(self) -> None:
        """No field is null: a structural schema would drop or refuse it."""
        result = show(steady(SCALED, rebalance=RebalanceState()))

        def nulls(value: object, path: str) -> list[str]:
            match value:
                case dict():
                    return [hit for key, inner in value.items() for hit in nulls(inner, f"{path}.{key}")]
                case list():
                    return [hit for inner in value for hit in nulls(inner, path)]
                case _:
                    return [path] if value is None else []

        assert [hit for hit in nulls(result, "") if not hit.startswith(".memory")] == []


class TestOrphans:
    """Pods whose owner is changing."""

    def test_are_ready_as_before(self) -> None:
        """A reader must not take that moment for an outage."""
        owned = replace(pods(2)[0], born=Pool.SPOT), replace(pods(2)[1], born=Pool.ON_DEMAND)
        status = show(steady(SCALED), observation(orphans=owned))
        assert (status["ready"], status["onDemand"]["ready"], status["spot"]["ready"]) == (2, 1, 1)


class TestPolicy:
    """The policy in force, and where each of its values comes from."""

    def test_every_field_is_in_the_schema(self) -> None:
        """What is written is known to the CRD: the API server would drop anything else."""
        [crd, _] = yaml.safe_load_all(bundled_path("manifests/crd.yaml").read_text(encoding="utf-8"))
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        bounded = replace(IN_FORCE, policy=Policy(on_demand_max=4, spot_max=0))
        going = on("spot-b", 1, NodeStatus.DOOMED, signal="taint a", deadline=ago(-120))
        conflicted = split(
            write_conflicts=(ago(500), ago(100)),
            conflicting_writer="argocd",
        )
        stateful = source(stateful=StatefulView(0, 0, 0, ago(500)), selector="app=web")
        two = observation(stateful, split=conflicted, spot=twin(Pool.SPOT, going))
        plan = steady(
            SCALED,
            write_conflict=True,
            conflicting_writer="argocd",
            rebalance=RebalanceState(lost=True),
            guard="web-guard",
            followed=FollowedCount(12, 10, "2", NOW),
            relief=ReliefStatus("NodesMeasured", "its replicas stand on hot nodes (node-1)", ("node-1",)),
        )
        starts = StartTimes(NOW, 30, PoolStarts((1,), (2,)), PoolStarts((3,), (4,)))
        status = show(plan, two, replace(bounded, good_annotations={"splitter.io/soak": "5m"}, starts=starts))

        def unknown(value: object, known: dict[str, Any], path: str) -> list[str]:
            if isinstance(value, list):
                return [hit for one in value for hit in unknown(one, known["items"], f"{path}[]")]
            if not isinstance(value, dict) or known.get("x-kubernetes-preserve-unknown-fields"):
                return []
            free, fields = known.get("additionalProperties"), known.get("properties", {})
            hits = [] if free else [f"{path}.{name}" for name in value if name not in fields]
            return hits + [
                hit
                for name, inner in value.items()
                if name in fields
                for hit in unknown(inner, fields[name], f"{path}.{name}")
            ]

        assert unknown(status, {"properties": schema}, "status") == []
        assert set(schema) == set(status)


class TestWriteConflicts:
    def test_counted_after_the_write(self) -> None:
        """A foreign unpause is counted once we have paused again, and not when that failed."""
        write_conflict = steady(write_conflict=True)
        assert show(write_conflict)["writeConflicts"] == [AT_NOW]
        assert "writeConflicts" not in show(write_conflict, written=False)

    def test_third_is_a_conflict(self) -> None:
        """With the third within ten minutes we give way."""
        two = observation(split=split(write_conflicts=(ago(500), ago(100))))
        result = show(steady(write_conflict=True), two)
        assert len(result["writeConflicts"]) == 3
        assert result["conflict"] is True
        assert conditions(result)["Conflict"]["status"] == "True"

    def test_old_ones_are_forgotten(self) -> None:
        """What is longer ago than ten minutes is no part of this write conflict."""
        old = observation(split=split(write_conflicts=(ago(900), ago(700), ago(100))))
        result = show(steady(write_conflict=True), old)
        assert len(result["writeConflicts"]) == 2
        assert "conflict" not in result

    def test_conflict_stays(self) -> None:
        """A conflict stays, however long ago the write conflicts, until the label goes."""
        given_way = after({"conflict": True})
        assert show(None, observation(split=given_way, now=NOW))["conflict"] is True


class TestPlacement:
    """A StatefulSet in placement mode has no twins: its own pods are counted, by what they stand on."""

    def test_counts_members_by_their_nodes(self) -> None:
        """One stands in for spot, one waits for a node and may start on spot."""
        members = [pod(f"db-{k}", ordinal=k, on_spot=k == 3) for k in range(4)]
        members.append(pod("db-4", NodeStatus.UNBOUND, ordinal=4))
        only = StatefulView(5, 5, 4, ago(3600))
        observed = observation(
            source(5, stateful=only),
            [replica_set("db", of=members)],
            split=split(ordinals=(0, 1, 2)),
        )
        result = show(steady(wanted_on_demand=2, wanted_spot=3), observed)
        assert result["onDemand"] == {"wanted": 2, "spec": 3, "ready": 3, "doomed": 0, "pending": 0}
        assert result["spot"] == {"wanted": 3, "spec": 2, "ready": 1, "doomed": 0, "pending": 1}
        assert (result["ready"], result["cover"]) == (4, 1)
        assert conditions(result)["SpotAvailable"]["message"] == "1 of 3 wanted spot replicas are available"


class TestStarts:
    """How long its pods take to start: kept, and never the reason for a write."""

    STARTED = pod("a", bound_since=ago(500), created=ago(500), ready_since=ago(470))

    def shown(self, status: dict[str, Any], *, ready: int = 4, takes_over: bool = True) -> dict[str, Any]:
        """Build the status that follows on one, when a pod was seen to start."""
        on_demand = twin(Pool.ON_DEMAND, [self.STARTED, *pods(ready)])
        kept = replace(split(takes_over=takes_over), status=SplitStatus.from_json(status))
        seen = observation(source(10), split=kept, on_demand=on_demand)
        return show(None, seen, policy_in_force(seen, Policy()))

    def test_are_written_beside_what_is_written_anyway(self) -> None:
        """As the Split keeps them."""
        assert self.shown({})["memory"]["starts"] == {
            "until": "2026-01-05T09:51:40Z",
            "onDemand": {"startSeconds": [30], "nodeSeconds": [0]},
        }

    def test_alone_are_not_written(self) -> None:
        """What else is to be said is said already: the status stays as it is, until that changes."""
        status = self.shown({})
        starts = {"until": "2026-01-05T08:00:00Z", "spot": {"startSeconds": [7]}}
        before = {**status, "memory": {**status["memory"], "starts": starts}}
        assert self.shown(before) == before
        without = {field: value for field, value in status.items() if field != "memory"}
        assert "memory" not in self.shown(without)
        after_more = self.shown(before, ready=5)["memory"]["starts"]
        assert after_more["onDemand"] == {"startSeconds": [30], "nodeSeconds": [0]}
        assert after_more["spot"] == {"startSeconds": [7]}

    def test_of_what_is_only_refused_are_not_kept(self) -> None:
        """Its Split reports, and counts nothing."""
        assert "starts" not in self.shown({}, takes_over=False).get("memory", {})
