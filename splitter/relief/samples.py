"""Judges what was measured: which samples count, and which nodes are hot by them.

A sample that cannot be true counts as none. Where that is so of more than half of the nodes, the source is
not to be believed at all, and relief pauses.
"""

from collections.abc import Iterable, Mapping
from math import isfinite

from splitter.core.model import seconds_between
from splitter.core.relief.model import SKEW_S, Amounts, Resource, Sample, Thresholds, Tuning
from splitter.relief.loads import Cluster, NodeLoad, PastMove

History = Mapping[str, tuple[Sample, ...]]
"""The last samples of each node, by its UID, oldest first. In memory: after a restart they are taken anew."""

# Of a node, by a pod. More cannot be used, whatever the clocks of a kubelet do.
_MOST_PERCENT = 1000.0
# Of what a node can allocate, by the node itself: whoever tells percent for cores is mostly above that.
_MOST_OF_ITSELF = 250.0
# Pods and nodes are measured at different times: so much more may pods seem to use than their node does.
_PODS_TO_NODE = 1.5


def faults_of(cluster: Cluster, tuning: Tuning) -> dict[str, str]:
    """Return for each node, by name, why its sample cannot be used; empty: it can."""
    nodes = {node.name: node for node in cluster.nodes}
    pods = dict.fromkeys(nodes, Amounts())
    for replica in (one for workload in cluster.workloads for one in workload.replicas):
        node = nodes.get(replica.node)
        sample = usable(cluster, replica.uid, node, tuning) if node is not None else None
        if sample is not None:
            pods[replica.node] += sample.used
    return {name: _fault_of(cluster, node, pods[name], tuning) for name, node in nodes.items()}


def _fault_of(cluster: Cluster, node: NodeLoad, pods: Amounts, tuning: Tuning) -> str:
    sample = cluster.node_samples.get(node.name)
    if sample is None:
        return "not measured"
    if fault := _fault(sample, node.allocatable, cluster, tuning, _MOST_OF_ITSELF):
        return fault
    if any(pods.of(one) > _PODS_TO_NODE * sample.used.of(one) for one in Resource):
        return "its pods use more than it does"
    return ""


def usable(cluster: Cluster, pod_uid: str, node: NodeLoad, tuning: Tuning) -> Sample | None:
    """Return the sample of a pod, if it can be true."""
    sample = cluster.pod_samples.get(pod_uid)
    if sample is None or _fault(sample, node.allocatable, cluster, tuning):
        return None
    return sample


def _fault(
    sample: Sample,
    allocatable: Amounts,
    cluster: Cluster,
    tuning: Tuning,
    most_percent: float = _MOST_PERCENT,
) -> str:
    age_s = seconds_between(sample.at, cluster.now)
    if age_s > tuning.stale_s:
        return "its sample is stale"
    if age_s < -SKEW_S:
        return "its sample is of the future"
    for one in Resource:
        used, whole = sample.used.of(one), allocatable.of(one)
        if not isfinite(used) or used < 0:
            return f"its use of {one} is no amount"
        if whole <= 0 or used > whole * most_percent / 100:
            return f"its use of {one} is above {most_percent:.0f} %"
    return ""


def sum_of(amounts: Iterable[Amounts]) -> Amounts:
    """Return all of them together."""
    return sum(amounts, Amounts())


def remembered(
    history: History, cluster: Cluster, past: tuple[PastMove, ...], faults: Mapping[str, str], tuning: Tuning
) -> History:
    """Return the history with the samples of now, and without those from before a node's last move.

    A node that gives or receives is judged by what is measured when that has ended.
    """
    going = {uid for one in past if one.ended is None for uid in (one.from_node, one.to_node)}
    ends = sorted((one.ended, uid) for one in past if one.ended for uid in (one.from_node, one.to_node))
    last_end = {uid: at for at, uid in ends}
    kept: dict[str, tuple[Sample, ...]] = {}
    for node in cluster.nodes:
        if faults.get(node.name):
            continue  # the row ends
        row = [*history.get(node.uid, ())]
        now = cluster.node_samples[node.name]
        if not row or now.at > row[-1].at:
            if row and seconds_between(row[-1].at, now.at) > tuning.stale_s:
                row = []
            row.append(now)
        if node.uid in going:
            row = []
        elif (ended := last_end.get(node.uid)) is not None:
            row = [one for one in row if one.at > ended]
        kept[node.uid] = tuple(row[-tuning.samples :])
    return kept


def hot_by(
    node: NodeLoad, row: tuple[Sample, ...], thresholds: Thresholds, samples: int, below: float
) -> tuple[Resource, ...]:
    """Return in what a node is hot: over the threshold, or so many points below it, in each last sample."""
    if len(row) < samples:
        return ()
    return tuple(
        resource
        for resource, percent in thresholds.percent.items()
        if all(one.used.of(resource) > node.allocatable.of(resource) * (percent - below) / 100 for one in row)
    )


def paused_by(cluster: Cluster, faults: Mapping[str, str]) -> str:
    """Return why nothing that was measured is believed; empty: it is."""
    names = {node.name for node in cluster.nodes}
    if not cluster.node_samples:
        return "there are no metrics of nodes; install metrics-server, or set the address of a Prometheus"
    if not names & set(cluster.node_samples):
        return "the metrics are of no node that is here"
    bad = sorted(name for name, fault in faults.items() if fault)
    if 2 * len(bad) > len(names):
        # Always in the same words: numbers and names would be news for every Split at each look.
        return "the metrics of more than half of the nodes are missing, old or impossible (kubectl top nodes)"
    return ""
