"""Refused honestly: each with its reason and a remedy, one at a time."""

from dataclasses import replace
from typing import Any

import pytest

from builders import free_source, observation, replica_set, source
from splitter.core.eligibility import advice, objection_while_split, refusal
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, RelatedObjects
from splitter.core.reasons import Reason


def test_a_plain_workload_is_eligible() -> None:
    """Nothing stands in its way."""
    assert refusal(observation(), free_source(), Policy(), ("kube-system",)) is None


@pytest.mark.parametrize(
    ("fields", "reason", "remedy"),
    [
        ({"controller": "Shop/web"}, Reason.OWNED_BY_CONTROLLER, "split what that controller creates"),
        ({"paused": True}, Reason.ALREADY_PAUSED, "kubectl rollout resume"),
        ({"unpaused_by_manifest": "Argo CD"}, Reason.UNPAUSED_BY_MANIFEST, "remove that line"),
        ({"recreate": True}, Reason.STRATEGY_RECREATE, "set spec.strategy.type to RollingUpdate"),
        ({"releasable": False}, Reason.SELECTOR_NOT_RELEASABLE, "re-create the Deployment"),
    ],
)
def test_is_refused_with_a_remedy(fields: dict[str, Any], reason: Reason, remedy: str) -> None:
    """The sentence says what to do."""
    refused = refusal(observation(), free_source(**fields), Policy(), ())
    assert refused is not None
    assert refused.reason is reason
    assert remedy in refused.message
    assert refused.warning


def test_a_rollout_in_progress_only_waits() -> None:
    """It ends by itself: no warning, but with the numbers."""
    refused = refusal(observation(), free_source(rollout_complete=False, rollout="3 updated"), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.ROLLOUT_IN_PROGRESS
    assert "3 updated" in refused.message
    assert not refused.warning


def test_a_foreign_object_under_a_twins_name() -> None:
    """It is not ours to overwrite."""
    around = RelatedObjects(taken_names=("web-spot",))
    refused = refusal(observation(related=around), free_source(), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.TWIN_NAME_TAKEN
    assert "web-spot" in refused.message


def test_an_excluded_namespace_comes_first() -> None:
    """Nothing else is said about a workload that is none of our business."""
    refused = refusal(observation(), free_source(recreate=True), Policy(), ("shop",))
    assert refused is not None
    assert refused.reason is Reason.NAMESPACE_EXCLUDED


def test_one_thing_at_a_time() -> None:
    """What must be mended first is said first."""
    refused = refusal(observation(), free_source(paused=True, recreate=True), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.ALREADY_PAUSED


class TestOneNodeVolume:
    """All replicas of a Deployment share its claims, and twins never share a node."""

    AROUND = RelatedObjects(one_node_claim="uploads")

    def test_is_refused(self) -> None:
        """With the claim's name and the remedy."""
        refused = refusal(observation(related=self.AROUND), free_source(), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.VOLUME_READ_WRITE_ONCE
        assert "uploads" in refused.message
        assert "ReadWriteMany" in refused.message

    @pytest.mark.parametrize(("replicas", "surge", "refused"), [(1, 1, True), (2, 0, True), (1, 0, False)])
    def test_only_where_two_pods_exist_at_a_time(self, replicas: int, surge: int, refused: bool) -> None:
        """A single replica that goes before its replacement comes may take its volume along."""
        lone = free_source(replicas, max_surge=surge, max_unavailable=1)
        assert (refusal(observation(related=self.AROUND), lone, Policy(), ()) is not None) is refused


class TestPodsThatNobodyCouldTellApart:
    """Running pods change their owner by their labels: what is in the way is refused at once."""

    @pytest.mark.parametrize("label", ["splitter.io/pool", "splitter.io/source", "pod-template-hash"])
    def test_a_label_that_is_taken(self, label: str) -> None:
        """By the selector or the pod template; the sentence names it."""
        refused = refusal(observation(), free_source(pod_labels=("app", label)), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.SELECTOR_NOT_RELEASABLE
        assert label in refused.message

    def test_a_replica_set_that_was_adopted_by_hand(self) -> None:
        """It does not select its pods by their hash; a restart makes one that does."""
        own = replace(replica_set("mine", 2, attachment=Attachment.ATTACHED), hashes=())
        refused = refusal(observation(sets=[own]), free_source(), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.SELECTOR_NOT_RELEASABLE
        assert "mine" in refused.message

    def test_an_old_one_without_pods(self) -> None:
        """Is parked as it is."""
        own = replace(replica_set("mine", 0, attachment=Attachment.ATTACHED), hashes=())
        assert refusal(observation(sets=[own]), free_source(), Policy(), ()) is None


class TestWhileSplit:
    """A workload that becomes ineligible is kept safe and reported, never dropped."""

    @pytest.mark.parametrize(
        ("fields", "around", "reason"),
        [
            ({"recreate": True}, RelatedObjects(), Reason.STRATEGY_RECREATE),
            ({"controller": "Shop/web"}, RelatedObjects(), Reason.OWNED_BY_CONTROLLER),
            (
                {},
                RelatedObjects(autoscaled_twin="HorizontalPodAutoscaler/web-spot"),
                Reason.AUTOSCALER_ON_TWIN,
            ),
            ({}, RelatedObjects(one_node_claim="uploads"), Reason.VOLUME_READ_WRITE_ONCE),
        ],
    )
    def test_is_reported(self, fields: dict[str, Any], around: RelatedObjects, reason: Reason) -> None:
        """With the reason that would refuse it, and what happens meanwhile."""
        note = objection_while_split(observation(related=around), source(**fields), Policy())
        assert note is not None
        assert note.reason is reason
        assert note.message.endswith("It stays split and is kept safe until its label is removed")

    def test_what_we_did_ourselves_is_no_objection(self) -> None:
        """It is paused by us, its twins have their names, and it never looks rolled out."""
        ours = source(paused=True, rollout_complete=False)
        assert (
            objection_while_split(
                observation(related=RelatedObjects(taken_names=("web-spot",))), ours, Policy()
            )
            is None
        )


class TestAdvice:
    """What is allowed, but better known."""

    def test_nothing_to_say(self) -> None:
        """A plain workload needs no advice."""
        assert advice(observation(), free_source()) == ()

    def test_one_pod_a_node(self) -> None:
        """Surge replicas may stay Pending."""
        (result,) = advice(observation(), free_source(one_a_node="hostPort 8080"))
        assert result.reason is Reason.SURGE_MAY_PEND
        assert result.message.startswith("hostPort 8080 allows one pod on a node")
        assert advice(observation(), free_source(one_a_node="hostPort 8080", max_surge=0)) == ()

    def test_an_autoscaler_that_loses_its_tolerance(self) -> None:
        """With the setting that makes up for it."""
        around = RelatedObjects(untolerant_autoscaler="ScaledObject/web")
        (result,) = advice(observation(related=around), free_source())
        assert result.reason is Reason.AUTOSCALER_WITHOUT_TOLERANCE
        assert "stabilizationWindowSeconds" in result.message
        assert not result.warning
