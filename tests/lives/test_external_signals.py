"""What others say beside taints and conditions: Events about nodes, an autoscaler that cannot grow."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support.external_signals import REPLICAS, SURGE, Say, Status, one_a_node
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from world.sandbox import InMemory, Process

ASKED = {"splitter.io/on-demand-base": "1"}


@pytest.fixture
def busy(shop: Shop) -> str:
    """Split 4 replicas into 1 + 3, and return the spot node that holds the most of them."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    nodes = [node for node in shop.nodes() if node.startswith("spot")]
    return max(nodes, key=nodes.count)


@pytest.fixture
def say(sandbox: Sandbox) -> Iterator[Say]:
    """Yield a cloud's voice; what it said is forgotten afterwards."""
    cloud = Say(sandbox)
    yield cloud
    cloud.take_back()


def asked_of_on_demand(shop: Shop) -> int:
    """Return the replicas that the on-demand twin is to have."""
    twins = shop.twins()
    assert twins is not None
    return twins[0]


def going(shop: Shop) -> tuple[str, int, str, str]:
    """Return the one node that the Split shows as going: its replicas, the signal and the deadline."""
    shown: list[dict[str, Any]] = shop.status().get("nodes") or []
    if len(shown) != 1:
        return "", 0, "", ""
    one = shown[0]
    return one["name"], one["replicas"], one["signal"], one["deadline"]


@pytest.mark.parametrize("reason", ["SpotInterrupted", "SpotInterruption", "TerminatingOnInterruption"])
def test_an_event_moves_replicas_before_any_taint(
    shop: Shop, sandbox: Sandbox, busy: str, say: Say, reason: str
) -> None:
    """The Event alone is enough; when it is gone, replicas come back."""
    doomed = shop.nodes().count(busy)
    with shop.watch() as watched:
        # Frozen while it is looked for: when cover stands they are let go, and the node with them.
        shop.annotate(freeze="true")
        shop.until(lambda: shop.status().get("reason") == "Frozen", "the freeze")
        say.about(busy, reason)
        shop.until(lambda: going(shop)[:3] == (busy, doomed, f"event {reason}"), "the node to be shown")
        shop.annotate(freeze="false")
        shop.until(lambda: asked_of_on_demand(shop) >= 1 + doomed, "on-demand to be raised")
        shop.until(lambda: shop.available_off(busy) >= REPLICAS, f"{REPLICAS} replicas beside {busy}")
        assert not sandbox.api.get(f"/api/v1/nodes/{busy}")["spec"].get("taints")
        shop.reported("SpotInterrupted", "doomed")
        say.take_back()
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS


def test_an_event_about_an_earlier_node_moves_nothing(shop: Shop, busy: str, say: Say) -> None:
    """Older than the node, or about another UID of its name: what was, also after a restart."""
    say.about(busy, "SpotInterrupted", age_s=3500)
    say.about(busy, "SpotInterrupted", uid="7e6d0c9e-0000-4000-8000-000000000000")
    shop.scale(REPLICAS + 1)  # a whole move later it would have been seen
    shop.wait_split(on_demand=1, spot=4)
    shop.wait_posted()
    assert shop.events("SpotInterrupted") == []


def test_spot_that_cannot_be_had_is_covered_at_once(shop: Shop, reported: Status) -> None:
    """All spot groups in backoff: on-demand covers without the grace, spot keeps one probe; until it ends."""
    calm = {**ASKED, "splitter.io/grace": "1h"}
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=calm, template=one_a_node())
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    reported.write({"aks-spotpool-1-vmss": "Backoff", "aks-system-1-vmss": "NoActivity"})
    shop.scale(8)  # one on on-demand and seven on spot, which has four machines
    shop.until(lambda: shop.twins() == (4, 5), "cover for three, and one probe")
    shop.reported("SpotBlocked", "cluster-autoscaler backs off from aks-spotpool-1-vmss")
    reported.remove()
    shop.until(lambda: (shop.twins() or (0, 0))[1] > 5, "all that fits to be asked of spot again")
    shop.until(lambda: shop.status()["reason"] != "SpotBlocked", "another reason")
    shop.scale(REPLICAS)
    shop.wait_split(on_demand=1, spot=3)


def test_a_machine_that_was_never_asked_for_is_not_missed(
    shop: Shop, sandbox: InMemory, controller: Process, say: Say
) -> None:
    """An invented NodeClaim says nothing about spot, whatever words; one that Karpenter made does."""
    claims = "/apis/karpenter.sh/v1/nodeclaims"
    sandbox.cluster.api.missing.discard("karpenter.sh")
    controller.stop()
    controller.start()
    calm = {**ASKED, "splitter.io/grace": "1h"}
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=calm, template=one_a_node())
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    shop.scale(8)
    shop.until(lambda: shop.twins() == (1, 7), "seven to be asked of spot, which has four machines")
    say.refused("invented", "7e6d0c9e-0000-4000-8000-000000000000")
    shop.scale(9)
    shop.until(lambda: shop.twins() == (1, 8), "one more to be asked of spot")
    shop.wait_posted()
    assert shop.events("SpotBlocked") == []
    wanted = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    claim: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
    claim |= {"metadata": {"name": "spot-x1"}, "spec": {"requirements": [wanted]}}
    made = sandbox.api.create(claims, claim)
    sandbox.api.delete(f"{claims}/spot-x1")
    say.refused("spot-x1", made["metadata"]["uid"])
    shop.until(lambda: shop.twins() == (5, 5), "cover for four, and one probe")
    shop.reported("SpotBlocked", "Karpenter finds no spot machine")
    say.take_back()
    shop.scale(REPLICAS)
    shop.wait_split(on_demand=1, spot=3)
