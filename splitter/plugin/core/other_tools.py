"""Says which tool beside splitter is known to undo its writes to a source, and which page helps.

By the last field managers of the source's pause and replicas. A manager's name is chosen by its writer, so
what is said has the names of the tools as this table has them, and nothing of what was read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LAST: Final = 3
_REPLACERS: Final = {
    "kapp": ("kapp", "docs/how-to/beside-other-tools.md"),
    "karmada": ("Karmada", "docs/how-to/karmada.md"),
}
_APPLIERS: Final = {
    "argocd": ("Argo CD", "docs/how-to/argo-cd.md"),
    "helm-controller": ("Flux", "docs/how-to/flux.md"),
    "kustomize-controller": ("Flux", "docs/how-to/flux.md"),
    "helm": ("Helm", "docs/how-to/helm.md"),
}


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer of a source, and which of `paused` and `replicas` are its own there."""

    name: str
    fields: frozenset[str]
    at: str  # as the API server writes times: they sort
    scales: bool = False  # by the scale subresource, as autoscalers do


def neighbour(writers: Sequence[Writer]) -> str:
    """Return a line about the first of the last writers that is known to undo something; empty without one.

    `writers` come with the last first. A tool that applies `replicas` undoes nothing but another's count.
    """
    last = writers[:_LAST]
    scaled = any(one.scales for one in last)
    for writer in last:
        if (known := _known(_REPLACERS, writer.name)) is not None:
            return (
                f"{known[0]} writes this workload whole, which takes splitter's pause away unless it is told"
                f" to keep it: {known[1]}"
            )
        if (known := _known(_APPLIERS, writer.name)) is None:
            continue
        if "paused" in writer.fields:
            return f"{known[0]} applies spec.paused; leave it out of the manifest: {known[1]}"
        if "replicas" in writer.fields and scaled and not writer.scales:
            return (
                f"{known[0]} applies spec.replicas, and an autoscaler or `kubectl scale` writes it too; leave"
                f" it out of the manifest: {known[1]}"
            )
    return ""


def _known(tools: dict[str, tuple[str, str]], name: str) -> tuple[str, str] | None:
    return next((tool for beginning, tool in tools.items() if name.lower().startswith(beginning)), None)
