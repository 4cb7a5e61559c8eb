"""Troubles: what people read when replicas do not run, and what of a plan's verdict is left beside it."""

from dataclasses import replace
from typing import Any

import pytest

from builders import ago, observation, pod, pods, replica_set, twin, twin_of
from splitter.core.actions import DeleteTwin
from splitter.core.handover import Step
from splitter.core.model import Attachment, Note, Observation
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.troubles import troubles, with_barriers, with_troubles

GRACE_S = 180.0
IMAGE = Trouble(Reason.IMAGE_PULL_FAILED, '"web:2": not found')
CRASH = Trouble(Reason.CRASH_LOOPING, "container web ends with exit code 1 (Error)")
QUOTA = Trouble(Reason.QUOTA_EXCEEDED, "exceeded quota: small")
CLAIM = Trouble(Reason.VOLUME_UNAVAILABLE, 'persistentvolumeclaim "data" not found')
TAINT = Trouble(Reason.NODES_UNSUITABLE, "4 of 4 healthy spot nodes have a taint")
BALANCED = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "4 and 6, as wanted"))


def ill(name: str, trouble: Trouble | None = None, **fields: Any) -> Replica:  # noqa: ANN401 (fields of the view)
    """Return a pod that is bound and not ready."""
    return pod(name, ready=False, trouble=trouble, **fields)


def unbound(name: str, trouble: Trouble | None = None, age_s: float = 600, **fields: Any) -> Replica:  # noqa: ANN401 (fields of the view)
    """Return a pod that the scheduler has not placed for so long."""
    return pod(name, NodeStatus.UNBOUND, unschedulable_since=ago(age_s), trouble=trouble, **fields)


def spot(*of: Replica, **fields: Any) -> Observation:  # noqa: ANN401 (fields of the view)
    """Return what is seen of a workload with 4 sound replicas on on-demand and these on spot."""
    return observation(on_demand=twin(Pool.ON_DEMAND, pods(4)), spot=twin(Pool.SPOT, of, **fields))


def said(observed: Observation) -> list[str]:
    """Return what is said, with its reason."""
    return [f"{note.reason}: {note.message}" for note in troubles(observed, GRACE_S)]


class TestPoolsThatTakeNoReplica:
    """What keeps replicas out of a pool is said first, where nothing is written."""

    CERTAIN = Note(Reason.COVER_IMPOSSIBLE, "cover is impossible", warning=True)
    BY_NODES = Note(Reason.COVER_IMPOSSIBLE, "not by these nodes", warning=True, cause=VerdictCause.BY_NODES)
    UNSEEN = Note(Reason.SPOT_UNSEEN, "no node is spot", warning=True, cause=VerdictCause.BY_NODES)
    SHORT = Plan(Step.RUN, State.HELD, Note(Reason.SPOT_SHORT, "spot has placed 0 of 6"))

    def test_what_is_certain(self) -> None:
        """It is Held: whoever waits for Steady is not told that all is well."""
        said = with_barriers(BALANCED, [self.CERTAIN], 60.0)
        assert (said.state, said.verdict.reason) == (State.HELD, Reason.COVER_IMPOSSIBLE)
        assert said.verdict.message == "cover is impossible (4 and 6, as wanted)"
        assert (said.barred, said.requeue_after_s) == ((self.CERTAIN,), 60.0)

    def test_what_the_nodes_of_now_say(self) -> None:
        """A warning that stays, beside a verdict that holds; it is looked at again, as no event will tell."""
        said = with_barriers(BALANCED, [self.BY_NODES], 60.0)
        assert (said.state, said.verdict) == (State.STEADY, BALANCED.verdict)
        assert (said.barred, said.requeue_after_s) == ((self.BY_NODES,), 60.0)

    def test_no_spot_node(self) -> None:
        """It goes before the shortage that follows from it, and before all else."""
        said = with_barriers(self.SHORT, [self.BY_NODES], 60.0, self.UNSEEN)
        assert said.verdict.message == "no node is spot (spot has placed 0 of 6)"
        assert said.barred == (self.UNSEEN, self.BY_NODES)
        assert with_barriers(BALANCED, [], 60.0, self.UNSEEN).verdict == BALANCED.verdict

    def test_what_is_written_keeps_its_sentence(self) -> None:
        """A move is told as it is."""
        moving = replace(self.SHORT, actions=(DeleteTwin("web-spot", "uid"),))
        assert with_barriers(moving, [self.CERTAIN], 60.0).verdict == self.SHORT.verdict

    def test_nothing_is_in_the_way(self) -> None:
        """Nothing is said, and no look is due."""
        assert with_barriers(BALANCED, [], 60.0) == BALANCED


class TestSentences:
    def test_one_cause(self) -> None:
        """How many of how many of which twin, the kubelet's words, one pod, and what to do."""
        (result,) = said(spot(ill("web-c", IMAGE), ill("web-b", IMAGE), pod("web-a")))
        assert result == (
            'ImagePullFailed: 2 of 3 replicas of web-spot cannot pull an image: "web:2": not found'
            " (pod web-b). Correct its name, or the pull secret; where it is right, look at the registry."
        )

    def test_several_causes(self) -> None:
        """A sentence each, the gravest first."""
        notes = troubles(spot(ill("a", CRASH), ill("b", IMAGE), unbound("c", CLAIM)), GRACE_S)
        assert [note.reason for note in notes] == [
            Reason.IMAGE_PULL_FAILED,
            Reason.CRASH_LOOPING,
            Reason.VOLUME_UNAVAILABLE,
        ]

    def test_refused(self) -> None:
        """What the API server refuses has no pod to name."""
        sets = [replica_set("web-spot-1", 6, pods(4), attachment=Attachment.ATTACHED, refusal=QUOTA)]
        (result,) = said(observation(spot=twin_of(Pool.SPOT, sets, updated=4)))
        assert result == (
            "QuotaExceeded: 2 of 6 replicas of web-spot are refused by a quota: exceeded quota: small."
            " Raise it: a move needs room for maxSurge replicas more, one at least."
        )

    def test_of_a_parked_replica_set(self) -> None:
        """What the source had before, or gets back, is looked at as well."""
        result = said(observation(sets=[replica_set("web-1", of=[ill("a", IMAGE)])]))
        assert len(result) == 1
        assert "1 of 1 replicas of web-1" in result[0]

    def test_same_news(self) -> None:
        """Another count or another pod is no other news; another image is."""
        first, more, other = (
            troubles(one, GRACE_S)[0].about
            for one in (
                spot(ill("a", IMAGE)),
                spot(ill("b", IMAGE), ill("c", IMAGE)),
                spot(ill("a", replace(IMAGE, detail='"web:3": not found'))),
            )
        )
        assert first == more != other


class TestWhenItIsTrouble:
    @pytest.mark.parametrize(
        ("one", "reason"),
        [
            pytest.param(
                ill("a", IMAGE, unready_since=ago(1)), Reason.IMAGE_PULL_FAILED, id="kubelet-at-once"
            ),
            pytest.param(ill("a", unready_since=ago(179)), None, id="starting"),
            pytest.param(ill("a", unready_since=ago(180)), Reason.NOT_READY, id="not-ready"),
            pytest.param(unbound("a", CLAIM, 179), None, id="volume-comes"),
            pytest.param(unbound("a", CLAIM, 180), Reason.VOLUME_UNAVAILABLE, id="volume"),
            pytest.param(unbound("a", age_s=180), Reason.NODES_UNSUITABLE, id="taint"),
            pytest.param(unbound("a", age_s=179), None, id="taint-of-a-new-node"),
            pytest.param(ill("a", IMAGE, node_status=NodeStatus.DOOMED), None, id="doomed"),
            pytest.param(ill("a", IMAGE, node_status=NodeStatus.LOST), None, id="lost"),
            pytest.param(ill("a", IMAGE, terminating=True), None, id="going"),
            pytest.param(pod("a", trouble=IMAGE), None, id="ready"),
        ],
    )
    def test_one_pod(self, one: Replica, reason: Reason | None) -> None:
        """The kubelet is believed at once; what may only take its time is trouble after the grace."""
        collected = [note.reason for note in troubles(spot(one, excluded=TAINT), GRACE_S)]
        assert collected == ([reason] if reason else [])

    def test_a_shortage_is_none(self) -> None:
        """Pods that only lack a node are what rebalancing is for."""
        assert not said(spot(unbound("a")))

    def test_gated(self) -> None:
        """A gated pod was never tried: it waits since it was made."""
        gate = Trouble(Reason.SCHEDULING_GATED, "spec.schedulingGates is not empty")
        gated = pod("a", NodeStatus.UNBOUND, trouble=gate, created=ago(181))
        assert [note.reason for note in troubles(spot(gated), GRACE_S)] == [Reason.SCHEDULING_GATED]

    def test_not_ready_since(self) -> None:
        """The instant is said, not how long ago that is: the sentence stays the same."""
        result = said(spot(ill("a", unready_since=ago(3600)), ill("b", unready_since=ago(1800))))
        assert result[0].startswith(
            "NotReady: 2 of 2 replicas of web-spot have a node, but are not ready: since 09:00:00Z (pod a)."
        )

    def test_looked_at_again(self) -> None:
        """When the grace of a starting pod is over, no event tells."""
        observed = spot(ill("a", unready_since=ago(100)))
        with_troubles(observed, BALANCED, GRACE_S)
        assert observed.waits.next_due_s == 80.0


class TestVerdict:
    def test_rest(self) -> None:
        """Counts as wanted and replicas that do not run is no steady state."""
        planned = with_troubles(spot(ill("a", IMAGE)), BALANCED, GRACE_S)
        assert (planned.state, planned.verdict.reason) == (State.HELD, Reason.IMAGE_PULL_FAILED)
        assert planned.verdict.message.endswith(" (4 and 6, as wanted)")

    def test_what_is_held(self) -> None:
        """A hold says what it waits for, and who is to blame."""
        soaking = replace(BALANCED, state=State.HELD, verdict=Note(Reason.SOAKING, "hold on-demand at 6"))
        planned = with_troubles(spot(ill("a", unready_since=ago(600))), soaking, GRACE_S)
        assert planned.verdict.reason is Reason.NOT_READY
        assert "(pod a)" in planned.verdict.message
        assert planned.verdict.message.endswith("(hold on-demand at 6)")

    @pytest.mark.parametrize("reason", [Reason.CONTROL_PLANE_VIEW, Reason.FROZEN])
    def test_what_is_worse(self, reason: Reason) -> None:
        """A hold that has a cause of its own keeps its word; the trouble is told beside it."""
        plan = replace(BALANCED, verdict=Note(reason, "worse"))
        planned = with_troubles(spot(ill("a", IMAGE)), plan, GRACE_S)
        assert planned.verdict.reason is reason
        assert planned.verdict.message.startswith("worse. 1 of 1 replicas of web-spot cannot pull an image")
        assert [note.reason for note in planned.troubles] == [Reason.IMAGE_PULL_FAILED]

    def test_emergency(self) -> None:
        """What is written now goes first, whatever is wrong with replicas."""
        lost = Note(Reason.SPOT_LOST, "scale on-demand 4 -> 10 (+6)", warning=True)
        plan = replace(BALANCED, verdict=lost, actions=(DeleteTwin("web-spot", "uid"),))
        planned = with_troubles(spot(ill("a", IMAGE)), plan, GRACE_S)
        assert planned.verdict is lost
        assert [note.reason for note in planned.troubles] == [Reason.IMAGE_PULL_FAILED]

    def test_all_well(self) -> None:
        """Without trouble the plan stays as it is."""
        assert with_troubles(spot(*pods(6)), BALANCED, GRACE_S) == BALANCED
