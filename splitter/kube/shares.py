"""Counts what is kept of each namespace, and keeps no more of one than its share: memory is for all tenants.

`store` asks before it keeps a record, also while a list is still being read. A namespace that is over its
share is not known whole, so nothing is decided there (`crowded`). Source: docs/adr/0106.
"""

import logging
from collections import Counter
from typing import Final

logger = logging.getLogger("splitter.cache")

_MIB = 1024**2
# Some 26,000 pods that request two resources; Kubernetes itself is made for 3,000 in a namespace.
SHARE_BYTES: Final = 64 * _MIB
# Below this it is looked at again: else one more pod would do, and one less.
_EASED_BYTES = SHARE_BYTES * 3 // 4


class Shares:
    """What is kept of each namespace, in bytes, as far as it grows with what people write."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self.over: set[str] = set()
        """The namespaces of which something was not kept."""

    def reserve(self, namespace: str, size: int) -> bool:
        """Return whether so much more may be kept of a namespace; if so, it counts from now on."""
        if namespace and size > 0 and self._held[namespace] + size > SHARE_BYTES:
            if namespace not in self.over:
                self.over.add(namespace)
                logger.warning(
                    "nothing is done in namespace %s: to remember its pods, ReplicaSets, PodDisruptionBudgets"
                    " and workloads takes more than %d MiB. Delete some, until it takes less than %d MiB; a"
                    " ResourceQuota (count/pods, count/replicasets.apps) keeps it so",
                    namespace,
                    SHARE_BYTES // _MIB,
                    _EASED_BYTES // _MIB,
                )
            return False
        self.add(namespace, size)
        return True

    def add(self, namespace: str, size: int) -> None:
        """Count what is kept, or with a negative size is kept no more."""
        if namespace:
            self._held[namespace] += size
            if self._held[namespace] <= 0:
                del self._held[namespace]

    def eased(self, namespace: str) -> bool:
        """Whether a namespace holds clearly less than its share."""
        return self._held[namespace] < _EASED_BYTES
