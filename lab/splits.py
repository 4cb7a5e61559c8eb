"""Reads what a Split says of the replicas that ran, as any client of the API could.

The words are those of the CRD (`status.usage`). Splitter's own code is not used: what it counts is compared
with this.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

ON_DEMAND: Final = "onDemand"
SPOT: Final = "spot"
DESIRED: Final = "desired"
USES: Final = (ON_DEMAND, SPOT, DESIRED)


def replica_seconds(status: Mapping[str, Any], now: datetime) -> dict[str, float] | None:
    """Return the replica-seconds until `now` by use; None of a Split that counts none yet."""
    usage = status.get("usage")
    if not isinstance(usage, Mapping):
        return None
    held_s = max(0.0, (now - datetime.fromisoformat(usage["until"])).total_seconds())
    return {use: _replicas(usage, "total", use) + _replicas(usage, "held", use) * held_s for use in USES}


def _replicas(usage: Mapping[str, Any], part: str, use: str) -> int:
    return int(usage.get(part, {}).get(use, {}).get("replicas", 0))
