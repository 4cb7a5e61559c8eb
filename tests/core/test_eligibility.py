"""Refused honestly: each with its reason and a remedy, one at a time."""

from typing import Any

import pytest

from builders import free_source, observation
from splitter.core.eligibility import refusal
from splitter.core.reasons import Reason


def test_a_plain_workload_is_eligible() -> None:
    """Nothing stands in its way."""
    assert refusal(observation(), free_source(), ("kube-system",)) is None


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
    found = refusal(observation(), free_source(**fields), ())
    assert found is not None
    assert found.reason is reason
    assert remedy in found.message
    assert found.warning


def test_a_rollout_in_progress_only_waits() -> None:
    """It ends by itself: no warning, but with the numbers."""
    found = refusal(observation(), free_source(rollout_complete=False, rollout="3 updated"), ())
    assert found is not None
    assert found.reason is Reason.ROLLOUT_IN_PROGRESS
    assert "3 updated" in found.message
    assert not found.warning


def test_a_foreign_object_under_a_twins_name() -> None:
    """It is not ours to overwrite."""
    found = refusal(observation(taken_names=("web-spot",)), free_source(), ())
    assert found is not None
    assert found.reason is Reason.TWIN_NAME_TAKEN
    assert "web-spot" in found.message


def test_an_excluded_namespace_comes_first() -> None:
    """Nothing else is said about a workload that is none of our business."""
    found = refusal(observation(), free_source(recreate=True), ("shop",))
    assert found is not None
    assert found.reason is Reason.NAMESPACE_EXCLUDED


def test_one_thing_at_a_time() -> None:
    """What must be mended first is said first."""
    found = refusal(observation(), free_source(paused=True, recreate=True), ())
    assert found is not None
    assert found.reason is Reason.ALREADY_PAUSED
