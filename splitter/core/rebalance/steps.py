"""The four steps of a decision, in this order: losses, credits, on-demand, spot.

Called by `decide` only. Each step takes what the one before found out and returns new data; none of
them writes sentences. Source: R20 to R49.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance.barren import is_barren, rests_until
from splitter.core.rebalance.model import RELEASE_S, RebalanceInput, Tuning, with_changes
from splitter.core.rebalance.outage import is_lost, is_settling, is_short, short_since
from splitter.core.split_status import RebalanceState

CHARGED_MAX = 256
"""Lost nodes remembered in the Split by name: 10 kB. Of those beyond, only how many there are."""

TOGETHER_S = 5.0
"""Replicas of one step become ready one after the other: so long one waits for the next."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything the last two steps and the sentences need, worked out once."""

    observed: RebalanceInput
    policy: Policy
    tuning: Tuning
    state: RebalanceState
    base: int
    """`B`: on-demand replicas wanted when nothing is wrong."""
    up: int
    """Spot replicas that count before on-demand has to be raised: optimistic only while healthy."""
    need_up: int
    """On-demand below this is raised."""
    need_down: int
    """On-demand above this may be lowered; `need_up..need_down` is the hysteresis band."""

    @property
    def want(self) -> int:
        """Return the replicas wanted on spot."""
        return self.observed.desired - self.base

    @property
    def short(self) -> bool:
        """Say whether spot has been short for the whole grace."""
        return is_short(self.observed, self.policy, self.state)

    @property
    def soak_s(self) -> float:
        """Return the seconds a ready replica must stand before it earns a return."""
        soak_s = self.state.soak(self.policy.soak_s)
        return min(soak_s, self.tuning.fast_s) if self.state.proven else soak_s

    @property
    def soaked(self) -> int:
        """Return the ready spot replicas that have earned a return."""
        soak_s = self.soak_s  # once: spot may have hundreds of replicas
        return sum(self.observed.waits.past(since, soak_s) for since in self.observed.spot_ready_since)

    @property
    def next_soaked_s(self) -> float | None:
        """Return the seconds until time alone lets more replicas earn one; None when it does not."""
        observed, state, soak_s = self.observed, self.state, self.soak_s
        starts = list(observed.spot_ready_since)
        if starts and not state.proven and state.last_loss is not None:
            starts.append(state.last_loss)  # then a survivor may prove spot, and the others follow fast
        left = (observed.waits.left_s(since, soak_s) for since in starts)
        return min((seconds for seconds in left if seconds), default=None)

    @property
    def more_soak_soon(self) -> bool:
        """Say whether another replica earns a return in a moment: both go in one step then (R34)."""
        left_s = self.next_soaked_s
        return left_s is not None and left_s <= TOGETHER_S

    @property
    def releasing(self) -> bool:
        """Say whether doomed replicas are let go now."""
        return self.covered and self.observed.spot_doomed > self.observed.spot_pinned

    @property
    def on_demand_doomed(self) -> int:
        """Return the on-demand replicas to replace; none of them while our view is broken."""
        return 0 if self.observed.view_broken else self.observed.on_demand_doomed

    @property
    def covered(self) -> bool:
        """Say whether all that is doomed on spot was covered for so long that it may go (R44)."""
        return self.observed.waits.past(self.state.cover_since, self.release_s)

    @property
    def keep(self) -> int:
        """Return the spot replicas held that do not stay: not let go yet, or never (R44)."""
        observed = self.observed
        return observed.spot_dead + (observed.spot_pinned if self.covered else observed.spot_doomed)

    @property
    def top(self) -> int:
        """Return the most asked of spot: of a StatefulSet, who replaces the doomed would go before them."""
        return self.want + (self.observed.spot_dead if self.observed.spot_by_ordinal else self.keep)

    @property
    def release_s(self) -> float:
        """Return for how long the doomed have to have been covered before they are let go.

        Unless a setting says it: no longer than they can be let go and still end by themselves.
        """
        if self.tuning.release_s is not None:
            return self.tuning.release_s
        waits_s = [RELEASE_S]
        if self.state.cover_since is not None:
            waits_s += [(end - self.state.cover_since).total_seconds() for end in self._stops]
        return max(0.0, min(waits_s))

    @property
    def _stops(self) -> Iterator[datetime]:
        observed, since = self.observed, self.state.doomed_since
        if observed.spot_stop_at is not None:
            yield observed.spot_stop_at
        if observed.spot_stop_after_s is not None and since is not None:
            yield since + timedelta(seconds=observed.spot_stop_after_s)

    @property
    def doubted(self) -> bool:
        """Say whether spot has to prove itself before more than a probe of it is paid for (R27).

        Only while on-demand serves all by itself: else spot is needed, whatever it earns.
        """
        observed = self.observed
        serves_alone = observed.on_demand_ready >= observed.desired
        return is_barren(self.state, self.tuning) and self.probing and serves_alone

    @property
    def tried_again(self) -> datetime | None:
        """Return when spot that rests is asked for again; None when it may be asked for now (R27)."""
        until = rests_until(self.state, self.tuning) if self.doubted else None
        return until if until is not None and self.observed.waits.until_s(until) else None

    @property
    def probing(self) -> bool:
        """Say whether spot is asked for a few replicas only, because nobody knows if it can be had."""
        return self.observed.cover and (self.state.lost or bool(self.observed.blocked))


def losses(observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> RebalanceState:
    """Step 1 (R21 to R25): charge new losses once, back off, and remember since when things are as they are.

    A loss is a node, not a pod: a pod that ends on a healthy node (rollout, eviction, out of memory)
    says nothing about spot.
    """
    lost_nodes = set(observed.lost_node_uids)
    known = lost_nodes & set(state.charged)
    unknown = lost_nodes - known  # R22
    newly_lost = len(unknown) > state.uncharged
    if newly_lost and not observed.view_broken:  # R24
        state = replace(
            _barren(observed, state, tuning),
            soak_s=_backed_off(observed, policy, state, tuning),
            last_loss=observed.now,
            up_since=observed.now if observed.spot_ready else None,
            proven=False,
        )
    elif not newly_lost:
        if state.proven or observed.spot_has_stood(state.last_loss, state.soak(policy.soak_s)):
            state = with_changes(state, barren=0, barren_since=None)
        quiet = state.last_loss is None or observed.waits.past(state.last_loss, tuning.reset_s)
        # What is not asked for cannot be lost: that time proves nothing.
        quiet = quiet and not is_barren(state, tuning)
        state = with_changes(
            state,
            soak_s=None if quiet else state.soak_s,
            up_since=state.up_since or min(observed.spot_ready_since, default=None),
            lost=is_lost(observed, policy, state, tuning),
        )
    if newly_lost:
        state = replace(
            state,
            lost=True,
            interrupted=True,
            window=tuning.first_window,
            asked=observed.spot_ready + tuning.first_window,
        )
    charged = (*sorted(known), *sorted(unknown))[:CHARGED_MAX]
    return with_changes(
        state,
        interrupted=state.interrupted and (observed.lost_nodes_live or not lost_nodes),
        charged=tuple(sorted(charged)),
        uncharged=len(lost_nodes) - len(charged),
        proven=state.proven or observed.spot_has_stood(state.last_loss, state.soak(policy.soak_s)),
        short_since=short_since(observed, policy, state, tuning),
        cover_since=_since(
            observed.spot_doomed > 0 and observed.spot_ready + observed.on_demand_ready >= observed.desired,
            state.cover_since,
            observed.now,
        ),
        doomed_since=_since(observed.spot_doomed > 0, state.doomed_since, observed.now),
        on_demand_doomed_since=_since(
            observed.on_demand_doomed > 0, state.on_demand_doomed_since, observed.now
        ),
    )


def remembering(observed: RebalanceInput, state: RebalanceState) -> RebalanceState:
    """Take a raise of on-demand that nobody remembers for the cover of a loss: a crash has forgotten it.

    R26: spot has to prove itself again; cover that came without a loss leaves a soak later than it could.
    """
    if state.decided is None or observed.on_demand_spec <= state.decided:
        return state
    return replace(state, last_loss=observed.now, proven=False, decided=None)


def credit(observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning) -> Figures:
    """Step 2 (R31, R33): how much of spot counts, for raising on-demand and for lowering it.

    `up` is optimistic while healthy (a scale-out's pods count while their nodes are being bought),
    `down` is earned: only replicas that have stood for the soak.
    """
    base = base_replicas(observed.desired, policy)
    want = observed.desired - base
    if not observed.cover:
        up = max(want, observed.spot_placed)
        return Figures(observed, policy, tuning, state, base=base, up=up, need_up=base, need_down=base)
    if state.lost:
        up = observed.spot_ready
    elif observed.blocked or is_short(observed, policy, state):
        up = observed.spot_accounted
    else:
        up = max(want, observed.spot_placed)
    figures = Figures(observed, policy, tuning, state, base=base, up=up, need_up=base, need_down=base)

    def needed(spot: int) -> int:
        cover = max(base, observed.desired - min(want, spot))  # R35
        return cover if policy.on_demand_max is None else min(cover, policy.on_demand_max)

    need_up = needed(up)
    return replace(figures, need_up=need_up, need_down=max(need_up, needed(figures.soaked)))


def on_demand_replicas(figures: Figures) -> int:
    """Step 3 (R30 to R35): raise by what is missing at once, lower in steps, never below what N needs.

    What a policy change asks for beyond what is missing waits for room, so that planned moves never
    hold more than N + S (R32). What is held beyond N + S, after a scale-in for instance, goes without steps.
    """
    observed, tuning = figures.observed, figures.tuning
    spec, doomed = observed.on_demand_spec, figures.on_demand_doomed
    serving = spec - doomed
    # What tolerates everything may be bound to the very node that goes, and so may who replaces it (R30).
    target = figures.need_up + doomed - max(0, observed.on_demand_late - observed.desired)
    if spec < target:
        missing = observed.desired - figures.up - serving  # R30
        spot_staying = observed.spot_spec - observed.spot_going
        headroom = observed.desired + observed.max_surge - serving - spot_staying - observed.surging
        return spec + min(target - spec, max(missing, headroom, 0))

    surplus = spec - figures.need_down - doomed
    if surplus <= 0 or observed.view_broken:
        return spec
    last = figures.state.last_step
    resting = last is not None and not observed.waits.past(last, tuning.step_interval_s)
    headroom = observed.desired + max(1, observed.max_surge)
    above = max(0, serving + observed.spot_spec - observed.spot_going - headroom)
    step = above if resting else max(above, step_replicas(observed.desired, tuning))
    free = spec - observed.on_demand_ready - observed.on_demand_doomed
    spare = max(0, observed.spot_ready + observed.on_demand_ready - observed.desired)
    if above == 0 and surplus < step and figures.more_soak_soon:
        return spec
    return spec - min(surplus, step, spare + free)


def spot_replicas(figures: Figures, on_demand: int) -> int:
    """Step 4 (R40 to R47): ask for what is wanted, within N + S, and give back only what is spare.

    `on_demand` is what step 3 decided: the two lowerings of one reconcile share one surplus.
    """
    observed, keep = figures.observed, figures.keep
    spec = observed.spot_spec
    if observed.view_broken:
        return spec
    top = figures.top
    live = observed.spot_placed + keep
    target = min(live, top)
    if not (figures.releasing or observed.removing):
        # While some are let go nothing is asked for: a ReplicaSet deletes Pending pods first, and a doomed
        # or dead one would live on in the place of the probe. The next reconcile asks again.
        target = max(min(_ask(figures, top), spot_cap(figures, on_demand)), target)
    if target >= spec:
        return target

    lowered = max(0, observed.on_demand_spec - on_demand)
    unready = observed.on_demand_spec - observed.on_demand_ready - observed.on_demand_doomed
    on_demand_ready = observed.on_demand_ready - max(0, lowered - unready)
    free = spec - observed.spot_ready - keep
    spare = max(0, observed.spot_ready + on_demand_ready - observed.floor)  # R47
    return max(target, spec - free - spare)


def spot_cap(figures: Figures, on_demand: int) -> int:
    """Return how many spot replicas keep the whole near N + S; stuck or doomed on-demand apart (R46)."""
    observed = figures.observed
    # What is lowered first is what was never bound, so the stuck leave before anything else does.
    stuck = max(0, observed.on_demand_stuck - max(0, observed.on_demand_spec - on_demand))
    # With S = 0 the probe is still one more: without it nothing would ever return.
    headroom = max(1, observed.max_surge)
    if not figures.probing:  # else it would not return for as long as a rollout stands still
        headroom = max(0, headroom - observed.surging)
    return observed.desired + headroom - (on_demand - stuck - figures.on_demand_doomed) + figures.keep


def step_replicas(desired: int, tuning: Tuning) -> int:
    """Return the most by which one step lowers on-demand."""
    return max(1, ceil(desired * tuning.step_fraction))


def _ask(figures: Figures, top: int) -> int:
    """Return what is asked of spot before the cap: all while healthy, a window while it is not."""
    observed = figures.observed
    # R40. R45, both pools short: whichever has room first may serve.
    if not figures.probing or observed.on_demand_stuck:
        return top
    settling = is_settling(observed, figures.state, figures.tuning)
    # No more nodes can be had, but what nobody covers may use the room of those that are there.
    uncovered = observed.desired - observed.spot_ready - figures.need_up > 0
    believed = 0 if settling or (observed.blocked and not uncovered) else observed.fit_spot
    # R43: nobody buys a spot node while others are being taken. A blind probe waits until the doomed are gone
    # or let go, a minute at most. Room that is there is used at once.
    # Nor while a quota keeps on-demand from covering: a probe would wait in the place of one that can serve.
    blind = (figures.covered or not observed.spot_doomed) and not observed.on_demand_over_quota
    capacity_probe = figures.tuning.first_window if blind else 0
    if figures.doubted:
        proving = capacity_probe if figures.tried_again is None else 0
        return min(top, max(observed.spot_ready, proving) + figures.keep)
    window = max(capacity_probe, believed)
    if blind and not (observed.blocked or settling):
        window = max(window, figures.state.window)
    return min(top, observed.spot_ready + figures.keep + window)


def _barren(observed: RebalanceInput, state: RebalanceState, tuning: Tuning) -> RebalanceState:
    """Count a loss of spot for which on-demand had given up nothing; after any other, count anew (R27)."""
    if _is_same_burst(observed, state, tuning):
        return state
    if state.last_loss is None or state.proven or observed.on_demand_spec < observed.desired:
        return replace(state, barren=0, barren_since=None)
    return replace(state, barren=state.barren + 1, barren_since=state.barren_since or state.last_loss)


def _is_same_burst(observed: RebalanceInput, state: RebalanceState, tuning: Tuning) -> bool:
    """Whether a loss of this moment belongs to the last one. Only a loss asks: nothing waits for its end."""
    last = state.last_loss
    return last is not None and (observed.now - last).total_seconds() <= tuning.burst_s


def _backed_off(
    observed: RebalanceInput, policy: Policy, state: RebalanceState, tuning: Tuning
) -> float | None:
    """Return the soak after a loss: doubled while spot flaps, once for each burst."""
    if state.last_loss is None and state.up_since is None:
        return None  # the first look at a workload says nothing about how long spot had been up
    if _is_same_burst(observed, state, tuning):
        return state.soak_s
    if state.up_since is not None and (observed.now - state.up_since).total_seconds() >= tuning.calm_s:
        return None
    return min(max(tuning.soak_max_s, policy.soak_s), 2 * state.soak(policy.soak_s))


def _since(holds: bool, since: datetime | None, first: datetime) -> datetime | None:  # noqa: FBT001
    """Return when something began to hold, `first` when that is news; None while it does not."""
    if not holds:
        return None
    return first if since is None else since
