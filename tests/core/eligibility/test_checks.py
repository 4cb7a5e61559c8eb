"""What stands in the way of splitting any workload, with what to do."""

from dataclasses import replace

import pytest

from builders import KEY, free_source, observation
from splitter.core.eligibility import refusal
from splitter.core.eligibility.checks import autoscaler_on_twin, controlled_by_another
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import MAX_MANIFEST_BYTES
from splitter.core.model import Note, RelatedObjects
from splitter.core.names import STATEFUL_SET
from splitter.core.placeable import OneNodeClaim
from splitter.core.reasons import Reason, VerdictCause


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


def test_more_than_anybody_writes() -> None:
    """Before all else that is wrong with it."""
    large = free_source(controller="Shop/web", manifest_json="x" * (MAX_MANIFEST_BYTES + 1))
    said = refusal(observation(), large, Policy(), ())
    assert said is not None
    assert (said.reason, said.warning) == (Reason.TOO_LARGE, True)
