"""`make compare`: splitter and Kubernetes' own ways live through the same events; a table says how.

It decides nothing: `rounds` plays, `measures` counts, `report` prints. The table goes to standard output,
progress to standard error. A target that is missed is named, and is no failure of the run.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.compare import report
from bench.compare.arena import world
from bench.compare.columns import COLUMNS
from bench.compare.rounds import ROUNDS, Cell, Round
from bench.compare.scenario import TEXT
from bench.compare.systems import SYSTEMS, System
from bench.figures import machine
from splitter.sandbox import SandboxError


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for and print the table; return the exit code."""
    chosen = _parser().parse_args(arguments)
    systems = [system for system in SYSTEMS if system.key in chosen.only]
    try:
        cells = _play(systems, chosen.columns, keep_logs=chosen.keep_logs)
    except KeyboardInterrupt:
        return 130
    except SandboxError as fault:
        _tell(f"error: {fault}")
        return 1
    _print(cells, systems, chosen.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make compare", description="Compare, side by side; 27 minutes.")
    parser.add_argument(
        "--only",
        type=_listed([system.key for system in SYSTEMS]),
        default=[system.key for system in SYSTEMS],
        metavar="SYSTEM,...",
        help=f"of {', '.join(system.key for system in SYSTEMS)}",
    )
    parser.add_argument(
        "--columns",
        type=_listed([column.key for column in COLUMNS]),
        default=[column.key for column in COLUMNS],
        metavar="COLUMN,...",
        help=f"of {', '.join(column.key for column in COLUMNS)}",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the raw figures there, as JSON")
    parser.add_argument(
        "--keep-logs", action="store_true", help="keep the logs of control plane and splitter"
    )
    return parser


def _play(systems: Sequence[System], wanted: Sequence[str], *, keep_logs: bool) -> list[Cell]:
    cells: list[Cell] = []
    began_s = time.monotonic()

    def tell(line: str) -> None:
        _tell(f"{time.monotonic() - began_s:5.0f} s  {line}")

    with world(systems, _tell, keep_logs=keep_logs) as here:
        for each, asked, taking_part in _schedule(systems, frozenset(wanted)):
            names = ", ".join(system.key for system in taking_part)
            tell(f"round {each.name} ({names}), load average {os.getloadavg()[0]:.1f}: {_story(each)}")
            with here.arena(each.name, taking_part) as arena:
                for cell in each.play(arena, asked):
                    if cell.column in asked:
                        cells.append(cell)
                        tell(_line(cell))
    return cells


def _schedule(
    systems: Sequence[System], wanted: frozenset[str]
) -> Iterator[tuple[Round, frozenset[str], Sequence[System]]]:
    """Yield the rounds to play, the columns that are asked of each, and who takes part."""
    for each in ROUNDS:
        asked = wanted & frozenset(each.columns)
        for taking_part in [[system] for system in systems] if each.alone else [systems]:
            if asked:
                yield each, asked, taking_part


def _story(played: Round) -> str:
    return (played.play.__doc__ or "").strip()


def _print(cells: list[Cell], systems: Sequence[System], output: Path | None) -> None:
    figures = json.dumps(report.raw(cells, machine()), indent=1) + "\n"
    misses = report.misses(cells)
    said = [TEXT, report.markdown(cells, systems), ""]
    said += [f"missed: {sentence}" for sentence in misses] or ["every target that was measured is reached"]
    sys.stdout.write("\n".join(said) + "\n")
    if output is None:
        sys.stdout.write(f"\n{figures}")
    else:
        output.write_text(figures, encoding="utf-8")


def _line(cell: Cell) -> str:
    column = next(column for column in COLUMNS if column.key == cell.column)
    return f"{column.heading}  {cell.system}: {column.written(cell.figures)}"


class _listed:  # noqa: N801 - argparse shows it as the type's name
    """Reads `a,b` where each must be one of the known words."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, text: str) -> list[str]:
        words = text.split(",")
        unknown = [word for word in words if word not in self._known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(self._known)}")
        return words


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
