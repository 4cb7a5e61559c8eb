"""Which Events are believed: their reasons, the kind of object that they are about, and from which accounts.

One table. `kube.external_signals` reads these Events and no others. `admission.notices` generates from it the
policy that refuses them from other accounts (`manifests/admission/notices.yaml`). What an Event means is in
`signals` and `spot_supply`. Source: R7, R10, R12; docs/adr/0107.
"""

from dataclasses import dataclass

from splitter.core.nodes.signals import HINT_EVENTS, NOTICE_EVENTS
from splitter.core.nodes.spot_supply import INSUFFICIENT_CAPACITY


@dataclass(frozen=True, slots=True)
class BelievedEvents:
    """Events of some reasons about one kind of object. Accounts that may patch the object may write them."""

    kind: str
    """Of the object that an Event is about: `involvedObject` in core/v1, `regarding` in events.k8s.io/v1."""
    group: str
    resource: str
    reasons: frozenset[str]
    of_kubelets: bool
    """Whether a kubelet may write them, about the object of its own name. The Node authorizer lets a kubelet
    patch every Node; the admission plugin NodeRestriction then refuses all but its own."""

    def says(self, kind: str, reason: str) -> bool:
        """Whether an Event is one of these."""
        return kind == self.kind and reason in self.reasons


BELIEVED = (
    BelievedEvents("Node", "", "nodes", NOTICE_EVENTS | HINT_EVENTS, of_kubelets=True),
    BelievedEvents("NodeClaim", "karpenter.sh", "nodeclaims", INSUFFICIENT_CAPACITY, of_kubelets=False),
)
