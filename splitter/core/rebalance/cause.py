"""Why the counts of a decision are what they are: found where they are settled, before a sentence says it.

`decide` puts the cause into its `Decision`, and who asks what a decision is about reads it there; `sentences`
makes a reason and a sentence of it. Nobody branches on a reason.
"""

from enum import Enum, auto, unique

from splitter.core.rebalance.steps import Figures


@unique
class Cause(Enum):
    """What makes a count move, or keeps both from moving."""

    FROZEN = auto()
    DIVIDED = auto()  # N or the policy has changed
    SPOT_DOOMED = auto()  # spot replicas stand on nodes that are about to go
    AFTER_NOTICE = auto()  # and have gone with them, after a notice
    AFTER_LOSS = auto()  # or without one
    SPOT_BLOCKED = auto()  # nobody can get a spot node now
    SPOT_BARREN = auto()  # spot goes each time before it has earned anything, and rests
    SPOT_UNPLACED = auto()  # spot replicas have had no node for the grace
    ON_DEMAND_DOOMED = auto()
    RETURNING = auto()  # spot has soaked, on-demand gives up cover
    ASKED_FOR = auto()  # spot is asked for, step by step, as a capacity probe
    REPLACED = auto()  # doomed spot replicas are replaced on spot
    RELEASED = auto()  # doomed spot replicas are covered, and let go
    REMOVED = auto()  # dead ones on silent nodes, where nobody else does
    WITHDRAWN = auto()  # spot cannot be had, and is asked for less
    HELD = auto()  # nothing moves


def shortage(figures: Figures) -> Cause:
    """Return why on-demand is wanted: the first cause that applies."""
    observed, state = figures.observed, figures.state
    if figures.need_up <= figures.base:
        return Cause.ON_DEMAND_DOOMED if figures.on_demand_doomed else Cause.DIVIDED
    if state.lost and observed.spot_doomed:
        return Cause.SPOT_DOOMED
    if figures.tried_again is not None:
        return Cause.SPOT_BARREN
    if state.lost:
        return Cause.AFTER_NOTICE if state.interrupted else Cause.AFTER_LOSS
    return Cause.SPOT_BLOCKED if observed.blocked else Cause.SPOT_UNPLACED


def of_on_demand(figures: Figures, on_demand: int) -> Cause | None:
    """Return why on-demand goes to this count; None when it stands there."""
    observed = figures.observed
    if on_demand >= observed.on_demand_spec:
        return shortage(figures) if on_demand > observed.on_demand_spec else None
    planned = observed.on_demand_spec + observed.spot_spec - observed.spot_going
    too_many = planned > observed.desired + max(1, observed.max_surge)
    return Cause.DIVIDED if too_many or observed.desired == 0 else Cause.RETURNING


def of_spot(figures: Figures, spot: int) -> Cause | None:
    """Return why spot goes to this count; None when it stands there."""
    before = figures.observed.spot_spec
    if spot == before:
        return None
    if spot > before:
        if figures.probing:
            return Cause.ASKED_FOR
        return Cause.REPLACED if figures.keep else Cause.DIVIDED
    if figures.releasing or figures.observed.removing:
        return Cause.RELEASED if figures.releasing else Cause.REMOVED
    if figures.probing:
        return Cause.WITHDRAWN if figures.tried_again is None else Cause.SPOT_BARREN
    return shortage(figures) if figures.short else Cause.DIVIDED


def cause_of(figures: Figures, on_demand: int, spot: int) -> Cause:
    """Return what a decision is about: on-demand's move before spot's, since it is written first."""
    if figures.policy.freeze:
        return Cause.FROZEN
    return of_on_demand(figures, on_demand) or of_spot(figures, spot) or Cause.HELD
