"""Refused honestly: each with its reason and a remedy, one at a time."""

from dataclasses import replace
from typing import Any

import pytest

from builders import free_source, observation, pods, replica_set, source
from splitter.core.eligibility import advice, objection_while_split, refusal
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import RelatedObjects
from splitter.core.placeable import OneNodeClaim
from splitter.core.reasons import Reason


def test_a_plain_workload_is_eligible() -> None:
    """Nothing stands in its way."""
    assert refusal(observation(), free_source(), Policy(), ("kube-system",)) is None


def test_an_excluded_namespace_comes_first() -> None:
    """Nothing else is said about a workload that is none of our business."""
    refused = refusal(observation(), free_source(recreate=True), Policy(), ("shop",))
    assert refused is not None
    assert (refused.reason, refused.warning) == (Reason.NAMESPACE_EXCLUDED, True)


def test_one_thing_at_a_time() -> None:
    """What must be mended first is said first."""
    refused = refusal(observation(), free_source(paused=True, recreate=True), Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.ALREADY_PAUSED


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
            ({}, RelatedObjects(one_node_claim=OneNodeClaim("uploads")), Reason.VOLUME_READ_WRITE_ONCE),
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

    def test_pods_with_a_priority(self) -> None:
        """The replica that asks for spot in an outage has it as well; with none there is nothing to say."""
        (pod,) = pods(1)
        low, high = (replica_set("web-1", of=[replace(pod, priority=at)]) for at in (0, 1000))
        assert advice(observation(free_source(), [low]), free_source()) == ()
        (result,) = advice(observation(free_source(), [high]), free_source())
        assert result.reason is Reason.PROBE_MAY_PREEMPT
        assert "the priority 1000" in result.message
        assert "preemptionPolicy: Never" in result.message

    def test_an_autoscaler_that_loses_its_tolerance(self) -> None:
        """With the setting that makes up for it."""
        around = RelatedObjects(untolerant_autoscaler="ScaledObject/web")
        (result,) = advice(observation(related=around), free_source())
        assert result.reason is Reason.AUTOSCALER_WITHOUT_TOLERANCE
        assert "stabilizationWindowSeconds" in result.message
        assert not result.warning
