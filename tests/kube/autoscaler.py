"""The status ConfigMap of cluster-autoscaler."""

from datetime import UTC, datetime

from kube.raw import Raw, metadata

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
STATUS = """\
time: 2026-01-05 09:59:50.546750398 +0000 UTC
autoscalerStatus: Running
clusterWide:
  scaleUp: {status: InProgress}
nodeGroups:
- name: eks-spot-a
  health: {status: Healthy, cloudProviderTarget: 8, minSize: 2, maxSize: 12}
  scaleUp:
    status: Backoff
    backoffInfo: {errorCode: InsufficientInstanceCapacity, errorMessage: "no: capacity"}
- name: eks-workers
  scaleUp: {status: NoActivity}
"""


def config_map(text: str | None, version: int = 20) -> Raw:
    """Return the ConfigMap."""
    result = metadata("cluster-autoscaler-status", version=version, namespace="kube-system")
    return {"metadata": result} if text is None else {"metadata": result, "data": {"status": text}}
