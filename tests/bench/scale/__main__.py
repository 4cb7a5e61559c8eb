"""How splitter grows: the same day of work with 100, 300 and 1,000 workloads of 10 replicas.

`make scale` starts a sandbox of its own for each size, on loopback and nowhere else, and writes
`benchmarks/scale.json` and `scale.md` after each measure. Beside each figure stands its floor, measured in
the same sandbox: the same writes by a client that decides nothing. splitter has one core (the last one);
everything else shares what is there, this process too.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.scale.core import Figures
from bench.scale.rounds import STAGES, Pace, by_turns, measure, size_of
from bench.scale.still import STILL_STAGES, measure_still
from bench.scale.tables import REPLICAS, lines, markdown
from lab.bench.figures import machine, write

ROOT = Path(__file__).resolve().parents[3]
RESULTS, BUILD = ROOT / "benchmarks", ROOT / "build"
SIZES = (100, 300, 1000)
TURNS = 100  # 10 at a time take as long again for each 10: at 1,000 it would be an hour


class Results:
    """The two files."""

    def __init__(
        self, path: Path, command: str, *, keep: bool, still: bool = False, replicas: int = REPLICAS
    ) -> None:
        self._path = path
        self._still = still
        self._replicas = replicas
        self._command = command
        self.sizes: dict[int, Figures] = {}
        if keep and path.exists():
            former: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            self.sizes = {int(size): figures for size, figures in former["sizes"].items()}

    def save(self, size: int, figures: Figures) -> None:
        """Write everything that is known, with these figures of one size."""
        self.sizes[size] = {**self.sizes.get(size, {}), **figures}
        seen, sizes = machine(), dict(sorted(self.sizes.items()))
        write(
            self._path,
            {"command": self._command, "machine": seen, "replicas": self._replicas, "sizes": sizes},
        )
        page = markdown(self.sizes, seen, self._command, still=self._still, replicas=self._replicas)
        self._path.with_suffix(".md").write_text(page, encoding="utf-8")


def main() -> None:
    """Measure each size, and show all."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--replicas", type=int, default=REPLICAS, help="of each workload, 2 or more")
    parser.add_argument("--idle", type=float, default=300.0, help="seconds of idleness to measure")
    parser.add_argument("--notices", type=int, default=8, help="nodes that are announced one by one")
    parser.add_argument(
        "--still", action="store_true", help="a still life: only what needs no pod that moves"
    )
    stages = {**STAGES, **STILL_STAGES}
    parser.add_argument("--stages", nargs="+", choices=stages, default=list(stages), help="only these")
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="workloads taken over 10 at a time; 0: not measured"
    )
    parser.add_argument(
        "--results",
        type=Path,
        help="benchmarks/scale.json, or still.json of a still life; in build/ for a part of a day",
    )
    parser.add_argument("--keep", action="store_true", help="keep the other figures in the results")
    options = parser.parse_args()
    later = set(options.stages) & STAGES.keys() - {"plain-roll"}
    if later and "on-boarding" not in later and not options.still:
        parser.error(f"{', '.join(sorted(later))}: of workloads that are split, so on-boarding comes first")
    # What is kept there is read by others (docs/capacity.md): a part of a day does not take its place.
    whole = options.keep or set(options.stages) >= (STILL_STAGES if options.still else STAGES).keys()
    path = options.results or (RESULTS if whole else BUILD) / (
        "still.json" if options.still else "scale.json"
    )
    path.parent.mkdir(exist_ok=True)
    command = f'make scale SCALE="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else "make scale"
    results = Results(path, command, keep=options.keep, still=options.still, replicas=options.replicas)
    if options.turns and not options.still:
        print(f"{options.turns} workloads, 10 at a time", flush=True)  # noqa: T201 - for who waits
        by_turns(size_of(options.turns, options.replicas), partial(results.save, options.turns))
    for workloads in options.workloads:
        print(f"{workloads} workloads", flush=True)  # noqa: T201 - for who waits
        size, pace = size_of(workloads, options.replicas), Pace(options.idle, options.notices)
        if options.still:
            measure_still(size, pace, partial(results.save, workloads), options.stages)
        else:
            of_a_day = [name for name in options.stages if name in STAGES]
            measure(size, pace, partial(results.save, workloads), of_a_day)
    head, *rows = lines(results.sizes, options.replicas)
    table = Table(*head, title="splitter as workloads grow", title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
