"""`make soak`: a day in 20 minutes, or days in hours; what splitter takes must stay flat.

Progress goes to standard error; a line for each hour and the table to standard output. Exit code 1 when a
promise was broken, something grew, or what the Splits tell is not near the bill.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.chaos.workload import PLAYED
from lab.checkout import ROOT
from lab.sandbox import SandboxError
from lab.soak.day import HOUR_S, hour
from lab.soak.flat import TooShortError
from lab.soak.report import line_of, table
from lab.soak.suite import Hour, Soak
from lab.traces import Trace, read_trace

TRACE = ROOT / "tests" / "plugin" / "simulate" / "traces" / "bamboo-g4dn.csv"
LEAST_MINUTES = 3.0
"""Of less nothing can be said."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, judge, print; return the exit code."""
    chosen = _parser().parse_args(arguments)
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:6.1f} s  {line}\n")
        sys.stderr.flush()

    try:
        trace = read_trace(chosen.trace)
    except (OSError, ValueError) as fault:
        sys.stderr.write(f"error: {fault}\n")
        return 1
    if chosen.list:
        _print_days(chosen.seed, trace, _hours(chosen.minutes), sys.stdout.write, restarts=chosen.restarts)
        return 0
    home = Path(tempfile.mkdtemp(prefix="splitter-soak-"))
    hours: list[Hour] = []
    try:
        with Soak.open(home, trace, chosen.seed, tell, restarts=chosen.restarts) as soak:
            try:
                _play(soak, chosen.minutes, hours, home)
            except KeyboardInterrupt:
                sys.stderr.write("ended by hand; what was played until then:\n")
            findings, billed = soak.findings(), soak.billed()
            sys.stdout.write(table(chosen.seed, hours, findings, soak.missed, billed))
    except (SandboxError, TooShortError) as fault:
        sys.stderr.write(f"error: {fault}\nlogs are in {home}\n")
        return 1
    sys.stderr.write(f"logs, and the story of each broken hour, are in {home}\n")
    kept = not any(each.faults for each in hours)
    return int(not (kept and all(one.flat for one in findings.values()) and all(one.near for one in billed)))


def _play(soak: Soak, minutes: float, hours: list[Hour], home: Path) -> None:
    for number in range(_hours(minutes)):
        hours.append(soak.play(number))
        sys.stdout.write(line_of(hours[-1]) + "\n")
        sys.stdout.flush()
        if hours[-1].story:
            (home / f"hour-{number}.txt").write_text(hours[-1].story + "\n", encoding="utf-8")


def _hours(minutes: float) -> int:
    return round(minutes * 60 / HOUR_S)


def _print_days(
    seed: int, trace: Trace, hours: int, write: Callable[[str], object], *, restarts: bool
) -> None:
    for number in range(hours):
        write(f"hour {number}:\n")
        for deed in hour(seed, number, trace, len(PLAYED), restarts=restarts):
            write(f"  {deed}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make soak",
        description="It starts a sandbox of its own on loopback; it cannot be pointed at another cluster.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=7, help="the same seed draws the same days")
    parser.add_argument("--minutes", type=_minutes, default=20.0, help="20 for each day; an hour takes 50 s")
    parser.add_argument("--trace", type=Path, default=TRACE, help="when spot nodes come and go in a day")
    parser.add_argument(
        "--restarts",
        action="store_true",
        help="kill both splitters three times a day and change the leader once; what a process holds is not "
        "judged then",
    )
    parser.add_argument("--list", action="store_true", help="print the days and play nothing")
    return parser


def _minutes(text: str) -> float:
    try:
        result = float(text)
    except ValueError:
        result = 0.0
    if not LEAST_MINUTES <= result < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes, {LEAST_MINUTES:g} or more")
    return result


if __name__ == "__main__":
    sys.exit(main())
