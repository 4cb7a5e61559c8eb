"""What only takes pods away waits while many replicas are missing after a loss, and never for long."""

from dataclasses import replace

import pytest

from builders import NOW, observation, pods, source, twin
from splitter.core.actions import (
    Action,
    DeleteVanishedPod,
    EnsureSplit,
    HolderKind,
    RetryPods,
    Scale,
    SetDeletionCost,
)
from splitter.core.handover import Step
from splitter.core.model import Note, Observation, Pool
from splitter.core.names import Key
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State
from splitter.reconciler.losses import Losses, can_wait

WEB = Key("Deployment", "shop", "web")
SMALL = Key("Deployment", "shop", "small")
LOWERING = Scale(HolderKind.DEPLOYMENT, "web-spot", 60, 0, None)
RAISE = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 2, 62, None)
DELETION = DeleteVanishedPod("web-spot-1", "uid", "spot-0")
AT_ONCE = DeleteVanishedPod("db-1", "uid", "spot-0", at_once=True)
COST = SetDeletionCost("web-spot-2", "uid", "-1000")


def planned(*actions: Action) -> Plan:
    """A plan with these writes."""
    note = Note(Reason.SPOT_INTERRUPTED, "spot went")
    return Plan(Step.SETTLE, State.MOVING, note, actions)


def seen(*, ready: int, lost: int, wanted: int | None = None, key: Key = WEB) -> Observation:
    """A workload with so many ready pods on on-demand, so many lost ones on spot, and no other."""
    going, coming = twin(Pool.SPOT, pods(lost=lost)), twin(Pool.ON_DEMAND, pods(ready))
    return replace(observation(source(wanted or ready + lost), on_demand=coming, spot=going), key=key)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return what it shows."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def losses(clock: Clock) -> Losses:
    """A workload that misses 60 replicas, and a small one that misses 2."""
    known = Losses(clock)
    known.saw(seen(ready=2, lost=60))
    known.saw(seen(ready=2, lost=2, key=SMALL))
    return known


class TestCanWait:
    """Which writes wait at all."""

    @pytest.mark.parametrize(
        "actions", [(LOWERING,), (DELETION,), (COST,), (COST, LOWERING, DELETION)], ids=repr
    )
    def test_what_only_takes_away(self, actions: tuple[Action, ...]) -> None:
        """Lowerings, deletion costs and dead pods."""
        assert can_wait(planned(*actions))

    @pytest.mark.parametrize(
        "actions",
        [(), (RAISE,), (RAISE, LOWERING), (AT_ONCE,), (LOWERING, EnsureSplit(takes_over=True))],
        ids=repr,
    )
    def test_nothing_else(self, actions: tuple[Action, ...]) -> None:
        """No raise, no member whose StatefulSet waits for its name, no other write in the same breath."""
        assert not can_wait(planned(*actions))


class TestLosses:
    """When they wait."""

    def test_hold_while_many_are_missing(self, losses: Losses) -> None:
        """All that lost pods wait, those too that miss few themselves."""
        assert losses.hold(WEB, planned(LOWERING, DELETION))
        assert losses.hold(SMALL, planned(DELETION))

    def test_let_go_what_must_not_wait(self, losses: Losses) -> None:
        """A raise goes out, and pods that were refused are tried again."""
        assert not losses.hold(WEB, planned(RAISE))
        retry = RetryPods("web-on-demand-1", "uid", NOW)
        assert not losses.hold(WEB, replace(planned(DELETION), retries=(retry,)))

    def test_let_go_when_few_are_missing(self, losses: Losses) -> None:
        """When most of the new pods are available the dead ones are removed."""
        losses.saw(seen(ready=32, lost=60, wanted=62))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))

    def test_hold_nobody_else(self, losses: Losses) -> None:
        """A workload that has lost nothing is scaled in as always."""
        known = seen(ready=4, lost=0, key=SMALL)
        losses.saw(known)
        assert not losses.hold(SMALL, planned(LOWERING))

    def test_never_wait_for_long(self, losses: Losses, clock: Clock) -> None:
        """Where on-demand cannot be had nothing waits for it longer than Kubernetes leaves dead pods."""
        clock.now_s += 39
        losses.saw(seen(ready=2, lost=60))
        assert losses.hold(WEB, planned(DELETION))
        clock.now_s += 1
        losses.saw(seen(ready=2, lost=60))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))

    def test_wait_for_no_old_loss(self, losses: Losses, clock: Clock) -> None:
        """One that has missed replicas for long holds back nobody who loses pods later."""
        clock.now_s += 40
        losses.saw(seen(ready=2, lost=0, key=SMALL))
        losses.saw(seen(ready=2, lost=2, key=SMALL))
        assert not losses.hold(SMALL, planned(DELETION))
