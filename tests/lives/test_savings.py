"""What a workload uses is counted through a restart, and told by `splitter savings`."""

import json
import time
from datetime import UTC, datetime
from typing import Any

from lab.fixtures.shop import Shop
from lives.terminal import Terminal
from splitter.core.split_status.usage import Usage, Use
from world.sandbox import Process


def test_a_restart_loses_nothing(shop: Shop, controller: Process, admin: Terminal) -> None:
    """Steady, nothing is written, and each second counts what is held; also those without a leader."""
    shop.deploy(replicas=4, annotations={"splitter.io/on-demand-base": "1"})
    shop.label()
    shop.wait_split(on_demand=1, spot=3)

    def usage() -> Usage:
        result = Usage.from_json(shop.status().get("usage"))
        assert result is not None
        return result

    shop.until(lambda: shop.status()["usage"], "usage to be written")
    shop.until(lambda: usage().held[Use.SPOT].replicas == 3, "what is held to be told")
    shop.until(lambda: usage().held[Use.SURGE].replicas == 0, "what was beyond the replicas to be gone")
    first, before = reported(shop, admin), usage()
    controller.stop()
    controller.start()
    shop.says("Balanced")
    after = usage()
    assert after.since == before.since
    shop.until(lambda: time.time() - before.until.timestamp() > 10, "ten seconds")
    last = reported(shop, admin)
    took_s = (_at(last) - _at(first)).total_seconds()
    for use, replicas in (("spot", 3), ("onDemand", 1), ("desired", 4)):
        field = f"{use}ReplicaHours"
        grown = (last["all"][field] - first["all"][field]) * 3600
        # Times are whole seconds on both sides, hours have four digits.
        assert abs(grown - replicas * took_s) <= 2 * replicas + 1
    assert last["workloads"][0]["name"] == "web"
    assert usage() == after  # steady: counted, and not written


def reported(shop: Shop, admin: Terminal) -> dict[str, Any]:
    """Return what it says."""
    answer = admin.splitter("savings", "web", "-n", shop.namespace, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    content: dict[str, Any] = json.loads(answer.stdout)
    return content


def _at(values: dict[str, Any]) -> datetime:
    return datetime.strptime(values["until"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
