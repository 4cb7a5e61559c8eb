"""Looks at one workload in hub and members, four times a second, and keeps a `Ledger` of it."""

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from lab.federation.ledger import Ledger, Sample, serving
from lab.sandbox import Api, SandboxError
from lab.sandbox.nodes import NODES

_LOOK_S = 0.25


class Watch:
    """What becomes of a workload, until the end of the `with` block."""

    def __init__(self, hub: Api, members: Iterable[Api], path: str) -> None:
        """`path`: of the workload, in hub and members; all pods of its namespace are its own."""
        self.ledger = Ledger()
        self._hub, self._members, self._path = hub, tuple(members), path
        self._pods = f"/api/v1/namespaces/{path.split('/')[5]}/pods"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="karmada-watch", daemon=True)

    def look(self) -> Sample:
        """Return what is there now. Raises SandboxError if a cluster does not answer."""
        at_s = time.monotonic()
        wanted = self._hub.get(self._path)["spec"]["replicas"]
        ready = sum(
            serving(api.list(self._pods), (raw["metadata"]["name"] for raw in api.list(NODES)))
            for api in self._members
        )
        return Sample(at_s, wanted, ready)

    def _run(self) -> None:
        while not self._over.wait(_LOOK_S):
            try:
                self.ledger.samples.append(self.look())
            except SandboxError:
                continue  # what was seen before lasts until the next look

    def __enter__(self) -> Self:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        self._over.set()
        self._thread.join()
