"""How kstatus (Flux, Helm 4) and kapp's wait rules judge an object of a kind that they do not know."""

from collections.abc import Sequence
from typing import Any

import yaml

from lab.checkout import ROOT

Raw = dict[str, Any]
PAGE = ROOT / "docs/how-to/beside-other-tools.md"


def kapp_config() -> Raw:
    """Return kapp's configuration, as the page advises it."""
    blocks = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:]
    documents = [one for block in blocks for one in yaml.safe_load_all(block.split("```")[0])]
    [config] = [one for one in documents if one["apiVersion"] == "kapp.k14s.io/v1alpha1"]
    return dict(config)


def advised() -> list[Raw]:
    """Return the matchers of kapp's wait rule for Splits, as the page advises them."""
    [rule] = kapp_config()["waitRules"]
    return list(rule["conditionMatchers"])


def kstatus(raw: Raw) -> str:
    """Return kstatus' word for it: generation first, then its two conditions, then `Ready`.

    Source: github.com/kubernetes-sigs/cli-utils, pkg/kstatus/README.md.
    """
    if "deletionTimestamp" in raw["metadata"]:
        return "Terminating"
    status = raw.get("status") or {}
    if status.get("observedGeneration", raw["metadata"]["generation"]) != raw["metadata"]["generation"]:
        return "InProgress"
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


def kapp(raw: Raw, matchers: Sequence[Raw]) -> str:
    """Return how a wait rule that `supportsObservedGeneration` ends: the first matcher that holds decides.

    Source: carvel.dev/kapp, "Wait Rules".
    """
    status = raw.get("status") or {}
    if status.get("observedGeneration") != raw["metadata"]["generation"]:
        return "waits"
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    for matcher in matchers:
        if conditions.get(matcher["type"]) == matcher["status"]:
            return "fails" if matcher.get("failure") else "succeeds"
    return "waits"
