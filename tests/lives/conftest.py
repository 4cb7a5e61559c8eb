"""A world for each test, with the fixtures that end-to-end tests have of a control plane."""

import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

import pytest

from e2e.support import external_signals
from e2e.support.external_signals import Status
from e2e.support.mortal import Mortal
from lab.checkout import MANIFESTS
from lab.fixtures.controller import SHORT
from lab.fixtures.database import Database
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet
from lives.gateway import Gateway
from lives.terminal import Terminal
from world.sandbox import NAMESPACE, InMemory, Process


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemory]:
    """Yield a world."""
    world = InMemory(monkeypatch)
    monkeypatch.setattr(external_signals, "datetime", _Datetime)
    world.kubectl("apply", "-f", str(MANIFESTS / "placeholder.yaml"))
    yield world
    world.stop()


@pytest.fixture
def fleet(sandbox: InMemory) -> Fleet:
    """Return 4 on-demand and 4 spot machines."""
    sandbox.fleet.add("on-demand", 4)
    sandbox.fleet.add("spot", 4)
    return sandbox.fleet


@pytest.fixture
def controller(sandbox: InMemory) -> Iterator[Process]:
    """Yield a running controller."""
    process = Process(sandbox, SHORT)
    process.start()
    yield process
    if process.running:
        process.stop()


@pytest.fixture
def shop(sandbox: InMemory, controller: Process, fleet: Fleet) -> Iterator[Shop]:
    """Yield a namespace, looked after by the controller."""
    assert fleet.names("spot")
    yield from open_shop(sandbox, controller, NAMESPACE)


@pytest.fixture
def database(shop: Shop) -> Database:
    """Return the StatefulSet of the namespace."""
    return Database(shop)


@pytest.fixture
def mortal(sandbox: InMemory, fleet: Fleet) -> Iterator[Mortal]:
    """Yield a controller that dies at its writes, and a namespace."""
    assert fleet.names("spot")
    gateway: Any = Gateway(sandbox.cluster.objects)
    own: Any = Process(sandbox, SHORT, gateway)
    own.start()
    for shop in open_shop(sandbox, own, NAMESPACE):
        yield Mortal(gateway, own, shop)
    own.stop()


class _Datetime(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override] # any instant will do
        return datetime.fromtimestamp(time.time(), tz)


@pytest.fixture
def reported(sandbox: InMemory) -> Status:
    """Return cluster-autoscaler's status, not written yet."""
    return Status(sandbox)


@pytest.fixture
def admin(sandbox: InMemory, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return the shell of an administrator."""
    return Terminal(sandbox, monkeypatch)
