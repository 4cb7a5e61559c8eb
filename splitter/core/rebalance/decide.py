"""One decision about one workload: two counts, what to remember, why, and when to look again.

The planner calls `decide` in every reconcile in which nothing is parked, and applies the result in this
order: on-demand, deletion costs of the doomed, spot, state. `decide` is final: its raises are bounded
and its lowerings guarded inside. It must never see a clock: the same input gives the same answer.
"""

from dataclasses import dataclass, replace

from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.rebalance import outage, steps
from splitter.core.rebalance.cause import Cause, cause_of
from splitter.core.rebalance.model import RebalanceInput, Tuning
from splitter.core.rebalance.sentences import explain
from splitter.core.split_status import RebalanceState


@dataclass(frozen=True, slots=True)
class Decision:
    """The counts to write, the state to persist, the sentences, and the seconds until a timer is due."""

    on_demand: int
    spot: int
    state: RebalanceState
    notes: tuple[Note, ...]
    requeue_after_s: float | None
    """When time alone may change the answer; None when only an event can."""
    cause: Cause
    """What it is about; `notes` say it."""


def decide(
    observed: RebalanceInput,
    policy: Policy,
    state: RebalanceState,
    tuning: Tuning = Tuning(),  # noqa: B008 - frozen: one shared default is what is meant
) -> Decision:
    """Return what both twins should hold now.

    Counts in replicas; `requeue_after_s` in seconds. Never raises: inputs that contradict each other (more
    ready replicas than asked for, instants of the future) are read the safe way.
    R20; its steps cite R21 to R49. See docs/adr/0010.

    Example: N = 20 at 80 % stands at 4 + 16. Six spot nodes with a replica each get a notice: on-demand
    goes to 10 in this very call; spot keeps its doomed replicas, and asks for one more as a probe when they
    are gone or let go (docs/adr/0016).
    """
    observed = observed.within_spec()
    state = steps.losses(observed, policy, steps.remembering(observed, state.not_after(observed.now)), tuning)
    figures = steps.credit(observed, policy, outage.widen(observed, policy, state, tuning), tuning)
    on_demand, spot = _replicas(figures)
    if on_demand < observed.on_demand_spec:
        figures = replace(figures, state=replace(figures.state, last_step=observed.now))
    return Decision(
        on_demand=on_demand,
        spot=spot,
        state=figures.state,
        notes=explain(figures, on_demand, spot),
        requeue_after_s=observed.waits.next_due_s,
        cause=cause_of(figures, on_demand, spot),
    )


def _replicas(figures: steps.Figures) -> tuple[int, int]:
    observed = figures.observed
    if figures.policy.freeze:  # R49
        return observed.on_demand_spec, observed.spot_spec
    if observed.desired == 0:
        return 0, 0
    on_demand = steps.on_demand_replicas(figures)
    return on_demand, steps.spot_replicas(figures, on_demand)
