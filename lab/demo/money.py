"""What the demo's application would save on spot, and what it has saved: two sentences.

Pure: numbers and the Splits of the API in, text out.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.savings import ASSUMED_SPOT_PRICE, Saving, together
from splitter.core.split_status import SplitStatus
from splitter.core.split_status.usage import Amount, Use

_ASSUMED = f"a replica on spot taken to cost {ASSUMED_SPOT_PRICE:g} of one on on-demand"


def would_save(replicas: Mapping[str, int], policies: Mapping[str, Mapping[str, str]]) -> str:
    """Say what the labels would save; `policies` are the annotations of each workload."""
    saving = together(_divided(count, policies.get(name, {})) for name, count in replicas.items())
    on_spot, desired = saving.used[Use.SPOT].replicas, saving.used[Use.DESIRED].replicas
    saved = saving.ratio(None) or 0
    return f"the labels would put {on_spot} of {desired} replicas on spot, and save {saved:.0%} ({_ASSUMED})"


def has_saved(splits: Iterable[Mapping[str, Any]], now: datetime) -> str:
    """Say what was saved until now, the outage and the surge of all moves included."""
    usages = (SplitStatus.from_json(split.get("status")).usage for split in splits)
    saving = together(Saving(usage.at(now)) for usage in usages if usage is not None)
    ratio = saving.ratio(None)
    if ratio is None:
        return "nothing was counted, so that nobody knows what was saved"
    return (
        f"so far {saving.spot_share or 0:.0%} of the replicas' time was on spot and {ratio:.0%} was saved,"
        f" the outage and the surge of all moves included ({_ASSUMED})"
    )


def _divided(replicas: int, annotations: Mapping[str, str]) -> Saving:
    base = base_replicas(replicas, parse_policy(annotations, Policy()).policy or Policy())
    used = {Use.ON_DEMAND: base, Use.SPOT: replicas - base, Use.DESIRED: replicas}
    return Saving({use: Amount(count) for use, count in used.items()})
