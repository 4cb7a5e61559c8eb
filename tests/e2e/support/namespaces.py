"""A namespace for each test, and the end of other tests' namespaces."""

import itertools
from collections.abc import Iterator
from typing import Any

from e2e.support.controller import Controller
from e2e.support.shop import DEADLINE_S, Shop
from splitter.sandbox import Sandbox
from splitter.sandbox.errors import SandboxError
from splitter.sandbox.waiting import wait_until

_NUMBERS = itertools.count()
# A namespace goes when its pods have; what stood on machines that vanished is collected after a minute.
GOING_S = 180.0


def open_shop(sandbox: Sandbox, controller: Controller, name: str = "") -> Iterator[Shop]:
    """Make a namespace, and delete it afterwards."""
    namespace = name or f"shop-{next(_NUMBERS)}"
    sandbox.kubectl("create", "namespace", namespace)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S)

    def check() -> None:
        sandbox.check()
        controller.check()

    yield Shop(sandbox, namespace, check)
    sandbox.kubectl("delete", "namespace", namespace, "--wait=false")


def wait_alone(sandbox: Sandbox) -> None:
    """Wait until other tests' namespaces are gone: what is left in them is looked after too, and seen.

    Raises SandboxError with what the last of them still holds.
    """

    def going() -> list[Any]:
        found = sandbox.api.list("/api/v1/namespaces")
        return [raw for raw in found if "deletionTimestamp" in raw["metadata"]]

    try:
        wait_until(lambda: not going(), what="the end of other tests' namespaces", deadline_s=GOING_S)
    except SandboxError as late:
        for raw in going():
            name = raw["metadata"]["name"]
            late.add_note(f"{name}: {raw['status']}")
            late.add_note(sandbox.kubectl("get", "pods,deployments", "-n", name, "-o", "yaml"))
        raise
