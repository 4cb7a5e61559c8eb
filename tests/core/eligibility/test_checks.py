"""What stands in the way of splitting any workload, with what to do."""

from dataclasses import replace

import pytest

from builders import KEY, ago, free_source, observation, pod, pods, replica_set, split, twin
from splitter.core.eligibility import objection_while_split, refusal
from splitter.core.eligibility.checks import autoscaler_on_twin, controlled_by_another, replicas_starting
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import MAX_MANIFEST_BYTES
from splitter.core.model import Attachment, Note, RelatedObjects
from splitter.core.names import STATEFUL_SET
from splitter.core.placeable import OneNodeClaim
from splitter.core.reasons import Reason, VerdictCause
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.split_status import Condition
from splitter.core.stateful import StatefulView


def test_a_rollout_in_progress_only_waits() -> None:
    """It ends by itself: no warning, but with the numbers."""
    refused = refusal(observation(), free_source(rollout_complete=False, rollout="3 updated"), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.ROLLOUT_IN_PROGRESS
    assert "3 updated" in refused.message
    assert not refused.warning


class TestReplicasThatAreNotReady:
    """What is fully updated is taken over: only what may be ready in a moment is waited for."""

    GRACE_S = Policy().grace_s
    IMAGE = Trouble(Reason.IMAGE_PULL_FAILED, "no such image")

    def said(self, *unready: Replica, spec: int = 3, refused: Trouble | None = None) -> Note | None:
        """Return what is said of a Deployment with two ready pods and these."""
        own = replica_set(
            "web-h1", spec, [*pods(2), *unready], attachment=Attachment.ATTACHED, refusal=refused
        )
        return refusal(observation(sets=[own]), free_source(spec, all_available=False), Policy(), ())

    @pytest.mark.parametrize(
        "unready",
        [
            pod("late", NodeStatus.UNBOUND, unschedulable_since=ago(GRACE_S + 1)),
            pod("unseen", NodeStatus.UNBOUND),  # by its own scheduler, which says nothing
            pod("ill", ready=False, trouble=IMAGE, unready_since=ago(1)),
            pod("slow", ready=False, unready_since=ago(GRACE_S + 1)),
        ],
        ids=lambda one: one.name,
    )
    def test_one_that_is_held_up_keeps_nothing_waiting(self, unready: Replica) -> None:
        """It may be so for ever, and its cause is named once it is split."""
        assert self.said(unready) is None

    @pytest.mark.parametrize(
        "unready",
        [
            pod("new", NodeStatus.UNBOUND, created=ago(1)),
            pod("pending", NodeStatus.UNBOUND, unschedulable_since=ago(GRACE_S - 1)),
            pod("starting", ready=False, unready_since=ago(GRACE_S - 1)),
        ],
        ids=lambda one: one.name,
    )
    def test_one_that_starts_is_waited_for(self, unready: Replica) -> None:
        """No rollout is said to go on; the replica is named, and how long it has."""
        said = self.said(unready)
        assert said is not None
        assert (said.reason, said.warning) == (Reason.WAITING_FOR_REPLICAS, False)
        assert f"1 of 3 replicas are starting (pod {unready.name})" in said.message
        assert "180 s" in said.message
        assert said.cause is VerdictCause.ON_THE_WAY, "it is looked at again by time"

    def test_one_that_is_not_made(self) -> None:
        """In a moment it may be; where the API server refuses it, nobody waits."""
        assert (said := self.said()) is not None
        assert "1 of 3 replicas are starting;" in said.message
        assert self.said(refused=Trouble(Reason.PODS_REFUSED, "serviceaccount not found")) is None

    def test_members_behind_one_that_is_held_up(self) -> None:
        """OrderedReady makes none of them before it is ready."""
        held_up = pod("db-1", ready=False, trouble=self.IMAGE, ordinal=1)
        itself = replica_set("db", 5, [pod("db-0", ordinal=0), held_up])
        members = free_source(5, all_available=False, stateful=StatefulView(5, 5, 1, ago(9)))
        assert replicas_starting(observation(sets=[itself]), members, Policy()) is None


def test_a_foreign_object_under_a_twins_name() -> None:
    """It is not ours to overwrite."""
    around = RelatedObjects(taken_names=("web-spot",))
    refused = refusal(observation(related=around), free_source(), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.TWIN_NAME_TAKEN
    assert "web-spot" in refused.message


class TestOneNodeVolume:
    """All replicas of a Deployment share its claims, and twins never share a node."""

    AROUND = RelatedObjects(one_node_claim=OneNodeClaim("uploads"))

    def test_is_refused(self) -> None:
        """With the claim's name and the remedy."""
        refused = refusal(observation(related=self.AROUND), free_source(), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.VOLUME_READ_WRITE_ONCE
        assert "uploads, which is ReadWriteOnce: a pod on a second node never starts" in refused.message
        assert "ReadWriteMany" in refused.message

    @pytest.mark.parametrize("one_pod", [True, False])
    @pytest.mark.parametrize(("replicas", "surge"), [(1, 1), (2, 0), (1, 0), (0, 0)])
    def test_whatever_count_and_surge(self, replicas: int, surge: int, *, one_pod: bool) -> None:
        """A move makes the new replica first, also of a single one without surge: it waits for ever."""
        around = RelatedObjects(one_node_claim=OneNodeClaim("uploads", one_pod=one_pod))
        lone = free_source(replicas, max_surge=surge, max_unavailable=1)
        refused = refusal(observation(related=around), lone, Policy(), ())
        assert refused is not None
        assert ("a second pod is never scheduled" in refused.message) is one_pod


def test_a_controller_that_would_undo_it() -> None:
    """Of a StatefulSet that is another write than of a Deployment."""
    owned = free_source(controller="Shop/web")
    said = [
        controlled_by_another(observation(), one, Policy())
        for one in (owned, replace(owned, key=replace(owned.key, kind=STATEFUL_SET)))
    ]
    assert [note.message.partition(";")[0] for note in said if note is not None] == [
        "Shop/web owns this Deployment and would undo the pause",
        "Shop/web owns this StatefulSet and would undo each change of its replicas",
    ]
    assert all(note is not None and note.cause is None for note in said), "a watch tells of its owners"


def test_an_autoscaler_on_a_twin() -> None:
    """Where it belongs is another object for each kind; no watch tells when it is mended."""
    around = observation(related=RelatedObjects(autoscaled_twin="HorizontalPodAutoscaler/web-spot"))
    for one, handle in (
        (free_source(), "source"),
        (free_source(key=replace(KEY, kind=STATEFUL_SET)), "Split"),
    ):
        said = autoscaler_on_twin(around, one, Policy())
        assert said is not None
        assert f"aim it at the {handle}, or delete it" in said.message
        assert said.cause is VerdictCause.ANOTHER_OBJECT


def test_what_the_dry_run_was_answered() -> None:
    """Is said as it is."""
    answer = Note(Reason.WRITE_DENIED, "a webhook says no")
    assert refusal(observation(denied=answer), free_source(), Policy(), ()) is answer


def test_a_twin_that_a_policy_has_changed() -> None:
    """It stays split, and says which fields; before a take-over there is no twin."""
    changed = replace(twin(Pool.SPOT), altered=("spec.replicas",), added=("spec.template.spec.volumes",))
    said = objection_while_split(observation(spot=changed), free_source(), Policy())
    assert said is not None
    assert said.reason is Reason.DRIFT
    assert (
        "made web-spot another than splitter wrote it: spec.replicas, spec.template.spec.vol" in said.message
    )
    assert objection_while_split(observation(spot=twin(Pool.SPOT)), free_source(), Policy()) is None


def test_a_twin_that_a_policy_had_changed_before_a_restart() -> None:
    """The Split goes on saying so, until the twin is written again."""
    said = Condition("Eligible", "False", "Drift", "a policy has made web-spot another")
    for unanswered, expected in ((True, said.message), (False, None)):
        seen = observation(
            spot=replace(twin(Pool.SPOT), unanswered=unanswered), split=split(conditions=(said,))
        )
        kept = objection_while_split(seen, free_source(), Policy())
        assert (kept.message if kept is not None else None) == expected


def test_more_than_anybody_writes() -> None:
    """Before all else that is wrong with it."""
    large = free_source(controller="Shop/web", manifest_json="x" * (MAX_MANIFEST_BYTES + 1))
    said = refusal(observation(), large, Policy(), ())
    assert said is not None
    assert (said.reason, said.warning) == (Reason.TOO_LARGE, True)
