"""`make chaos`: faults between splitter and its API server, and a world that does not keep still.

Progress goes to standard error; the verdicts and the table of what was survived to standard output. Exit
code 1 when a promise was broken.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from lab.chaos.faults import Fault
from lab.chaos.report import line_of, table
from lab.chaos.schedule import Entry, Event, drawn
from lab.chaos.suite import Round, Suite
from lab.sandbox import SandboxError

Word = TypeVar("Word", bound=StrEnum)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, judge, print; return the exit code."""
    chosen = _parser().parse_args(arguments)
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:6.1f} s  {line}\n")
        sys.stderr.flush()

    if chosen.list:
        for number in _numbers(chosen):
            _print_schedule(number, _entries(chosen, number), sys.stdout.write)
        return 0
    home = Path(tempfile.mkdtemp(prefix="splitter-chaos-"))
    rounds: list[Round] = []
    try:
        with Suite.open(home, tell) as suite:
            until_s = time.monotonic() + chosen.minutes * 60
            for number in _numbers(chosen):
                if chosen.rounds is None and chosen.only is None and time.monotonic() >= until_s:
                    break
                entries = _entries(chosen, number)
                _print_schedule(number, entries, sys.stderr.write)
                rounds.append(suite.play(number, entries))
                sys.stdout.write(line_of(rounds[-1], chosen.seed) + "\n")
                sys.stdout.flush()
                if rounds[-1].story:
                    (home / f"round-{number}.txt").write_text(rounds[-1].story + "\n", encoding="utf-8")
    except KeyboardInterrupt:
        sys.stderr.write("ended by hand; what was played until then:\n")
    except SandboxError as fault:
        sys.stderr.write(f"error: {fault}\nlogs, and the story of each broken round, are in {home}\n")
        return 1
    sys.stdout.write(table(chosen.seed, rounds))
    sys.stderr.write(f"logs, and the story of each broken round, are in {home}\n")
    return int(any(each.faults for each in rounds) or not rounds)


def _numbers(chosen: argparse.Namespace) -> Iterator[int]:
    if chosen.only is not None:
        return iter([chosen.only])
    if chosen.rounds is None:
        return iter([1]) if chosen.list else itertools.count(1)
    return iter(range(1, chosen.rounds + 1))


def _entries(chosen: argparse.Namespace, number: int) -> tuple[Entry, ...]:
    return drawn(chosen.seed, number, chosen.faults, chosen.events)


def _print_schedule(number: int, entries: tuple[Entry, ...], write: Callable[[str], object]) -> None:
    write(f"round {number}:\n")
    for entry in entries:
        write(f"  {entry}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make chaos",
        description="It starts a sandbox of its own on loopback; it cannot be pointed at another cluster.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=7, help="the same seed draws the same rounds")
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no round after so long")
    parser.add_argument("--rounds", type=_positive, help="play so many rounds, however long they take")
    parser.add_argument("--only", type=_positive, metavar="ROUND", help="play this one round of the seed")
    parser.add_argument("--list", action="store_true", help="print the schedule and play nothing")
    for name, words in (("faults", Fault), ("events", Event)):
        parser.add_argument(
            f"--{name}",
            type=_words(words),
            default=tuple(words),
            metavar="NAME,...",
            help="draw only from these",
        )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _words(words: type[Word]) -> Callable[[str], tuple[Word, ...]]:
    def parsed(text: str) -> tuple[Word, ...]:
        known = {word.value: word for word in words}
        named = [name.strip() for name in text.split(",") if name.strip()]
        if unknown := [name for name in named if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: the names are {', '.join(known)}")
        return tuple(known[name] for name in named)

    return parsed


if __name__ == "__main__":
    sys.exit(main())
