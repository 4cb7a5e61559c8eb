"""The floor: a client that decides nothing and sends the writes it was given, in a process of its own.

`python -m bench.scale.bare KUBECONFIG ORDERS`: ORDERS is a JSON file of `{node: {path: body}}`. As soon as a
node is tainted or gone, its merge patches are sent, each path once until `Bare` ends the process. It speaks
through splitter's own client, watch and connection pool, with as many requests at a time as splitter has
workers, and gets the same one core, so that what splitter needs more is the price of its decisions.
"""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.scale.core import own_core
from lab.sandbox.processes import Nursery
from lab.sandbox.waiting import wait_until
from splitter.kube.client import Client
from splitter.kube.connect import connect
from splitter.kube.paths import NODES, ResourcePath
from splitter.kube.watch import Reflector
from splitter.settings import Settings

Json = dict[str, Any]
Orders = Mapping[str, Mapping[str, Json]]

_READY = "ready"
_START_S = 60.0


class Bare:
    """The running process; ends with the `with` block."""

    def __init__(self, kubeconfig: Path, orders: Orders, home: Path) -> None:
        file, self._log = home / "bare.json", home / "bare.log"
        file.write_text(json.dumps(orders), encoding="utf-8")
        self._log.write_text("", encoding="utf-8")
        self._nursery = Nursery()
        self._child = self._nursery.start(
            "the bare client",
            [sys.executable, "-m", "bench.scale.bare", str(kubeconfig), str(file)],
            log=self._log,
            environment={"PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": "1"},
        )

    @property
    def process_id(self) -> int:
        """Return its process id."""
        return self._child.process.pid

    def check(self) -> None:
        """Raise SandboxError when it has ended by itself."""
        self._nursery.check()

    def __enter__(self) -> Self:
        """Return it, once it has seen all nodes."""
        own_core(self.process_id)
        wait_until(
            lambda: _READY in self._log.read_text(encoding="utf-8"),
            what="the bare client to see the nodes",
            deadline_s=_START_S,
            check=self.check,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; nothing is left to be sent."""
        self._nursery.end()


class Nodes:
    """Hears of nodes, and sends what it was told to send for those that go."""

    def __init__(self, client: Client, orders: Orders, at_once: int, group: asyncio.TaskGroup) -> None:
        self._client = client
        self._orders = orders
        self._rounds = asyncio.Semaphore(at_once)
        self._group = group  # a write that is refused ends the process, which the other side notices
        self._sent: set[str] = set()

    def read(self, _raw: Json) -> None:
        """Keep nothing."""

    def discard(self, _listed: Iterable[None]) -> None:
        """Nothing is kept."""

    def replace(self, _listed: Iterable[None], _namespace: str | None, _version: int) -> None:
        """Take the first list: no news."""

    def upsert(self, raw: Json) -> None:
        """Take a change of a node."""
        if raw["spec"].get("taints"):
            self.remove(raw)

    def remove(self, raw: Json) -> None:
        """Take the end of a node."""
        for path, body in self._orders.get(raw["metadata"]["name"], {}).items():
            if path not in self._sent:
                self._sent.add(path)
                self._group.create_task(self._send(path, body))

    async def _send(self, path: str, body: Json) -> None:
        async with self._rounds:
            await self._client.send(
                "PATCH", ResourcePath.read(path), body, patch="merge", query={"fieldManager": "splitter"}
            )


async def _run(kubeconfig: Path, orders: Orders) -> None:
    settings = Settings()
    at_once = settings.workers + settings.emergency_workers
    client = await connect(kubeconfig, None, settings.api_timeout_s, connections=at_once + 64)
    async with asyncio.TaskGroup() as group:
        reflector = Reflector(client, NODES, Nodes(client, orders, at_once, group))
        group.create_task(reflector.run())
        await reflector.synced.wait()
        print(_READY, flush=True)  # noqa: T201 - the other side waits for it


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))))
