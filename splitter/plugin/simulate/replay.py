"""Plays a trace against a contender, from event to event, and adds up what came of it.

Events are nodes coming, being announced to go and going, pods becoming ready, and the contender's own
timers. After each, the contender is asked until it has nothing more to change, as the reconciler does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from itertools import count

from splitter.plugin.simulate.contenders import Contender
from splitter.plugin.simulate.trace import Trace
from splitter.plugin.simulate.world import Pod, World

DAY_S = 86_400.0
PASSES_MAX = 16
"""Reconciles at one instant before a contender is taken to be undecided; `decide` needs at most three."""

_REPORTED_EVERY = 0.01


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Values that the trace does not contain. The defaults are those of the evidence table."""

    desired: int = 16
    max_surge: int = 4
    max_unavailable: int = 0
    on_demand_start_s: float = 120.0
    spot_start_s: float = 90.0
    notice_s: float = 0.0
    spot_price: float = 0.30
    """Against an on-demand replica of 1."""
    slots_per_node: int = 1
    standing_nodes: bool = True
    """Spot nodes stand there before they are asked for; False: an autoscaler buys them for pending pods."""
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Sample:
    """The state from one instant on; for pictures."""

    at_s: float
    spot_nodes: int
    on_demand: int
    """Asked of on-demand."""
    spot_ready: int
    serving: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What came of one contender on one trace."""

    contender: str
    trace: str
    desired: int
    duration_s: float
    cost: float
    """Against all on-demand: 1 = as dear."""
    availability: float
    """Ready replicas over wanted replicas, in time's average; more than wanted counts as wanted."""
    on_demand_changes_per_day: float
    most_ready: int
    least_ready: int
    seconds_short: float
    """Time with fewer replicas ready than wanted."""
    samples: tuple[Sample, ...] = field(repr=False, default=())


@dataclass(slots=True)
class _Sums:
    """Integrals over the time that has passed."""

    on_demand_s: float = 0.0
    spot_s: float = 0.0
    served_s: float = 0.0
    short_s: float = 0.0
    changes: int = 0
    most_ready: int = 0
    least_ready: int = 1_000_000_000
    samples: list[Sample] = field(default_factory=list)

    def let_pass(self, world: World, desired: int, seconds: float) -> None:
        serving = world.serving
        self.on_demand_s += world.on_demand_spec * seconds
        self.spot_s += world.spot_paid * seconds
        self.served_s += min(serving, desired) * seconds
        self.short_s += seconds if serving < desired else 0.0
        self.least_ready = min(self.least_ready, serving)
        spot_nodes, spot_serving = len(world.doomed), world.spot_serving
        sample = Sample(world.clock_s, spot_nodes, world.on_demand_spec, spot_serving, serving)
        self.samples.append(sample)


def simulate(
    trace: Trace,
    contender: Contender,
    assumptions: Assumptions | None = None,
    progress: Callable[[float], None] | None = None,
) -> SimulationResult:
    """Play one trace against one contender; `progress` is told the share that is done, once a percent.

    It begins with all replicas ready on on-demand. Costs count replicas as long as they have a node,
    starting ones included. Raises ValueError when no replica is wanted or the trace has no length.
    """
    given = assumptions or Assumptions()
    if given.desired < 1 or trace.duration_s <= 0:
        raise ValueError(f"nothing to simulate: {given.desired} replicas over {trace.duration_s:g} s")
    contender.start()
    world = World(
        given.start,
        given.on_demand_start_s,
        given.spot_start_s,
        given.slots_per_node,
        given.standing_nodes,
        given.notice_s,
        on_demand=[Pod(0.0, 0.0, f"on-demand-{number}") for number in range(given.desired)],
        on_demand_spec=given.desired,
    )
    sums = _Sums()
    order = count()  # ties keep the order of the trace
    agenda = [(at_s, next(order), node, what) for at_s, node, what in _node_events(trace, given.notice_s)]
    agenda.append((0.0, next(order), "", ""))  # everybody is asked at the start
    heapify(agenda)
    percent_reported = 0.0
    while agenda:
        at_s = min(agenda[0][0], trace.duration_s)
        if at_s > world.clock_s:
            sums.let_pass(world, given.desired, at_s - world.clock_s)
            world.clock_s = at_s
        if at_s >= trace.duration_s:
            break
        if progress is not None and at_s >= percent_reported * trace.duration_s:
            percent_reported = at_s / trace.duration_s + _REPORTED_EVERY
            progress(at_s / trace.duration_s)
        while agenda and agenda[0][0] <= at_s:
            _, _, node, what = heappop(agenda)
            _happen(world, node, what)
        sums.most_ready = max(sums.most_ready, world.serving)  # the peak lasts until the answer
        for due_s in _ask(world, contender, given, sums):
            heappush(agenda, (due_s, next(order), "", ""))
    if world.clock_s < trace.duration_s:
        sums.let_pass(world, given.desired, trace.duration_s - world.clock_s)
    whole_s = given.desired * trace.duration_s
    return SimulationResult(
        contender=contender.name,
        trace=trace.name,
        desired=given.desired,
        duration_s=trace.duration_s,
        cost=(sums.on_demand_s + given.spot_price * sums.spot_s) / whole_s,
        availability=sums.served_s / whole_s,
        on_demand_changes_per_day=sums.changes * DAY_S / trace.duration_s,
        most_ready=sums.most_ready,
        least_ready=sums.least_ready,
        seconds_short=sums.short_s,
        samples=tuple(sums.samples),
    )


def _node_events(trace: Trace, notice_s: float) -> list[tuple[float, str, str]]:
    """List what happens to nodes; a notice comes before a removal, but not before the node."""
    events, came_s = [], dict[str, float]()
    for change in trace.changes:
        if change.added:
            came_s[change.node] = change.at_s
            events.append((change.at_s, change.node, "add"))
        else:
            if notice_s > 0:
                events.append((max(came_s[change.node], change.at_s - notice_s), change.node, "doom"))
            events.append((change.at_s, change.node, "remove"))
    return events


def _happen(world: World, node: str, what: str) -> None:
    match what:
        case "add":
            world.doomed[node] = False
        case "doom":
            world.doomed[node] = True
        case "remove":
            world.doomed.pop(node, None)
        case _:
            pass  # a pod became ready, or a timer is due: looking again is all


def _ask(world: World, contender: Contender, given: Assumptions, sums: _Sums) -> list[float]:
    """Ask and obey until nothing changes; return when to look again."""
    due_s: list[float] = []
    requeue_after_s: float | None = None
    for _ in range(PASSES_MAX):
        observed = world.observe(given.desired, given.max_surge, given.max_unavailable)
        on_demand, spot, requeue_after_s = contender.answer(observed)
        steady = (on_demand, spot) == (world.on_demand_spec, world.spot_spec) and not observed.lost_node_uids
        sums.changes += on_demand != world.on_demand_spec
        due_s += world.scale(on_demand, spot)
        if steady:
            break
    return due_s if requeue_after_s is None else [*due_s, world.clock_s + requeue_after_s]
