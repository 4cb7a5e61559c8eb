"""Splits that have held replicas for hours."""

from datetime import UTC, datetime, timedelta
from typing import Any

from splitter.core.split_status.usage import Amount, Usage, Use

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
HOUR = 3600
HELD = {
    Use.ON_DEMAND: Amount(2, 500, 512),
    Use.SPOT: Amount(8, 2000, 2048),
    Use.DESIRED: Amount(10, 2500, 2560),
}


def split(
    namespace: str, name: str, usage: object = None, *, since: datetime | None = None
) -> dict[str, Any]:
    """Return a Split that has held 2 replicas on on-demand and 8 on spot, for 10 hours."""
    since = since or NOW - timedelta(hours=10)
    reported = usage if usage is not None else Usage(since, since, {}, HELD).to_json()
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "takeOver": True},
        "status": {"state": "Steady", "usage": reported},
    }
