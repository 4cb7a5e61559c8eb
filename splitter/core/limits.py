"""The size limits of a workload, so that one tenant cannot keep splitter busy for all.

Each reconcile of a workload reads, renders and compares it whole, and asks for its volumes one by one. So
each of these has a limit, far above what people write and far below what slows others. What is over one is
refused with the limit and its size, is not rendered and has nothing looked up. What is split already stays as
it is: `plan.held_as_it_is` keeps of a plan what makes up for losses, and nothing that lowers or restarts
anything. To give it back costs the same at any size, so that is never held. Kubernetes itself bounds an
object at some 1.5 MiB. What each limit costs is measured: docs/limits.md.
"""

from typing import Final

from splitter.core.model import SourceView
from splitter.core.stateful import StatefulView

# Of the manifest as JSON: labels, annotations and spec. `kubectl apply` keeps a second copy in an annotation.
MAX_MANIFEST_BYTES: Final = 512 * 1024
# Terms of a label selector, with their values: it is held against the labels of many pods. People write two.
MAX_TERMS: Final = 100
# PodDisruptionBudgets of users in one namespace: with more, none is compared with the pods of a workload.
MAX_BUDGETS: Final = 2000
# Volume claims of the pod template, and of all members of a StatefulSet: each costs a request or two.
MAX_CLAIMS: Final = 50
MAX_MEMBER_CLAIMS: Final = 250
# Of a Deployment, and of each of its twins: each is parked, and given back, by a request of its own.
MAX_REPLICA_SETS: Final = 250
# Writes of one reconcile; the next reconcile does the others. A reconcile may end anywhere: their order is
# all that counts.
MAX_WRITES: Final = 20
# Of a StatefulSet: each member is decided about by itself, and listed in its Split.
MAX_MEMBERS: Final = 1000


def too_large(source: SourceView) -> str:
    """Say which limit a workload is over, with its size and the limit; empty when it is within all."""
    size = len(source.manifest_json)
    if size > MAX_MANIFEST_BYTES:
        return (
            f"its manifest has {size // 1024} KiB with labels and annotations; at most"
            f" {MAX_MANIFEST_BYTES // 1024} KiB are looked after; make it smaller"
        )
    if source.selector_terms > MAX_TERMS:
        return (
            f"its selector has {source.selector_terms} terms and values; at most {MAX_TERMS} are looked"
            f" after; a selector is immutable, so delete the {source.key.kind} and create it again with fewer"
        )
    if len(source.claims) > MAX_CLAIMS:
        return f"its pods mount {len(source.claims)} volume claims; at most {MAX_CLAIMS} are looked after"
    return _too_many_members(source, source.stateful) if source.stateful is not None else ""


def _too_many_members(source: SourceView, stateful: StatefulView) -> str:
    if source.replicas > MAX_MEMBERS:
        return f"it has {source.replicas} replicas; of a StatefulSet at most {MAX_MEMBERS} are looked after"
    claims = source.replicas * len(stateful.claim_templates)
    if claims > MAX_MEMBER_CLAIMS:
        return (
            f"its {source.replicas} members have {claims} volume claims; at most {MAX_MEMBER_CLAIMS} are"
            " looked after"
        )
    return ""
