"""The pods of a StatefulSet: by ordinal, and whether they have the wanted template.

`observe` joins them into views. Whose a pod is, the pod says; that it is called as its StatefulSet's pods are
is looked at here, so that a stranger's pod is none of them.
"""

from collections.abc import Iterable, Iterator

from splitter.core.names import ordinal_of
from splitter.core.stateful import StatefulView
from splitter.kube.records import PodRecord


def members_of(pods: Iterable[PodRecord], name: str) -> Iterator[tuple[int, PodRecord]]:
    """Yield each pod of the StatefulSet `name` with its number, by name."""
    for pod in sorted(pods, key=lambda record: record.name):
        owner, _, text = pod.name.rpartition("-")
        if owner == name and (ordinal := ordinal_of(text)) is not None:
            yield ordinal, pod


def rolls(pods: Iterable[PodRecord], name: str, stateful: StatefulView) -> bool:
    """Whether the StatefulSet `name` has pods that its controller is to replace; none with OnDelete."""
    return not stateful.on_delete and any(
        pod.revision != stateful.revision and ordinal - stateful.first_ordinal >= stateful.partition
        for ordinal, pod in members_of(pods, name)
        if not pod.terminating
    )
