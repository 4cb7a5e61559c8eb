"""Which labels and annotations of a source its twins may carry, and which belong to some tool."""

from typing import Final

from splitter.core.desired.manifest import Manifest
from splitter.core.labels_annotations import PREFIX

# Labels of a Deployment that describe it to people. Everything else with a prefix may belong to a
# tool that takes what carries its label for its own, and prunes it: so this is what is copied.
_DESCRIPTIVE_LABELS: Final = frozenset(
    {
        "app.kubernetes.io/name",
        "app.kubernetes.io/component",
        "app.kubernetes.io/part-of",
        "app.kubernetes.io/version",
    }
)
# Labels without a prefix are the user's, but for those of Helm's old charts.
_UNPREFIXED_TRACKING: Final = frozenset({"chart", "heritage", "release"})

# What no twin carries in its own metadata, even where a template copies everything: the marks by
# which Argo CD, Flux, Helm, kapp, kubectl and Reloader find what they rule. `app.kubernetes.io/instance`
# is Argo CD's tracking label by default.
_TRACKING_KEYS: Final = frozenset(
    {
        "app.kubernetes.io/instance",
        "app.kubernetes.io/managed-by",
        "helm.sh/chart",
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
    }
)
_RELOADER: Final = "reloader.stakater.com"
_TRACKING_DOMAINS: Final = (
    "argocd.argoproj.io",
    "meta.helm.sh",
    "toolkit.fluxcd.io",
    "kapp.k14s.io",
    "applyset.kubernetes.io",
    "config.kubernetes.io",
    "config.k8s.io",
    "cli-utils.sigs.k8s.io",
    _RELOADER,
    "skaffold.dev",
)

# What Reloader writes itself, with its strategy `annotations`: a new value is a new roll.
_RELOADED: Final = f"{_RELOADER}/last-reloaded-from"


def portable_labels(labels: Manifest) -> dict[str, object]:
    """Return the labels of a source that its twins may carry too: the descriptive ones.

    A list of what is copied, not of what is left out: a label with an unknown prefix may be how a
    GitOps tool finds what it rules, and it deletes what it finds and did not write.

    >>> portable_labels({"app": "web", "argocd.argoproj.io/instance": "shop"})
    {'app': 'web'}
    """
    return {key: value for key, value in labels.items() if _is_portable(key)}


def _is_portable(key: str) -> bool:
    if "/" in key:
        return key in _DESCRIPTIVE_LABELS
    return key not in _UNPREFIXED_TRACKING


def untracked(pairs: Manifest) -> dict[str, object]:
    """Return labels or annotations without those by which a tool finds what it rules."""
    return {key: value for key, value in pairs.items() if not is_tracking(key)}


def without_orders(annotations: Manifest) -> dict[str, object]:
    """Return the annotations of a pod template without those that have Reloader edit its workload.

    Reloader reads them there too, and would edit each twin beside the source. What it has written there on
    the source stays: it rolls the twins.

    >>> without_orders({"reloader.stakater.com/auto": "true", "note": "n"})
    {'note': 'n'}
    """
    return {
        key: value
        for key, value in annotations.items()
        if key == _RELOADED or not _is_in(key.partition("/")[0], _RELOADER)
    }


def is_tracking(key: str) -> bool:
    """Return whether a label or annotation tells some tool, or us, that the object is its own."""
    domain = key.partition("/")[0]
    return (
        key in _TRACKING_KEYS
        or key.startswith(PREFIX)
        or any(_is_in(domain, known) for known in _TRACKING_DOMAINS)
    )


def _is_in(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def with_labels(labels: Manifest, added: Manifest) -> dict[str, object]:
    """Return the labels (or annotations) with others added; an added one wins."""
    return {**labels, **added}
