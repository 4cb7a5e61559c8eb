"""Decides which changes need no reconcile: the cache enqueues nothing for them.

In a take-over every second change of a ReplicaSet or a Deployment is in a field that no reconcile looks at
(how many pods are ready and not yet available, when a condition was last written), and every status that we
write comes back as an event. The record is replaced all the same, so the next reconcile has the
resourceVersion of today; only the reconcile that would find nothing is left out.
"""

from dataclasses import replace
from typing import Any

from splitter.kube.packed import packed
from splitter.kube.records import PodRecord, ReplicaSetRecord, SourceRecord, SplitRecord, TwinRecord


def needs_reconcile(
    old: PodRecord | ReplicaSetRecord | TwinRecord | None,
    new: PodRecord | ReplicaSetRecord | TwinRecord | None,
) -> bool:
    """Whether more than the resourceVersion has changed; what came or went is news."""
    return old is None or new is None or replace(old, version=new.version) != new


def source_needs_reconcile(old: SourceRecord | None, new: SourceRecord | None) -> bool:
    """Whether more than the resourceVersion of a source has changed."""
    if old is None or new is None:
        return True
    view = replace(old.view, resource_version=new.view.resource_version)
    return replace(old, version=new.version, view=view) != new


def stands(pod: PodRecord) -> bool:
    """Whether a pod is on its node, not only named after it: bound by a scheduler or taken in by the kubelet.

    Whoever creates a pod may write any node into it. Source: the condition PodScheduled, which both set.
    """
    return pod.bound_since is not None and not pod.finished


class OwnStatuses:
    """The statuses of Splits that we have decided on: the writer tells it of each before it sends it."""

    def __init__(self) -> None:
        self._decided: dict[str, int] = {}  # by UID of a Split: the hash of the status, as canonical JSON

    def decided(self, uid: str, status: dict[str, Any]) -> None:
        """Remember what a status will be, whether the answer to the write or the watch tells first."""
        self._decided[uid] = hash(packed(status))

    def needs_reconcile(self, old: SplitRecord | None, new: SplitRecord | None) -> bool:
        """Whether a Split differs from what we have decided to write; another state counts too.

        What is looked up now and then is looked up when the state says that there is time for it.
        """
        if new is None and old is not None:
            self._decided.pop(old.uid, None)
        if old is None or new is None:
            return True
        before, after = ((one.spec.generation, one.spec.owner_uids, one.state) for one in (old, new))
        return before != after or self._decided.get(new.uid) != hash(new.status)
