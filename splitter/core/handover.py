"""Names the steps of the state machine, whose tables choose one, and whose mark a source bears.

The tables are `deployment.table`, `statefulset.table` and `placement.table`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Generic, TypeVar

from splitter.core.labels_annotations import ANNOTATION_TAKEN_OVER
from splitter.core.labels_annotations.label import parse_ownership_mark
from splitter.core.model import ReplicaSetView, SourceView, TwinView


@unique
class Ownership(StrEnum):
    """The mark on the source, against the source's own UID."""

    NONE = "none"
    OURS = "ours"
    FOREIGN = "foreign"  # restored from a backup, or re-created under the same name


def ownership_of(source: SourceView) -> Ownership:
    """Return whose mark a source bears."""
    mark = parse_ownership_mark(source.annotations.get(ANNOTATION_TAKEN_OVER))
    if mark is None:
        return Ownership.NONE
    return Ownership.OURS if mark.uid == source.uid else Ownership.FOREIGN


@unique
class Step(StrEnum):
    """One row of the state machine."""

    NOTHING = "nothing"
    CONSIDER = "consider"  # eligibility, then Split and mark
    ADOPT = "adopt"  # ours again: Split if missing, mark anew
    CREATE_SPLIT = "create-split"
    CLAIM = "claim"  # what is ours by its name, and was orphaned with the source before this one
    PAUSE = "pause"
    WAIT_CONTROLLER = "wait-controller"
    WAIT_ROLLOUT = "wait-rollout"  # the source's own, before its pods can change their owner
    ADOPT_PODS = "adopt-pods"  # the twins are prepared, and the source's pods let go
    SETTLE = "settle"  # the twins take them
    PARK = "park"
    CUT_OFF = "cut-off"  # what hangs in its deletion is parked: its pods are replaced
    RUN = "run"  # twins, counts, rolls: the workload is ours and at rest or on the move
    UNPAUSE = "unpause"
    SHRINK_OURS = "shrink-ours"
    CLEAN_UP = "clean-up"
    OFFBOARD = "offboard"  # the twins' pods are let go
    BRING_HOME = "bring-home"  # the source takes them
    REATTACH = "reattach"
    HAND_BACK = "hand-back"  # of a StatefulSet
    SAVE = "save"  # of a StatefulSet, from here on: N, before anything is scaled
    FOLLOW = "follow"  # somebody has scaled the source: the new N
    FOLLOW_SPLIT = "follow-split"  # or its Split
    SHOW = "show"  # N on the Split
    WAIT_COUNT = "wait-count"  # label and mark are gone, and the source stands at 0: its user has to say N
    RELEASE = "release"
    PLACE = "place"  # in placement mode: ordinals in force, members where they are wanted
    UNPLACE = "unplace"


Columns = TypeVar("Columns")


@dataclass(frozen=True, slots=True)
class Row(Generic[Columns]):
    """One row of a table: the rule of docs/design/handover.md, when it matches, and the step that acts."""

    rule: str
    when: Callable[[Columns], bool]
    step: Step


def first_step(rows: Sequence[Row[Columns]], c: Columns) -> Step:
    """Return the step of the first row that matches; the last row of a table always does."""
    return next(row.step for row in rows if row.when(c))


def holds_replicas(rs: ReplicaSetView) -> bool:
    """Whether a ReplicaSet has pods, or is to have some."""
    return bool(rs.spec_replicas or rs.status_replicas or any(pod.counts for pod in rs.pods))


def waits_for_pods(twin: TwinView) -> bool:
    """Whether a twin is paused and has nothing yet: it was created to adopt pods, or has let them go."""
    return twin.paused and not any(map(holds_replicas, twin.replica_sets))
