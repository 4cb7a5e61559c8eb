"""The move of one replica off its node, step by step: one more, wait, then one less.

A ReplicaSet that is lowered deletes what is not ready first, and only then goes by deletion costs. So the
twin is lowered for a certain replica only while all others are ready.
"""

from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Step(StrEnum):
    """What is written next."""

    RAISE = "raise"
    WAIT = "wait"
    MARK = "mark"
    """The deletion cost on the one that has to go; the lowering comes after it."""
    LOWER = "lower"
    DONE = "done"
    """Nothing more: the counts are the division's again."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """The replica that was made for the move."""

    uid: str
    ready: bool
    misplaced: str = ""
    """Why it may not stay where it stands: on a node that is hot, or not on spot, where it was to come."""
    waited_s: float = 0.0
    """So long it has not been ready."""


@dataclass(frozen=True, slots=True)
class Moving:
    """One moment of a move. Counts are replicas of one twin."""

    wanted: int
    """What the division wants the twin to hold."""
    spec: int
    ready: int
    """All that are ready, the leaving one and the newcomer among them."""
    leaving: str
    """The UID of the pod that is to go; empty: it is gone already."""
    newcomer: Newcomer | None = None
    raised: bool = False
    """The twin was raised for this move before, as it is remembered."""
    marked: str = ""
    """The UID of the pod that bears the deletion cost of this move. MARK takes it off any other first."""
    busy: str = ""
    """A loss, a notice, a roll, a return, a freeze, or too much time: what makes the move stop."""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """The step, the count that the twin should have, the pod that it is about, and why."""

    step: Step
    replicas: int
    pod: str = ""
    why: str = ""
    taken_back: bool = False
    """The new replica goes, and the workload rests."""


def next_step(moving: Moving, patience_s: float) -> StepTaken:
    """Return the next step of a move. A newcomer that is not ready after `patience_s` seconds is taken back.

    Whatever happens, the twin is never asked for fewer than `wanted`, nor for more than one above it.
    """
    if moving.busy or moving.wanted <= 0:
        # What was raised is the division's surplus now. It is lowered as any other, once that is safe.
        return StepTaken(
            Step.DONE, moving.spec, why=moving.busy or "nothing is wanted there", taken_back=True
        )
    if moving.spec < moving.wanted or moving.spec > moving.wanted + 1:
        return StepTaken(Step.DONE, moving.spec, why="the counts were changed meanwhile", taken_back=True)
    if moving.spec == moving.wanted:
        return _begin_or_end(moving)
    return _with_one_more(moving, patience_s)


def _begin_or_end(moving: Moving) -> StepTaken:
    if not moving.leaving:
        return StepTaken(Step.DONE, moving.spec, why="the replica has left its node")
    if moving.raised and moving.newcomer is not None:
        return StepTaken(Step.WAIT, moving.spec, why="the scale-down goes on")
    if moving.raised:
        return StepTaken(Step.DONE, moving.spec, why="the new replica was taken back", taken_back=True)
    if moving.ready < moving.spec:
        return StepTaken(Step.WAIT, moving.spec, why="not every replica is ready")
    return StepTaken(Step.RAISE, moving.spec + 1, why="one more, before one goes")


def _with_one_more(moving: Moving, patience_s: float) -> StepTaken:
    new = moving.newcomer
    if new is None:
        return StepTaken(Step.WAIT, moving.spec, why="the new replica is not there yet")
    if new.misplaced or (not new.ready and new.waited_s > patience_s):
        why = new.misplaced or "did not become ready"
        return _lowered(moving, new.uid, f"the new replica {why}", taken_back=True)
    if not new.ready:
        return StepTaken(Step.WAIT, moving.spec, why="the new replica is not ready yet")
    if not moving.leaving:
        # Its ReplicaSet has replaced it: that one is above what is wanted, and the division lowers it.
        return StepTaken(Step.DONE, moving.spec, why="the replica has left its node by itself")
    return _lowered(moving, moving.leaving, "the new replica is ready elsewhere", taken_back=False)


def _lowered(moving: Moving, pod: str, why: str, *, taken_back: bool) -> StepTaken:
    """Lower by this pod: all are ready, or it is the only one that is not."""
    unready = moving.spec - moving.ready
    itself = moving.newcomer is not None and moving.newcomer.uid == pod and not moving.newcomer.ready
    if unready > itself:
        return StepTaken(Step.WAIT, moving.spec, pod, f"{why}; not every other one is ready", taken_back)
    if moving.marked != pod:
        return StepTaken(Step.MARK, moving.spec, pod, why, taken_back)
    return StepTaken(Step.LOWER, moving.wanted, pod, why, taken_back)
