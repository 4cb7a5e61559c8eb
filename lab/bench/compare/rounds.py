"""The rounds: what happens, in which order, and which figures are read off the recording.

`__main__` plays those whose columns are wanted, one after the other. In a round every system lives through
the same events, in a namespace of its own, with a Deployment made for this round; at the same moments,
unless the round says otherwise (`alone`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.bench.compare import measures
from lab.bench.compare.arena import Arena
from lab.bench.compare.columns import Measured
from lab.bench.compare.scenario import (
    GAP_S,
    LONG_NOTICE_S,
    NEXT_IMAGE,
    NOTICE_S,
    OUTAGE_S,
    OUTAGES,
    QUICK,
    SLOW,
    SURGE,
    N,
    Workload,
)
from lab.bench.compare.systems import System
from lab.sandbox import Between, Instant, Timeline
from lab.sandbox.recording import PodSeen

_TAIL_S = 10.0  # looked at beyond the last event, for what comes late
_BACK_S = 90.0  # a pod of a vanished Node is found by Kubernetes within a minute
_RETURN_S = 900.0
_NO_RETURN_S = 300.0  # how long nobody's return is waited for


Step = tuple[float, int, int]
"""Seconds since the column's event, available replicas, pods (terminating ones left out)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one system did in one column: the figures, and the steps they were read off."""

    column: str
    system: str
    figures: Measured
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """Events, and the columns that they fill.

    `alone`: the systems come one after the other, because tenths of a second count: replacing the pods of
    all at the same moment, two cores would be what is measured.
    """

    name: str
    columns: tuple[str, ...]
    play: Callable[[Arena, frozenset[str]], Iterator[Cell]]
    alone: bool = False


def calm(arena: Arena, _wanted: frozenset[str]) -> Iterator[Cell]:
    """Nothing happens to any machine: the systems take a running Deployment over, then roll an image out."""
    arena.deploy_undressed(QUICK)
    began = Instant.now()
    arena.dress(QUICK)
    arena.wait_until_standing(QUICK)
    yield from _cells(arena, "take-over", QUICK, _and_a_tail(arena, began))

    began = Instant.now()
    arena.set_image(QUICK, NEXT_IMAGE)
    arena.wait_until_rolled(QUICK, NEXT_IMAGE)
    arena.wait_until_standing(QUICK)
    yield from _cells(arena, "image", QUICK, _and_a_tail(arena, began))


def notice(arena: Arena, _wanted: frozenset[str]) -> Iterator[Cell]:
    """All spot machines get a notice and go 30 s later; an image is rolled out while there are none."""
    arena.set_up(QUICK)
    began = arena.world.notice(NOTICE_S)
    arena.world.pass_until(began, NOTICE_S)
    arena.world.take()
    arena.wait_until_serving(QUICK)
    yield from _cells(arena, "b", QUICK, _and_a_tail(arena, began))

    began = Instant.now()
    arena.set_image(QUICK, NEXT_IMAGE)
    arena.wait_until_rolled(QUICK, NEXT_IMAGE)
    yield from _cells(arena, "image-in-cover", QUICK, _and_a_tail(arena, began))


def orphans(arena: Arena, _wanted: frozenset[str]) -> Iterator[Cell]:
    """All spot machines go at once, and nobody deletes their pods but who wants to."""
    arena.set_up(QUICK)
    began = arena.world.take(pods_too=False)
    arena.wait_until_serving(QUICK, _BACK_S)
    yield from _cells(arena, "orphans", QUICK, _and_a_tail(arena, began))


def gone(arena: Arena, _wanted: frozenset[str]) -> Iterator[Cell]:
    """All spot machines go at once, without a word."""
    arena.set_up(QUICK)
    began = arena.world.take()
    arena.wait_until_serving(QUICK)
    yield from _cells(arena, "c", QUICK, _and_a_tail(arena, began))


def outages(arena: Arena, _wanted: frozenset[str]) -> Iterator[Cell]:
    """All spot machines go at once, three times; each time new ones come and stay for a while."""
    arena.set_up(QUICK)
    gaps: list[Between] = []
    began = Instant.now()
    for _ in range(OUTAGES):
        arena.world.pass_until(arena.world.take(), OUTAGE_S)
        gaps.append(_gap(arena))
    yield from _cells(arena, "e", QUICK, Between(began, Instant.now()), gaps=gaps)


def comeback(arena: Arena, wanted: frozenset[str]) -> Iterator[Cell]:
    """Spot machines are announced to go long before they do, and then come back for good."""
    slow = bool({"d-slow", "long-notice"} & wanted)
    arena.set_up(QUICK, *([SLOW] if slow else []))
    began = arena.world.notice(LONG_NOTICE_S)
    arena.world.pass_until(began, LONG_NOTICE_S)
    arena.world.take()
    for workload in (QUICK, SLOW) if slow else (QUICK,):
        arena.wait_until_serving(workload)
    ended = _and_a_tail(arena, began).end
    if slow:
        yield from _cells(arena, "long-notice", SLOW, Between(began, ended))

    came = arena.world.give_back()
    if "d" in wanted or "d-slow" in wanted:
        followed = (QUICK, SLOW) if "d-slow" in wanted else (QUICK,)
        returning = tuple(system for system in arena.shops if system.returns)
        if returning:
            arena.wait_until_standing(*followed, systems=returning, deadline_s=_RETURN_S)
        else:
            arena.world.pass_until(came, _NO_RETURN_S)
        between = _and_a_tail(arena, came)
        for column, workload in zip(("d", "d-slow"), followed, strict=False):
            yield from _cells(arena, column, workload, between, before=began)


ROUNDS = (
    Round("calm", ("take-over", "image"), calm),
    Round("notice", ("b", "image-in-cover"), notice),
    Round("gone", ("c",), gone, alone=True),
    Round("orphans", ("orphans",), orphans),
    Round("outages", ("e",), outages),
    Round("comeback", ("long-notice", "d", "d-slow"), comeback),
)


def _and_a_tail(arena: Arena, began: Instant) -> Between:
    arena.world.pass_until(Instant.now(), _TAIL_S)
    return Between(began, Instant.now())


def _gap(arena: Arena) -> Between:
    """Give new machines, and let the time between two outages pass."""
    came = arena.world.give_back()
    arena.world.pass_until(came, GAP_S)
    return Between(came, Instant.now())


def _on_spot(pod: PodSeen) -> bool:
    return pod.node.startswith("spot-")


def _on_demand(pod: PodSeen) -> bool:
    return pod.node.startswith("on-demand-")


def _starting(pod: PodSeen) -> bool:
    return _on_demand(pod) and not pod.ready


def _cells(
    arena: Arena,
    column: str,
    workload: Workload,
    between: Between,
    *,
    gaps: list[Between] | None = None,
    before: Instant | None = None,
) -> Iterator[Cell]:
    """Yield one cell a system; `gaps` between outages, `before`: when spot was last as wanted."""
    for system in arena.shops:
        pods = arena.timeline(system, workload)
        figures: dict[str, float | None] = {
            "lost": measures.lost(pods.available, N, between),
            "min": pods.lowest_available(between),
            "max": pods.highest_total(between, with_terminating=False),
            "back after": measures.back_after_s(pods.available, N, between),
        }
        if gaps is not None:
            on_demand = arena.timeline(system, workload, _on_demand).available
            figures["returns"] = measures.returns(on_demand, gaps)
            figures["dips"] = sum(measures.dips(pods.available, N, gap) for gap in gaps)
        if before is not None:
            on_spot = arena.timeline(system, workload, _on_spot).available
            former = on_spot.at(before)
            figures["complete after"] = on_spot.seconds_until_at_least(former, between.start)
        if column == "long-notice":
            figures["over the bound"] = _over_the_bound(arena, system, workload, between)
        yield Cell(column, system.key, figures, _steps(pods, between))


def _over_the_bound(arena: Arena, system: System, workload: Workload, between: Between) -> int:
    """Return the most pods there were beyond N + max(S, starting) + doomed; all on spot are doomed here."""
    total = arena.timeline(system, workload).total_without_terminating
    starting = arena.timeline(system, workload, _starting).total_without_terminating
    doomed = arena.timeline(system, workload, _on_spot).total_without_terminating
    return measures.most_over(total, (starting, doomed), N, SURGE, between)


def _steps(pods: Timeline, between: Between) -> tuple[Step, ...]:
    """Return the changes since the beginning of the stretch; of several within 10 ms the last."""
    later = [time_s for time_s in pods.available.times if time_s > between.start.monotonic_s]
    moments = [
        between.start,
        *(Instant(time_s, 0.0) for time_s in later if time_s <= between.end.monotonic_s),
    ]
    by_time = {
        round(moment.monotonic_s - between.start.monotonic_s, 2): (
            pods.available.at(moment),
            pods.total_without_terminating.at(moment),
        )
        for moment in moments
    }
    collected: list[Step] = []
    for time_s, counts in by_time.items():
        if not collected or collected[-1][1:] != counts:
            collected.append((time_s, *counts))
    return tuple(collected)
