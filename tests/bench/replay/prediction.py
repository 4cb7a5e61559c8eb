"""What the simulator says about a trace, in the figures that can be measured on the sandbox.

Pure. The trace is made shorter by a factor, and with it every duration that the policy knows, so that
prediction and measurement live in the same hours. A workload's pods land on nodes by chance: the simulator
plays the trace many times, each time with the nodes that come at one instant in another order.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, pairwise

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import Tuning
from splitter.core.rebalance.model import RELEASE_S
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.replay import Assumptions, SimulationResult, simulate
from splitter.plugin.simulate.trace import Change, Trace

LEAD_S = 3 * 3600.0
"""Uncompressed. The simulator begins on on-demand; so long before the trace begins it may move to spot."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one workload: replica-seconds in compressed time, counts otherwise."""

    lost: float
    """Ready replica-seconds below N."""
    moves: int
    """Changes of the on-demand count."""
    most_ready: int
    on_spot: float
    """Share of the ready replicas that stood on spot, in time's average."""


def compressed(trace: Trace, factor: float) -> Trace:
    """Return the same trace, so many times faster.

    >>> compressed(Trace("t", (Change(60.0, "a", True),), 600.0), 60).duration_s
    10.0
    """
    changes = tuple(replace(change, at_s=change.at_s / factor) for change in trace.changes)
    return Trace(trace.name, changes, trace.duration_s / factor)


def tuned(factor: float) -> tuple[Policy, Tuning]:
    """Return the default policy and time constants, so many times faster. Shares and counts stay."""
    # No notice is given in a replay; said outright, since the default is not one duration to be divided.
    policy, tuning = Policy(), Tuning(release_s=RELEASE_S)
    times = {f.name: getattr(tuning, f.name) / factor for f in fields(tuning) if f.name.endswith("_s")}
    return (
        replace(policy, grace_s=policy.grace_s / factor, soak_s=policy.soak_s / factor),
        replace(tuning, **times),
    )


def predicted(
    trace: Trace, factor: float, *, replicas: int, surge: int, start_s: float, times: int, per_node: int
) -> list[Figures]:
    """Return what the simulator makes of `times` plays of a trace that is not compressed yet.

    `start_s` is real: what a pod needs on the sandbox.
    """
    policy, tuning = tuned(factor)
    short, lead_s = compressed(trace, factor), LEAD_S / factor
    given = Assumptions(
        desired=replicas,
        max_surge=surge,
        on_demand_start_s=start_s,
        spot_start_s=start_s,
        slots_per_node=per_node,
    )
    collected = []
    for seed in range(times):
        played = simulate(
            _led_in(_shuffled(short, seed), lead_s), Rebalancing("splitter", policy, tuning), given
        )
        collected.append(_figures(played, lead_s))
    return collected


def _shuffled(trace: Trace, seed: int) -> Trace:
    chance = random.Random(seed)
    changes: list[Change] = []
    for _, at_once in groupby(trace.changes, key=lambda change: change.at_s):
        alike = list(at_once)
        chance.shuffle(alike)
        changes += sorted(alike, key=lambda change: change.added)  # a node may leave and come in one instant
    return replace(trace, changes=tuple(changes))


def _led_in(trace: Trace, lead_s: float) -> Trace:
    """Return the trace with its first nodes there from the start, and everything else later."""
    changes = (replace(c, at_s=c.at_s + lead_s if c.at_s else 0.0) for c in trace.changes)
    return Trace(trace.name, tuple(changes), trace.duration_s + lead_s)


def _figures(played: SimulationResult, from_s: float) -> Figures:
    ends = [*(sample.at_s for sample in played.samples[1:]), played.duration_s]
    spans = [
        (sample, end_s - max(sample.at_s, from_s))
        for sample, end_s in zip(played.samples, ends, strict=True)
        if end_s > from_s
    ]
    ready_s = sum(sample.serving * seconds for sample, seconds in spans)
    return Figures(
        lost=sum(max(0, played.desired - sample.serving) * seconds for sample, seconds in spans),
        moves=sum(before.on_demand != after.on_demand for (before, _), (after, _) in pairwise(spans)),
        most_ready=max(sample.serving for sample, _ in spans),
        on_spot=sum(sample.spot_ready * seconds for sample, seconds in spans) / ready_s if ready_s else 0.0,
    )


def spread(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the mean, and the values that 5 and 95 of 100 are below.

    >>> spread([1, 2, 3])
    (2.0, 1, 3)
    """
    ordered: Sequence[float] = sorted(values)
    last = len(ordered) - 1
    return sum(ordered) / len(ordered), ordered[round(0.05 * last)], ordered[round(0.95 * last)]
