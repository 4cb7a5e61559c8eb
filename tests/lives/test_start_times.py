"""How long pods take to start is learned on a real API server, told in the Split, and survives a crash."""

from collections import Counter
from datetime import datetime
from typing import Any

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from splitter.core.split_status.starts import StartTimes
from world.sandbox import Process

READY_AFTER_S = 3


def known(shop: Shop) -> StartTimes:
    """Return what the Split says of starts."""
    return StartTimes.from_json(shop.status().get("memory", {}).get("starts"))


def took_s(pod: dict[str, Any]) -> int:
    """Return the seconds from scheduled to Ready, as the API server tells them."""
    since = {
        one["type"]: datetime.fromisoformat(one["lastTransitionTime"]) for one in pod["status"]["conditions"]
    }
    return round((since["Ready"] - since["PodScheduled"]).total_seconds())


def test_a_restart_forgets_no_start(shop: Shop, controller: Process, fleet: Fleet) -> None:
    """Each pod counts once: what was known before a crash stands first, and only new pods follow."""
    shop.deploy(replicas=4, annotations={"splitter.io/on-demand-base": "1"}, ready_after=f"{READY_AFTER_S}s")
    shop.label()
    shop.wait_split(on_demand=1, spot=3)

    def took(nodes: tuple[str, ...]) -> dict[str, int]:
        pods = [pod for pod in shop.pods() if pod["spec"]["nodeName"] in nodes]
        return {pod["metadata"]["uid"]: took_s(pod) for pod in pods}

    on_demand, spot = fleet.names("on-demand"), fleet.names("spot")

    def all_learned() -> bool:
        published = known(shop)
        pools = ((on_demand, published.on_demand), (spot, published.spot))
        return all(Counter(took(nodes).values()) <= Counter(pool.start_s) for nodes, pool in pools)

    shop.until(all_learned, "the starts of all pods to be told")
    before, pods = known(shop), took(spot)
    assert before.on_demand.start_s
    assert min((*before.on_demand.start_s, *before.spot.start_s)) >= READY_AFTER_S - 1  # whole seconds

    controller.kill()
    controller.start()
    shop.scale(6)
    shop.wait_split(on_demand=1, spot=5)
    more = [start_s for uid, start_s in took(spot).items() if uid not in pods]
    assert len(more) == 2
    shop.until(lambda: len(known(shop).spot.start_s) >= len(before.spot.start_s) + 2, "two more to be told")
    after = known(shop)
    assert after.spot.start_s[:-2] == before.spot.start_s
    assert Counter(after.spot.start_s[-2:]) == Counter(more)
    assert after.on_demand == before.on_demand
