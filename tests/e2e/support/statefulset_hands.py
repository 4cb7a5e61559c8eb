"""An autoscaler of a StatefulSet, or of its Split."""

from lab.fixtures.metrics_api import TARGET_PERCENT, WINDOW_S


def autoscaler(version: str, kind: str, name: str) -> dict[str, object]:
    """Return an autoscaler on CPU that scales out at once, and in after a short window."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": TARGET_PERCENT}}
    out, in_ = ({"stabilizationWindowSeconds": seconds} for seconds in (0, WINDOW_S))
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "db"},
        "spec": {
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name},
            "minReplicas": 2,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": cpu}],
            "behavior": {"scaleUp": out, "scaleDown": in_},
        },
    }
