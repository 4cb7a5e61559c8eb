"""Judges what a plan of splitter's says, against what it saw and what it writes: in stories and explorers."""

import re
from typing import Final

from splitter.core.actions import Scale
from splitter.core.handover import Step
from splitter.core.model import Observation
from splitter.core.plan import Plan
from splitter.core.reasons import State

# The way back has no division, also where a dry run holds it.
_BACK: Final = frozenset({Step.UNPAUSE, Step.SHRINK_OURS, Step.CLEAN_UP, Step.OFFBOARD, Step.BRING_HOME})


class BrokenPromiseError(AssertionError):
    """Something that must never happen has happened."""


def check_reported(observed: Observation, planned: Plan) -> None:
    """Raise when a plan tells of a move that it does not write, calls steady what is not, or wants not N."""
    pods = [
        (twin, rs, pod)
        for twin in observed.twins
        for rs in twin.replica_sets
        for pod in rs.pods
        if pod.counts
    ]
    old = [pod.name for twin, rs, pod in pods if rs.template_hash != twin.template_hash or not pod.available]
    if planned.state is State.STEADY and (
        old or len(pods) < sum(twin.spec_replicas for twin in observed.twins)
    ):
        raise BrokenPromiseError(f"Steady with {len(pods)} pods, and these are old or not available: {old}")
    wanted, source = planned.wanted_on_demand + planned.wanted_spot, observed.source
    back = planned.state in {State.GIVING_BACK, State.CONFLICT} or planned.step in _BACK
    if source is not None and observed.twins and not back and wanted != source.replicas:
        raise BrokenPromiseError(f"{planned.step}: {wanted} wanted in both pools, of {source.replicas}")
    written = {(one.name, one.was, one.replicas) for one in planned.actions if isinstance(one, Scale)}
    for note in (*planned.notes, planned.verdict):
        moved = re.match(r"scale (on-demand|spot) (\d+) -> (\d+)", note.message)
        if moved and (f"{observed.key.name}-{moved[1]}", int(moved[2]), int(moved[3])) not in written:
            raise BrokenPromiseError(f"told, and not among the writes {sorted(written)}: {note.message}")
