"""What only takes pods away waits after a loss of many until all are available, and never for ever."""

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
from splitter.core.model import Note, Observation
from splitter.core.names import Key
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
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

    def test_begin_with_many(self, clock: Clock) -> None:
        """Where few are missing from the beginning a dead pod is removed at once."""
        few = Losses(clock)
        few.saw(seen(ready=2, lost=50))
        assert not few.hold(WEB, planned(DELETION))
        few.saw(seen(ready=2, lost=1, key=SMALL))
        assert few.hold(WEB, planned(DELETION))

    def test_take_no_scale_out_for_a_loss(self, clock: Clock) -> None:
        """Who has lost one and wants a hundred more has lost one."""
        few = Losses(clock)
        few.saw(seen(ready=2, lost=1, wanted=200))
        assert not few.hold(WEB, planned(DELETION))

    def test_hold_until_all_are_available(self, losses: Losses) -> None:
        """Not only until few are missing: the last ones want the API server's time as well."""
        losses.saw(seen(ready=61, lost=60, wanted=62))
        losses.saw(seen(ready=4, lost=2, wanted=4, key=SMALL))
        assert losses.hold(WEB, planned(DELETION))
        assert losses.hold(SMALL, planned(DELETION))
        losses.saw(seen(ready=62, lost=60, wanted=62))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))

    def test_hold_nobody_else(self, losses: Losses) -> None:
        """A workload that has lost nothing is scaled in as always."""
        known = seen(ready=4, lost=0, key=SMALL)
        losses.saw(known)
        assert not losses.hold(SMALL, planned(LOWERING))

    def test_hold_for_as_long_as_more_become_available(self, losses: Losses, clock: Clock) -> None:
        """A busy API server takes a minute or two for hundreds of workloads."""
        for ready in range(2, 20):
            losses.saw(seen(ready=ready, lost=60, wanted=62))
            assert losses.hold(WEB, planned(DELETION))
            clock.now_s += 14

    def test_wait_for_nobody_who_makes_no_progress(self, losses: Losses, clock: Clock) -> None:
        """Where on-demand cannot be had, or pods take minutes to start, the API server is calm."""
        clock.now_s += 14
        losses.saw(seen(ready=2, lost=60))
        assert losses.hold(WEB, planned(DELETION))
        clock.now_s += 1
        losses.saw(seen(ready=2, lost=60))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))

    def test_take_no_flapping_for_progress(self, losses: Losses, clock: Clock) -> None:
        """A replica that becomes ready again and again was progress once."""
        losses.saw(seen(ready=3, lost=60, wanted=62))
        for ready in (2, 3, 2, 3):
            clock.now_s += 4
            losses.saw(seen(ready=ready, lost=60, wanted=62))
        assert not losses.hold(WEB, planned(DELETION))

    def test_wait_for_those_who_lose_later(self, losses: Losses, clock: Clock) -> None:
        """And no longer for those who made no progress before, few or many."""
        clock.now_s += 15
        losses.saw(seen(ready=2, lost=60))
        losses.saw(seen(ready=2, lost=3, wanted=4, key=SMALL))
        assert not losses.hold(SMALL, planned(DELETION))
        losses.saw(seen(ready=2, lost=61, wanted=63))
        assert losses.hold(SMALL, planned(DELETION))

    def test_never_hold_for_ever(self, losses: Losses, clock: Clock) -> None:
        """Whatever comes: more losses, more progress."""
        for lost in range(61, 91):
            assert losses.hold(WEB, planned(DELETION))
            clock.now_s += 10
            losses.saw(seen(ready=2, lost=lost, wanted=100))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))

    def test_let_go_who_loses_its_dead_pods(self, losses: Losses) -> None:
        """Kubernetes has begun to remove them: a twin that is not lowered would make others."""
        losses.saw(seen(ready=2, lost=59, wanted=62))
        assert not losses.hold(WEB, planned(LOWERING))
        assert losses.hold(SMALL, planned(LOWERING))

    def test_forget_who_is_gone(self, losses: Losses) -> None:
        """Nobody waits for a workload that was deleted, nor for what it missed."""
        losses.saw(replace(seen(ready=2, lost=60), source=None))
        losses.saw(seen(ready=4, lost=2, wanted=4, key=SMALL))
        assert not losses.hold(WEB, planned(DELETION))
        assert not losses.hold(SMALL, planned(DELETION))
