"""What a soak prints: a line for each hour, and a table of what stayed flat and what did not. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lab.soak.bill import Billed
from lab.soak.day import What
from lab.soak.flat import Finding, Gauge
from lab.soak.suite import Hour


def line_of(hour: Hour) -> str:
    """Return one hour in a line, and a line more for each promise that was broken."""
    counts = Counter(deed.what for deed in hour.deeds)
    words = ", ".join(f"{counts[what]} x {what}" for what in What if counts[what]) or "nothing happened"
    served = ", ".join(
        f"{each.terms.namespace.removeprefix('chaos-')} {each.lowest}/{each.terms.floor - each.excused}"
        for each in hour.verdicts
    )
    rest = "never at rest" if hour.steady_s is None else f"at rest after {hour.steady_s:.0f} s"
    undone = f"; {hour.undone} not done" if hour.undone else ""
    head = (
        f"hour {hour.number}: {'BROKEN' if hour.faults else 'kept'}; {rest}; least {served}; {words}{undone}"
    )
    return "\n".join([head, *(f"  {fault}" for fault in hour.faults)])


def table(
    seed: int,
    hours: Sequence[Hour],
    findings: Mapping[tuple[str, Gauge], Finding],
    missed: int,
    billed: Sequence[Billed],
) -> str:
    """Return the figures of a run in Markdown."""
    if not hours:
        return "nothing was played\n"
    gauges = [*_gauges(findings), *_missed(missed), ""] if findings else []
    return "\n".join([*_promises(seed, hours), "", *gauges, *_bills(billed)]) + "\n"


def _promises(seed: int, hours: Sequence[Hour]) -> Iterator[str]:
    broken = [hour for hour in hours if hour.faults]
    times = sorted(hour.steady_s for hour in hours if hour.steady_s is not None)
    done = Counter(deed.what for hour in hours for deed in hour.deeds)
    yield ""
    yield f"seed {seed}: {len(hours)} hours, {len(hours) - len(broken)} kept every promise"
    if times:
        middle = times[len(times) // 2]
        yield f"at rest after what happened last: median {middle:.0f} s, longest {times[-1]:.0f} s"
    yield ", ".join(f"{done[what]} x {what}" for what in What if done[what])


def _gauges(findings: Mapping[tuple[str, Gauge], Finding]) -> Iterator[str]:
    yield "| splitter | what | second fifth | last fifth | slope, an hour | growth | bound | |"
    yield "|---|---|---|---|---|---|---|---|"
    for (name, gauge), one in findings.items():
        verdict = "flat" if one.flat else "GROWS"
        figures = f"{one.second:.1f} | {one.last:.1f} | {one.an_hour:+.1f} | {one.growth:+.1f}"
        yield f"| {name} | {gauge} | {figures} | {one.bound:g} | {verdict} |"


def _bills(billed: Sequence[Billed]) -> Iterator[str]:
    yield "| workload | pool | billed, replica-seconds | counted | off by | |"
    yield "|---|---|---|---|---|---|"
    for one in billed:
        verdict = "near" if one.near else "OFF"
        figures = f"{one.bill_s:.0f} | {one.counted_s:.0f} | {100 * one.off:+.2f} %"
        yield f"| {one.namespace.removeprefix('chaos-')} | {one.use} | {figures} | {verdict} |"


def _missed(missed: int) -> Iterator[str]:
    if missed:
        yield f"{missed} samples could not be taken"
