"""`make compare`: splitter and Kubernetes' own ways live through the same events; a table says how.

It decides nothing: `rounds` plays, `measures` counts, `report` prints. The table goes to standard output,
progress to standard error. A target that is missed is named, and is no failure of the run.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.bench.compare import report
from lab.bench.compare.arena import world
from lab.bench.compare.columns import COLUMNS
from lab.bench.compare.rounds import ROUNDS, Cell, Round
from lab.bench.compare.scenario import TEXT
from lab.bench.compare.systems import SYSTEMS, System
from lab.bench.figures import machine
from lab.sandbox import SandboxError


@dataclass(slots=True)
class Played:
    """What has been measured so far, and the load average at the beginning of each round."""

    cells: list[Cell] = field(default_factory=list)
    loads: dict[str, float] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for and print the table, as far as it came; return the exit code."""
    chosen = _parser().parse_args(arguments)
    systems = [system for system in SYSTEMS if system.key in chosen.only]
    played, code = Played(), 0
    try:
        _play(systems, frozenset(chosen.columns), played, keep_logs=chosen.keep_logs)
    except KeyboardInterrupt:
        code = 130
    except SandboxError as fault:
        _tell(f"error: {fault}")
        code = 1
    if played.cells:
        _print(played, systems, chosen.output)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make compare", description="Compare, side by side; half an hour.")
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


def _play(systems: Sequence[System], wanted: frozenset[str], played: Played, *, keep_logs: bool) -> None:
    began_s = time.monotonic()

    def tell(line: str) -> None:
        _tell(f"{time.monotonic() - began_s:5.0f} s  {line}")

    with world(systems, _tell, keep_logs=keep_logs) as here:
        for each, asked, taking_part in _schedule(systems, wanted):
            name = f"{each.name} ({', '.join(system.key for system in taking_part)})"
            played.loads[name] = round(os.getloadavg()[0], 1)
            tell(f"round {name}, load average {played.loads[name]:g}: {_story(each)}")
            with here.arena(each.name, taking_part) as arena:
                for cell in each.play(arena, asked):
                    if cell.column in asked:
                        played.cells.append(cell)
                        tell(_line(cell))


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


def _print(played: Played, systems: Sequence[System], output: Path | None) -> None:
    values = report.raw(played.cells, machine() | {"load_average_of_rounds": played.loads})
    figures = json.dumps(values, indent=1) + "\n"
    misses = report.misses(played.cells)
    said = [TEXT, report.markdown(played.cells, systems), ""]
    said += [f"missed: {sentence}" for sentence in misses] or ["every target that was measured is reached"]
    sys.stdout.write("\n".join(said) + "\n")
    if output is None:
        sys.stdout.write(f"\n{figures}")
    else:
        output.write_text(figures, encoding="utf-8")


def _line(cell: Cell) -> str:
    column = next(column for column in COLUMNS if column.key == cell.column)
    return f"{column.heading}  {cell.system}: {column.written(cell.figures)}"


def _listed(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what reads `a,b` where each must be one of the known words."""

    def words(text: str) -> list[str]:
        result = text.split(",")
        unknown = [word for word in result if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return result

    return words


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
