"""Hundreds of nodes that turn NotReady and Ready again without end, as behind a network that is torn.

`world` begins and ends it. The nodes are its own, half of them spot, and so tainted that no pod is bound to
them: what they cost is what splitter must read, and what they say is what it must not believe. Nobody plays
their kubelet, so that they are what the storm says of them.
"""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lab.sandbox import Instant, SandboxError, machines
from lab.sandbox.api import Api, PatchKind
from lab.sandbox.commands import KUBELET_LABEL, KUBELET_STOPPED
from lab.sandbox.nodes import NODES

STORM_NODES = 500
STORM_TAINT = {"key": "chaos", "value": "storm", "effect": "NoSchedule"}
_WRITERS = 8
_PAUSE_S = 0.2  # between two rounds over all of them


class Storm:
    """One storm."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names = [f"storm-{number}" for number in range(STORM_NODES)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._blow, name="storm", daemon=True)
        self.flaps = 0
        """How often a node turned."""

    def begin(self) -> None:
        """Register the nodes, and let them flap. Raises SandboxError where the API server does not answer."""
        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(self._register, range(STORM_NODES)))
        self._thread.start()

    def end(self) -> None:
        """Stop, and take the nodes away."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(lambda name: self._api.delete(f"{NODES}/{name}", missing_ok=True), self._names))

    def _register(self, number: int) -> None:
        blueprint = machines.node(
            self._names[number],
            "spot" if number % 2 else "on-demand",
            address=f"10.200.{number // 256}.{number % 256}",
            cpu="8",
            memory="32Gi",
            pods=110,
            zone="sandbox-a",
            labels={KUBELET_LABEL: KUBELET_STOPPED},
            taints=[STORM_TAINT],
        )
        self._api.create(NODES, blueprint)

    def _blow(self) -> None:
        with ThreadPoolExecutor(_WRITERS) as writers:
            for turn in itertools.count():
                list(
                    writers.map(lambda name, ready=turn % 2 == 0: self._turn(name, ready=ready), self._names)
                )
                if self._over.wait(_PAUSE_S):
                    return

    def _turn(self, name: str, *, ready: bool) -> None:
        if self._over.is_set():
            return
        status = {"conditions": [machines.readiness_condition(Instant.now(), ready=ready)]}
        with suppress(SandboxError):  # another event may have stopped the API server
            self._api.patch(f"{NODES}/{name}/status", {"status": status}, kind=PatchKind.STRATEGIC)
            self.flaps += 1
