"""Decides when a plan is tried in dry runs before it is carried out, and remembers what they were answered.

Before the first touch of a workload, before a roll, and right before pods are let go. The reconciler asks
`rehearsed` with each plan; what the API server refuses changes the plan. Nothing is asked again while its
answer is fresh. Source: H12, H18, H66.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from splitter.core.model import Note, Observation, Rendered, seconds_between
from splitter.core.names import Key
from splitter.core.plan import (
    Plan,
    PolicyInForce,
    Rules,
    begins,
    half_rolled,
    held_back,
    lets_go,
    rolls,
)
from splitter.core.planner import plan
from splitter.core.reasons import VerdictCause
from splitter.core.replica import Pool
from splitter.kube.apply import Writer

if TYPE_CHECKING:
    from datetime import datetime


class Rehearsals:
    """What was asked of the API server in dry runs, by workload; lost by a restart, which asks once more."""

    def __init__(self, writer: Writer, rules: Rules, moving: Callable[[Key], int]) -> None:
        self._writer = writer
        self._moving = moving  # how many others are in a move: some may begin while answers are waited for
        self._rules = rules
        self._acceptable: dict[Key, tuple[str, ...]] = {}  # renderings that the API server would take
        self._kept: dict[Key, tuple[Note, datetime]] = {}  # why pods were not let go, and when that was said

    def known(self, observed: Observation) -> Observation:
        """Return it with what was answered lately about letting its pods go."""
        known = self._kept.get(observed.key)
        if known is None or seconds_between(known[1], observed.now) >= self._rules.look_again_s:
            return observed
        return replace(observed, letting_go_refused=known[0])

    def forget(self, key: Key) -> None:
        """Forget a workload that is gone."""
        self._acceptable.pop(key, None)
        self._kept.pop(key, None)

    async def rehearsed(
        self,
        observed: Observation,
        in_force: PolicyInForce,
        twins: Mapping[Pool, Rendered],
        planned: Plan,
    ) -> tuple[Observation, Plan]:
        """Return what to do after a dry run of what is due, if one is. Raises ApiError."""
        if begins(planned):
            said = await self._writer.dry_run(observed, twins)
            moving = self._moving(observed.key)
            observed = replace(observed, denied=said.denied, additions=said.added, others_moving=moving)
            return observed, plan(observed, in_force, twins, self._rules)
        if lets_go(planned, observed):
            refused = await self._writer.rehearse_letting_go(observed, twins)
            self._kept.pop(observed.key, None)
            if refused is None:
                return observed, planned
            self._kept[observed.key] = refused, observed.now
            observed = replace(observed, letting_go_refused=refused)
            return observed, plan(observed, in_force, twins, self._rules)
        if self._needs_dry_run(observed, twins, planned):
            denied = await self._writer.dry_run_roll(observed, twins)
            planned = planned if denied is None else held_back(planned, denied, self._rules.look_again_s)
            self._acceptable[observed.key] = _hashes(twins) if denied is None else ()
        return observed, planned

    def _needs_dry_run(self, observed: Observation, twins: Mapping[Pool, Rendered], planned: Plan) -> bool:
        """Whether it is not known yet that the API server takes twins that are rolled, or wait for a rollout.

        Before the first twin of a roll it is asked again, even after an answer. The author of a template
        set is told at once; the user whose rollout it would hold may come weeks later.
        """
        known = self._acceptable.get(observed.key) == _hashes(twins)
        if rolls(planned):
            return not (known and half_rolled(observed, twins))
        return planned.verdict.cause is VerdictCause.NEXT_ROLLOUT and not known


def _hashes(twins: Mapping[Pool, Rendered]) -> tuple[str, ...]:
    return tuple(twins[pool].hash for pool in Pool)
