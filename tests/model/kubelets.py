"""What kubelets do, and what becomes of pods by themselves: they start, fall ill, and end.

A replica that falls ill is an act of the world, as a node's loss is: `fall_ill` is for who plays the world.
"""

from model.cluster import LOST_PODS_STAY_S, Cluster, Ill, Pod
from splitter.core.model import Trouble
from splitter.core.reasons import Reason

NO_REGISTRY = Trouble(Reason.IMAGE_PULL_FAILED, '"web:1": the registry does not answer')
NO_IMAGE = Trouble(Reason.IMAGE_PULL_FAILED, '"web:2": not found')
CRASHING = Trouble(Reason.CRASH_LOOPING, "exit code 1 (Error)")
UNREADY_AFTER_S = 40  # Ready=Unknown reaches the pods of a lost kubelet
EVICTED_AFTER_S = 70  # with tolerationSeconds 30
RUNS_S = 3  # so long a crashing container looks ready
BACK_OFF_S, BACK_OFF_MAX_S = 10, 300  # before a container starts again, twice as long each time
TROUBLE_FROM = 2  # restarts, as `causes` has it


def run(cluster: Cluster) -> bool:
    """Let pods become ready and end where it is time; collect the pods of nodes that are gone."""
    changed = False
    for pod in list(cluster.pods.values()):
        if pod.terminating_until is not None:
            node = cluster.nodes.get(pod.node or "")
            stopped = cluster.now >= pod.terminating_until
            if stopped and (node is None or node.ready):
                del cluster.pods[pod.name]
                changed = True
        elif pod.node is not None and pod.node not in cluster.nodes:
            changed = _collect(cluster, pod) or changed
        elif pod.node is not None and not pod.finished:
            changed = _attend(cluster, pod) or changed
    return changed


def _collect(cluster: Cluster, pod: Pod) -> bool:
    if pod.ready_due is None:
        pod.ready_due = cluster.now + LOST_PODS_STAY_S  # here: when the garbage collector comes
        return False
    if cluster.now >= pod.ready_due:
        del cluster.pods[pod.name]
        return True
    return False


def _attend(cluster: Cluster, pod: Pod) -> bool:
    node = cluster.nodes[pod.node or ""]
    if node.unready_since is not None:
        if cluster.now >= node.unready_since + EVICTED_AFTER_S and not cluster.tolerates_silence:
            cluster.terminate(pod)
            return True
        if pod.ready_since is not None and cluster.now >= node.unready_since + UNREADY_AFTER_S:
            pod.ready_since = None
            return True
        return False
    if pod.ready_since is not None or pod.ready_due is None or cluster.now < pod.ready_due:
        return False
    pulled = pod.restarts > 0 or cluster.registry_answers
    trouble = NO_IMAGE if "broken" in pod.template else None if pulled else NO_REGISTRY
    if trouble is None and pod.ill is not Ill.UNREADY:
        pod.ready_since, pod.trouble = cluster.now, None
        return True
    changed, pod.trouble = pod.trouble != trouble, trouble
    return changed


def fall_ill(cluster: Cluster) -> bool:
    """Let the replicas cease to be ready whose containers crash."""
    due = [
        pod
        for pod in cluster.pods.values()
        if cluster.serves(pod) and _crashes(pod) and cluster.now >= (pod.ready_since or 0) + RUNS_S
    ]
    for pod in due:
        fail(cluster, pod, min(BACK_OFF_S * 2**pod.restarts, BACK_OFF_MAX_S))
        pod.restarts += 1
        pod.trouble = CRASHING if pod.restarts >= TROUBLE_FROM else None
    return bool(due)


def fail(cluster: Cluster, pod: Pod, seconds: int) -> None:
    """Make a ready replica unready for so long; for longer where it is ill."""
    pod.ready_since, pod.unready_since, pod.ready_due = None, cluster.now, cluster.now + seconds


def _crashes(pod: Pod) -> bool:
    return pod.ill is Ill.CRASHING or "crashing" in pod.template


def due(cluster: Cluster) -> list[int]:
    """Return when something may happen to a pod by itself; some of it has happened already."""
    pods = cluster.pods.values()
    collected = [pod.terminating_until for pod in pods if pod.terminating_until is not None]
    collected += [
        pod.ready_due
        for pod in pods
        if pod.ready_due is not None and (pod.ready_since is None or pod.node not in cluster.nodes)
    ]
    for pod in pods:
        if pod.ready_since is not None:
            collected += [pod.ready_since + cluster.min_ready_s]
            collected += [pod.ready_since + RUNS_S] if _crashes(pod) else []
    for node in cluster.nodes.values():
        if node.unready_since is not None:
            collected += [node.unready_since + UNREADY_AFTER_S, node.unready_since + EVICTED_AFTER_S]
    return collected
