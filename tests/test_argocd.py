"""What Argo CD thinks of a split workload: the scripts of manifests/argocd, run as Argo CD runs them.

`tests/e2e/test_argocd.py` runs them on the objects of a real control plane.
"""

from typing import Any

import pytest

from argocd import health
from builders import source
from core.one_reconcile import at_rest, planned


def deployment(
    *, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: object
) -> dict[str, Any]:
    """Make a Deployment of 3 replicas that is well, but for what is given."""
    well = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "generation": 2, **metadata},
        "spec": {"replicas": 3, **(spec or {})},
        "status": {**well, **(status or {})},
    }


def split(state: str, reason: str = "Balanced", **conditions: str) -> dict[str, Any]:
    """Make a Split with these conditions."""
    listed = [{"type": kind, "status": value} for kind, value in conditions.items()]
    status = {"state": state, "reason": reason, "message": "4 of 4", "conditions": listed}
    return {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": "Split",
        "metadata": {"name": "web"},
        "status": status,
    }


_OURS = {"splitter.io/taken-over": '{"uid":"u","time":"2026-01-31T12:00:00Z"}'}
_LABEL = {"splitter.io/split": "enabled"}
_EMPTY = {"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0}


class TestDeployments:
    """Split ones are healthy, all others what Argo CD itself says."""

    def test_are_healthy_while_split(self) -> None:
        """Paused, marked, without a pod of its own."""
        result = health(deployment(spec={"paused": True}, status=_EMPTY, annotations=_OURS, labels=_LABEL))
        assert result[0] == "Healthy"
        assert "split by splitter" in result[1]

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (
                "3 of 3 replicas are available (replicas=3 updated=3 ready=3 available=3 generation=2)",
                "Healthy",
            ),
            # Of the generation before: nothing is said of this one yet.
            (
                "3 of 3 replicas are available (replicas=3 updated=3 ready=3 available=3 generation=1)",
                "Progressing",
            ),
            (
                "3 of 3 replicas are available (replicas=3 updated=1 ready=3 available=3 generation=2)",
                "Progressing",
            ),
            (
                "2 of 3 replicas are available (replicas=3 updated=3 ready=2 available=2 generation=2)",
                "Progressing",
            ),
            ("30 of 30 replicas are available (all is well)", "Progressing"),
        ],
    )
    def test_tell_of_their_roll_with_the_condition(self, said: str, expected: str) -> None:
        """All have the template of this very generation; else Argo CD shows how many have."""
        condition = {"type": "splitter.io/Available", "status": "True", "message": said}
        status = {**_EMPTY, "conditions": [condition]}
        result = health(deployment(spec={"paused": True}, status=status, annotations=_OURS, labels=_LABEL))
        assert result[0] == expected
        assert (said in result[1]) is (expected == "Progressing")

    def test_read_the_condition_as_splitter_writes_it(self) -> None:
        """Word for word: the scripts have no string library."""
        shown = planned(at_rest(source=source(by_karmada=True))).shown
        assert shown is not None
        status = {"conditions": [shown.to_json()]}
        there = deployment(
            spec={"paused": True, "replicas": 10}, status=status, annotations=_OURS, labels=_LABEL
        )
        for generation, expected in ((7, "Healthy"), (8, "Progressing")):
            there["metadata"]["generation"] = generation
            assert health(there)[0] == expected

    def test_are_progressing_while_given_back(self) -> None:
        """The label is gone, the mark is not."""
        assert health(deployment(spec={"paused": True}, annotations=_OURS))[0] == "Progressing"

    @pytest.mark.parametrize("labels", [{}, _LABEL])
    def test_are_suspended_when_somebody_paused_them(self, labels: dict[str, str]) -> None:
        """No mark: not splitter's pause, with the label or without."""
        assert health(deployment(spec={"paused": True}, labels=labels)) == (
            "Suspended",
            "Deployment is paused",
        )

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ({}, "Healthy"),
            ({"observedGeneration": 1}, "Progressing"),
            ({"updatedReplicas": 2}, "Progressing"),
            ({"replicas": 4}, "Progressing"),
            ({"availableReplicas": 2}, "Progressing"),
            ({"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}, "Degraded"),
            ({"conditions": [{"type": "Progressing", "reason": "NewReplicaSetAvailable"}]}, "Healthy"),
        ],
    )
    def test_are_judged_by_their_rollout(self, status: dict[str, Any], expected: str) -> None:
        """As `kubectl rollout status` does, and so Argo CD."""
        assert health(deployment(status=status))[0] == expected

    def test_are_progressing_before_their_controller_has_seen_them(self) -> None:
        """A Deployment just created has no status."""
        assert health({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}}) == (
            "Progressing",
            "waiting for the Deployment controller to see the last change",
        )


class TestSplits:
    """What a person should look at is Degraded, what is on its way Progressing."""

    @pytest.mark.parametrize(
        ("one", "expected"),
        [
            (split("Steady", Ready="True"), "Healthy"),
            (split("Held", "SpotLost", Ready="True", SpotAvailable="False"), "Healthy"),
            (split("Held", "SpotLost", Ready="False"), "Progressing"),
            (split("Moving", "SpotInterrupted", Ready="True"), "Progressing"),
            (split("TakingOver", "HandingOver", Ready="True"), "Progressing"),
            (split("Rolling", "Rolling", Ready="True"), "Progressing"),
            (split("GivingBack", "GivingBack", Ready="True"), "Progressing"),
            (split("Refused", "StrategyRecreate"), "Degraded"),
            (split("Refused", "RolloutInProgress"), "Progressing"),
            (split("Refused", "DryRun"), "Suspended"),
            (split("Steady", "Frozen", Ready="True"), "Suspended"),
            (split("Steady", "Frozen", Ready="True", PolicyValid="False"), "Degraded"),
            (split("Conflict", "Conflict"), "Degraded"),
            (split("Held", "ImagePullFailed", Ready="True", PodsHealthy="False"), "Degraded"),
            (split("Held", "CoverImpossible", Ready="True", PoolsFit="False"), "Degraded"),
            (split("Steady", "Balanced", Ready="True", PoolsFit="Unknown"), "Healthy"),
            (split("Steady", "Balanced", Ready="True", PolicyValid="False"), "Degraded"),
            (split("Held", "RolloutStalled", Ready="True"), "Degraded"),
            (split("Held", "SpotLost", Ready="True", Updated="True"), "Healthy"),
            (split("Held", "SpotLost", Ready="True", Updated="False"), "Progressing"),
            (split("Held", "Whatever", Ready="True", Stalled="True"), "Degraded"),
        ],
    )
    def test_are_judged_by_state_and_conditions(self, one: dict[str, Any], expected: str) -> None:
        """With the reason and its sentence as the message."""
        assert health(one) == (expected, f"{one['status']['reason']}: 4 of 4")

    def test_wait_for_the_first_report(self) -> None:
        """A Split just created has no status."""
        assert (
            health({"apiVersion": "splitter.io/v1alpha1", "kind": "Split", "metadata": {}})[0]
            == "Progressing"
        )
