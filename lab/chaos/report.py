"""What a run of chaos prints: a line for each round, and a table of what was survived, by kind. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lab.chaos.faults import Fault
from lab.chaos.schedule import Event
from lab.chaos.suite import Round


def line_of(played: Round, seed: int) -> str:
    """Return one round in a line, and a line more for each promise that was broken."""
    parts = ", ".join(
        f"{each.terms.namespace.removeprefix('chaos-')} served >= {each.lowest}"
        f" ({each.terms.floor} less {each.excused} taken), staying <= {each.highest}"
        f" ({each.terms.bound} and {each.starting} starting)"
        for each in played.verdicts
    )
    steady = "never steady" if played.steady_s is None else f"steady after {played.steady_s:.0f} s"
    words = " ".join(entry.name for entry in played.entries)
    lines = [f"round {played.number}: {'BROKEN' if played.faults else 'kept'}; {steady}; {parts}; {words}"]
    lines += [f"  {fault}" for fault in played.faults]
    if played.faults:
        lines.append(f'  play it again: make chaos CHAOS="--seed {seed} --only {played.number}"')
    return "\n".join(lines)


def table(seed: int, rounds: Sequence[Round]) -> str:
    """Return the figures of a run in Markdown."""
    if not rounds:
        return "nothing was played\n"
    broken = [each for each in rounds if each.faults]
    times = sorted(each.steady_s for each in rounds if each.steady_s is not None)
    lines = [
        "",
        f"seed {seed}: {len(rounds)} rounds, {len(rounds) - len(broken)} kept every promise",
        f"steady after the last fault: median {times[len(times) // 2]:.0f} s, longest {times[-1]:.0f} s"
        if times
        else "never steady",
        *_footprints(rounds),
        "",
        "| fault or event | rounds | survived | requests that met it |",
        "|---|---|---|---|",
        *_rows(rounds),
    ]
    return "\n".join(lines) + "\n"


def _rows(rounds: Sequence[Round]) -> Iterator[str]:
    drawn: Counter[Fault | Event] = Counter()
    kept: Counter[Fault | Event] = Counter()
    struck: Counter[Fault | Event] = Counter()
    for played in rounds:
        struck.update(played.struck)
        for entry in played.entries:
            drawn[entry.name] += 1
            kept[entry.name] += not played.faults
    for name in (*Fault, *Event):
        if drawn[name]:
            requests = str(struck[name]) if isinstance(name, Fault) else ""
            yield f"| {name} | {drawn[name]} | {kept[name]} | {requests} |"


def _footprints(rounds: Sequence[Round]) -> Iterator[str]:
    collected = [each for played in rounds for each in played.footprints]
    if collected:
        yield (
            f"a splitter held {min(each.kib for each in collected) // 1024}"
            f"..{max(each.kib for each in collected) // 1024} MiB, "
            f"{min(each.files for each in collected)}..{max(each.files for each in collected)} open files, "
            f"{min(each.watches for each in collected)}..{max(each.watches for each in collected)} watches"
        )
