"""A workload that holds up a process: it is named, and the next process looks after all others.

Of two replicas the leader gets stuck on one tenant's workload. The promises are judged by another's pods.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support import held_up
from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.ports import HeldPorts
from lab.sandbox.waiting import wait_until
from splitter.kube.held_up import ANNOTATION

pytestmark = pytest.mark.e2e

LEASE = "/apis/coordination.k8s.io/v1/namespaces/splitter-system/leases/splitter"
EVIL, REPLICAS = "held-up", 5
DEADLINE_S = 60.0
# What was asked for: a loss that comes while the leader is stuck.
COVERED_S = 30.0


class Replica(Controller):
    """A controller whose probes are asked."""

    def __init__(self, account: Path, home: Path, port: int) -> None:
        settings = {**SHORT, "LEADER_ELECTION": "on", "HTTP_PORT": str(port)}
        launcher = Path(held_up.__file__)
        super().__init__(account, home, settings, launcher=launcher, reported={held_up.HELD_UP_IN: EVIL})
        self._port = port

    def health(self) -> str:
        """Return what /healthz says."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=10) as answer:
                return str(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return str(error.read())


@pytest.fixture
def replicas(
    sandbox: Sandbox, controller: Controller, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Replica]]:
    """Yield two replicas; the shared controller rests meanwhile."""
    assert fleet.names("spot")
    account = sandbox.service_account_kubeconfig("splitter-system", "splitter")
    if controller.running:
        controller.stop()
    ports = HeldPorts()
    pair = [Replica(account, tmp_path_factory.mktemp(name), ports.take()) for name in ("one", "two")]
    ports.release()
    try:
        for one in pair:
            one.start()
        yield pair
    finally:
        for one in pair:
            one.end()
        sandbox.api.delete(LEASE, missing_ok=True)
        controller.start()


@pytest.fixture
def shop(sandbox: Sandbox, replicas: list[Replica]) -> Iterator[Shop]:
    """Yield a namespace with `web`, split."""
    for shop in open_shop(sandbox, replicas[0]):
        shop.deploy(
            replicas=REPLICAS, surge=1, annotations={"splitter.io/on-demand-base": "2"}, ready_after="1s"
        )
        shop.label()
        shop.wait_split(on_demand=2, spot=3)
        yield shop


def test_others_are_looked_after(sandbox: Sandbox, replicas: list[Replica], shop: Shop, fleet: Fleet) -> None:
    """The stuck leader names it and writes it down; the next covers another loss, and leaves it alone."""
    for evil in open_shop(sandbox, replicas[0], EVIL):
        evil.deploy(replicas=1)
        evil.label()
        wait_until(
            lambda: any(held_up.BEGUN in one.said() for one in replicas),
            what="it to get stuck",
            deadline_s=DEADLINE_S,
        )
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "the loss to be covered", COVERED_S)
        [leader] = [one for one in replicas if held_up.BEGUN in one.said()]
        [following] = [one for one in replicas if one is not leader]
        shop.scale(REPLICAS + 1)  # it goes on: nothing has held it up after that
        shop.until(lambda: shop.shape().on_demand > REPLICAS, "the new count to be followed", COVERED_S)
        assert f"workload={EVIL}/web holds it up" in leader.said()
        assert f"{EVIL}/web holds it up" in leader.health()
        written = json.loads(sandbox.api.get(LEASE)["metadata"]["annotations"][ANNOTATION])
        assert [(one["namespace"], one["name"], one["times"]) for one in written] == [(EVIL, "web", 1)]
        assert f"a process was held up by it: workload={EVIL}/web times=1" in following.said()
        for one in replicas:
            one.kill()
