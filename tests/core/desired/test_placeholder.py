"""The pod that does nothing: it fits the restricted standard, reads nothing and yields to everybody."""

from typing import Any

from splitter.core.desired.placeholder import PRIORITY_CLASS, idle_pod
from splitter.core.desired.scheduling import NodePresets, ReservationRules

RULES = ReservationRules(NodePresets((), ()), "pause:1")


def test_has_a_container_for_each_that_holds_room() -> None:
    """With its resources and ports, under a name of ours, and no image but the settings' one."""
    asked: list[dict[str, Any]] = [{"resources": {"requests": {"cpu": "1"}}}, {"ports": [{"hostPort": 80}]}]
    containers = idle_pod(RULES, asked)["containers"]
    assert isinstance(containers, list)
    assert [(one["name"], one["image"]) for one in containers] == [
        ("room-0", "pause:1"),
        ("room-1", "pause:1"),
    ]
    assert (containers[0]["resources"], containers[1]["ports"]) == (asked[0]["resources"], asked[1]["ports"])


def test_fits_the_restricted_standard() -> None:
    """All that it asks for, of the pod and of each container."""
    spec = idle_pod(RULES, [{}])
    containers, security = spec["containers"], spec["securityContext"]
    assert isinstance(containers, list)
    assert isinstance(security, dict)
    own = containers[0]["securityContext"]
    assert (own["allowPrivilegeEscalation"], own["capabilities"]) == (False, {"drop": ["ALL"]})
    assert (security["runAsNonRoot"], security["seccompProfile"]) == (True, {"type": "RuntimeDefault"})


def test_reads_nothing_and_yields_at_once() -> None:
    """No token, no addresses of Services; it ends without a grace."""
    spec = idle_pod(RULES, [])
    assert spec["automountServiceAccountToken"] is spec["enableServiceLinks"] is False
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == (PRIORITY_CLASS, 0)


def test_is_pulled_with_the_secrets_that_are_named() -> None:
    """Where there are none the field is not there."""
    assert "imagePullSecrets" not in idle_pod(RULES, [])
    named = ReservationRules(RULES.nodes, "pause:1", pull_secrets=("a", "b"))
    assert idle_pod(named, [])["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
