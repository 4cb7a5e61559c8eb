"""Many pods of one namespace."""

import pytest

from kube.cached import pod_on
from kube.raw import Raw
from splitter.kube import parse, shares


def pod(number: int, namespace: str = "evil", version: int = 1) -> Raw:
    """Return one of many pods."""
    raw: Raw = pod_on("node", f"{namespace}-{number}", version)
    raw["metadata"]["namespace"] = namespace
    return raw


def have_shares_of_nine(monkeypatch: pytest.MonkeyPatch) -> int:
    """Have a share hold nine of these pods, and be eased at six; return its bytes."""
    weight = parse.pod(pod(0)).weight
    monkeypatch.setattr(shares, "SHARE_BYTES", 9 * weight)
    monkeypatch.setattr(shares, "_EASED_BYTES", 6 * weight)
    return 9 * weight
