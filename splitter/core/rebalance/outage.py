"""Says whether spot still cannot be had, and how many replicas of it prove that it can (R29, R41).

Fewer replicas wanted on spot (N, the percentage, a cap) end no outage: nothing was asked for meanwhile, so
nothing is known. `steps` calls these in each decision. Source: docs/adr/0104.
"""

from dataclasses import replace
from datetime import datetime

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance.model import RebalanceInput, Tuning, with_changes
from splitter.core.split_status import RebalanceState


def is_short(observed: RebalanceInput, policy: Policy, state: RebalanceState) -> bool:
    """Say whether spot has been short for the whole grace."""
    return observed.waits.past(state.short_since, policy.grace_s)


def is_settling(observed: RebalanceInput, state: RebalanceState, tuning: Tuning) -> bool:
    """Say whether the last loss is so young that free spot nodes are not believed (R42)."""
    return state.last_loss is not None and not observed.waits.past(state.last_loss, tuning.settle_s)


def is_lost(observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> bool:
    """Say whether a loss is not made good yet."""
    want = _want(observed, policy)
    if not state.lost or _has_room(observed, policy, state, tuning):
        return False
    if observed.spot_doomed or not 0 < want <= observed.spot_ready:
        return True
    # If fewer are wanted than before the loss, those that are left are no proof that more can be had.
    return state.asked is not None and observed.spot_ready < state.asked


def short_since(
    observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning
) -> datetime | None:
    """Return since when spot has been short; None while it is not."""
    since = None if _has_room(observed, policy, state, tuning) else state.short_since
    want, accounted = _want(observed, policy), observed.spot_accounted
    if accounted < want:
        return since or observed.spot_pending_since or observed.now
    unproven = not want or (state.asked is not None and accounted < state.asked)
    return since if unproven and is_short(observed, policy, state) else None


def widen(observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> RebalanceState:
    """Step 4a (R41): double the window when everything last asked for is ready; forget it after the loss."""
    want, ready, window = _want(observed, policy), observed.spot_ready, state.window
    narrowest = tuning.first_window
    if not state.lost:
        short = is_short(observed, policy, state)
        more = observed.spot_accounted + 1 if observed.spot_accounted < want else state.asked
        return with_changes(state, window=narrowest, asked=more if short else None)
    if not want:
        return with_changes(state, window=narrowest, asked=ready + narrowest)
    if state.asked is not None and ready >= want:
        return with_changes(state, asked=min(state.asked, ready + 1))  # one more is proof enough
    if state.asked is not None and ready < state.asked:
        return state
    if state.asked is not None:
        window = min(2 * window, max(1, observed.desired))
    return replace(state, window=window, asked=min(ready + window, max(want, ready + 1)))


def _want(observed: RebalanceInput, policy: Policy) -> int:
    return observed.desired - base_replicas(observed.desired, policy)


def _has_room(observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> bool:
    """Say whether spot nodes have room now for all that is missing, while on-demand stands in for none."""
    want, ready = _want(observed, policy), observed.spot_ready
    covers = observed.on_demand_spec > base_replicas(observed.desired, policy)
    if covers or observed.blocked or observed.spot_doomed:
        return False
    return ready < want <= ready + observed.fit_spot and not is_settling(observed, state, tuning)
