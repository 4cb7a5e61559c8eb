"""Real machines, and a namespace with the Service of `web` that splitter looks after."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.support import web
from e2e.support.controller import SHORT, Controller, install
from e2e.support.namespaces import open_shop
from e2e.support.shop import JsonObject, Shop
from splitter.sandbox import Sandbox
from splitter.sandbox.nodes import NODES
from splitter.sandbox.real.fleet import RealFleet


@dataclass(frozen=True)
class Stage:
    """The machines and the namespace."""

    machines: RealFleet
    shop: Shop
    controller: Controller

    def drain(self, names: Sequence[str], timeout_s: int = 90) -> None:
        """Drain machines at the same time, as clouds take them. Raises SandboxError when one does not end."""

        def drain(name: str) -> None:
            self.shop.kubectl("drain", name, "--ignore-daemonsets", f"--timeout={timeout_s}s")

        with ThreadPoolExecutor() as drains:
            list(drains.map(drain, names))


@contextmanager
def real_nodes(home: Path) -> Iterator[tuple[Sandbox, Controller]]:
    """Yield 2 on-demand and 3 spot machines that run containers, with a controller."""
    with Sandbox.start(progress=print, real=True, node_monitor_grace_s=6) as sandbox:
        sandbox.real.add("on-demand", 2)
        sandbox.real.add("spot", 3)
        controller = Controller(install(sandbox), home, SHORT)
        try:
            controller.start()
            yield sandbox, controller
        finally:
            controller.end()


@contextmanager
def staged(sandbox: Sandbox, controller: Controller) -> Iterator[Stage]:
    """Yield a namespace of the test's own with the Service of `web`; afterwards all machines are well."""
    for shop in open_shop(sandbox, controller):
        shop.apply(web.service())
        yield Stage(sandbox.real, shop, controller)
    if hurt := [name for name in sandbox.real.names() if not _is_well(sandbox, name)]:
        sandbox.real.restore(hurt)


def _is_well(sandbox: Sandbox, name: str) -> bool:
    node = sandbox.api.find(f"{NODES}/{name}")
    return node is not None and is_ready(node) and not node["spec"].get("taints")


def is_ready(node: JsonObject) -> bool:
    """Whether a Node is Ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
