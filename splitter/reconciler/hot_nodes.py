"""What a reconcile is told of hot nodes, and a move off one, written down before its raise.

`splitter.relief` looks at real use. It is loaded only if the settings name a source of it (docs/adr/0111).
"""

from dataclasses import replace
from typing import Protocol

from splitter.core.hot_nodes import HotNodes
from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.plan import Plan, PolicyInForce
from splitter.kube.client import ApiError
from splitter.reconciler.status_writer import StatusWriter


class Watch(Protocol):
    """Looks at real use, for the reconciles of one term."""

    def view(self, key: Key) -> HotNodes | None:
        """Return what is known for one workload."""
        ...

    def saw(self, observed: Observation, in_force: PolicyInForce, planned: Plan) -> None:
        """Take note of a workload that was reconciled."""
        ...

    def is_unhinted(self, key: Key, planned: Plan, error: ApiError) -> bool:
        """Whether a hint was refused."""
        ...

    async def run(self) -> None:
        """Look at real use until cancelled."""
        ...


class Unwatched:
    """Where the settings give no source of real use: nothing is known, and nobody looks."""

    def view(self, key: Key) -> HotNodes | None:  # noqa: ARG002 - as a Watch
        """Return nothing."""
        return None

    def saw(self, observed: Observation, in_force: PolicyInForce, planned: Plan) -> None:
        """Take no note."""

    def is_unhinted(self, key: Key, planned: Plan, error: ApiError) -> bool:  # noqa: ARG002 - as a Watch
        """Whether a hint was refused: never."""
        return False

    async def run(self) -> None:
        """Look at nothing."""


async def with_move_written(writer: StatusWriter, observed: Observation, planned: Plan) -> Observation:
    """Write down a move off a hot node before the raise that begins it; return what is observed then (R53).

    Whoever comes after a crash knows then that the extra replica is no cover. Raises ApiError: without it
    nothing is raised.
    """
    before, relief = observed.reported, planned.relief
    begun = relief.current if relief is not None else None
    if begun is None or relief is None or observed.split is None or before.relief.current is not None:
        return observed
    moves = (*relief.moves[:-1], replace(begun, raised=False))
    decided = planned.rebalance.decided if planned.rebalance is not None else None
    memory = replace(before.memory, rebalance=replace(before.memory.rebalance, decided=decided))
    status = replace(before, relief=replace(relief, moves=moves), memory=memory)
    await writer.write(observed, status, surely=True)
    return replace(observed, split=replace(observed.split, status=status))
