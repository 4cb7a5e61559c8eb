"""What is played: the numbers of the comparison, in one place, and the same for every system.

`rounds` acts them out, `columns` says what is to be reached with them, `report` prints them beside the
figures. Source: docs/compare.md (N = 20, 80 % on spot, 4 + 8 nodes, Ready after 5 s).
"""

from dataclasses import dataclass

N = 20
SURGE = 5  # maxSurge and maxUnavailable are Kubernetes' own 25 %
ON_DEMAND_NODES, SPOT_NODES = 4, 8
ON_DEMAND_WANTED, SPOT_WANTED = 4, 16  # 80 % of N

NOTICE_S = 30.0
LONG_NOTICE_S = 120.0
OUTAGES, OUTAGE_S, GAP_S = 3, 60.0, 120.0
SOAK_S = 60

IMAGE, NEXT_IMAGE = "web:1", "web:2"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment of N replicas whose pods are Ready so many seconds after they are scheduled."""

    name: str
    ready_after_s: int


QUICK = Workload("quick", 5)
SLOW = Workload("slow", 60)

# What a splitter with its default settings is told about each workload.
ANNOTATIONS = {"splitter.io/spot-percent": "80", "splitter.io/soak": f"{SOAK_S}s"}

_REPORTED = ", ".join(f"{key}={text}" for key, text in ANNOTATIONS.items())

TEXT = f"""\
One control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler; KWOK plays the kubelets),
{ON_DEMAND_NODES} on-demand and {SPOT_NODES} spot nodes of 8 CPUs, told apart by karpenter.sh/capacity-type,
with no taints of their own. Each system has the same Deployment in a namespace of its own: {N} replicas
of 100m CPU, maxSurge and maxUnavailable 25 %, pods Ready {QUICK.ready_after_s} s after they are scheduled
(slow starters: {SLOW.ready_after_s} s), and gone 1 s after they are deleted. All systems live through the
same events at the same moments; only in c, where tenths of a second count, one after the other. Each round
begins with new Deployments.

notice      the taint karpenter.sh/disrupted:NoSchedule on all spot nodes
gone        the Node objects of all spot nodes are deleted, and right after that the pods on them, with grace
            0; a pod is lost from the moment its Node is gone
outage      gone, and {OUTAGE_S:g} s later new nodes of the same names; the next comes {GAP_S:g} s after that
splitter    all settings at their defaults; annotations {_REPORTED}.
            Spot that is lost after less than an hour doubles the soak: {2 * SOAK_S} s after the first outage
            of a round, {4 * SOAK_S} s after the second

available   Ready, not terminating, on a node that exists and is Ready, as watches of our own saw it
lost        the replicas missing from {N} available ones, times the seconds they were missing (an integral)
min, max    the fewest available replicas; the most pods at any moment, Pending ones in, terminating ones out
back after  seconds from the loss until {N} were available for good
complete    seconds from the new nodes until as many replicas were available on spot as before the outage
returns     gaps between outages in which on-demand was lowered; dips: times below {N} within the gaps
the bound   N + max(S, starting) + doomed, at each moment
"""
