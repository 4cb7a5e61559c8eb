"""A move off a hot node is written down before its raise."""

from dataclasses import replace

import pytest

from builders import KEY, NOW, observation, source, split, twin
from splitter.core.handover import Step
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.core.split_status import ReliefMove, ReliefStatus, SplitStatus
from splitter.kube.client import ApiError
from splitter.reconciler.hot_nodes import with_move_written

MOVE = ReliefMove(
    at=NOW,
    pool="spot",
    pod="web-spot-0",
    pod_uid="uid-web-spot-0",
    node="hot-1",
    node_uid="uid-hot-1",
    replicas=8,
    newer_than=NOW,
    raised=True,
)


STEADY = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "as wanted"))


def seen(**fields: object) -> Observation:
    """Return a workload of eight replicas."""
    observed = observation(source(8), spot=twin(Pool.SPOT), on_demand=twin(Pool.ON_DEMAND))
    return replace(observed, **fields)  # type: ignore[arg-type]


class Writer:
    """Keeps the statuses that were written, or refuses."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.statuses: list[SplitStatus] = []
        self._error = error

    async def write(self, observed: Observation, status: SplitStatus, *, surely: bool) -> None:
        """Take one."""
        assert observed.key == KEY
        assert surely
        if self._error is not None:
            raise self._error
        self.statuses.append(status)


class TestWrittenBefore:
    async def test_a_move_is(self) -> None:
        """As not raised yet: whoever comes after a crash does not know better."""
        observed = seen(split=split(), hot_nodes=HotNodes(leaves=LeavingReplica("uid", "why")))
        writer = Writer()
        planned = replace(STEADY, relief=ReliefStatus(moves=(MOVE,)))
        after = await with_move_written(writer, observed, planned)  # type: ignore[arg-type]
        (status,) = writer.statuses
        assert status.relief.current == replace(MOVE, raised=False)
        assert after.reported == status

    async def test_without_it_nothing_is_raised(self) -> None:
        """A status that cannot be written ends the reconcile before its raise."""
        observed = seen(split=split())
        planned = replace(STEADY, relief=ReliefStatus(moves=(MOVE,)))
        with pytest.raises(ApiError):
            await with_move_written(Writer(ApiError(403, "Forbidden", "no")), observed, planned)  # type: ignore[arg-type]

    async def test_nothing_else_is(self) -> None:
        """What goes on, has ended or was never begun costs no write of its own."""
        observed = seen(split=split(relief=ReliefStatus(moves=(MOVE,))))
        writer = Writer()
        for relief in (
            None,
            ReliefStatus(),
            ReliefStatus(moves=(MOVE,)),
            ReliefStatus(moves=(replace(MOVE, ended=NOW),)),
        ):
            assert await with_move_written(writer, observed, replace(STEADY, relief=relief)) is observed  # type: ignore[arg-type]
        assert writer.statuses == []
