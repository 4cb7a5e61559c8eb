"""`make traffic`: which requests fail while splitter works, and beside it a plain Deployment in the same run.

It decides nothing: `scenes` plays, `report` counts. The table goes to standard output, progress to standard
error. A target that is missed is named, and is no failure of the run.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.bench.figures import machine
from lab.bench.traffic import report
from lab.bench.traffic.scenes import SCENES, Segments
from lab.bench.traffic.stage import stage
from lab.sandbox import SandboxError


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for and print the tables, as far as it came; return the exit code."""
    chosen = _parser().parse_args(arguments)
    rounds: list[dict[str, Any]] = []
    code = 0
    while code == 0 and len(rounds) < chosen.rounds:
        segments: Segments = []
        code = _play(chosen.only or [scene.key for scene in SCENES], segments)
        sys.stdout.write(f"{report.markdown(segments)}\n\n")
        missed = report.misses(segments)
        sys.stdout.writelines(f"missed: {line}\n" for line in missed)
        if not missed and code == 0:
            sys.stdout.write("every target that was measured is reached\n")
        sys.stdout.flush()
        rounds.append(report.raw(segments, machine()))
        if chosen.output is not None:
            _keep(chosen.output, rounds, segments)
    return code


def _play(keys: Sequence[str], segments: Segments) -> int:
    """Play one round on new machines; return the exit code."""
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:5.0f} s  {line}\n")
        sys.stderr.flush()

    try:
        with stage(tell) as here:
            for scene in (scene for scene in SCENES if scene.key in keys):
                story = (scene.play.__doc__ or "").strip()
                tell(f"{scene.key}, load average {os.getloadavg()[0]:.1f}: {story}")
                published = len(segments)
                with here.shops(scene.key) as shops:
                    scene.play(shops, segments)
                for segment in segments[published:]:
                    for system, seen in segment.seen.items():
                        tell(f"  {segment.name}, {system}: {report.Figures.of(segment, seen)}")
    except KeyboardInterrupt:
        return 130
    except SandboxError as fault:
        tell(f"error: {fault}")
        return 1
    return 0


def _keep(folder: Path, rounds: Sequence[dict[str, Any]], segments: Segments) -> None:
    """Write the figures of all rounds, and the pictures of the last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traffic.json").write_text(json.dumps({"rounds": rounds}, indent=1) + "\n", encoding="utf-8")
    for segment in segments:
        name = segment.name.replace(", ", "-").replace(" ", "-").lower()
        (folder / f"traffic-{name}.svg").write_text(report.svg(segment), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make traffic", description="Count failed requests; 8 minutes.")
    keys = [scene.key for scene in SCENES]
    parser.add_argument(
        "--only", action="append", choices=keys, help="a scene, more than once for several; all by default"
    )
    parser.add_argument("--rounds", type=int, default=1, help="play all of it so often, on new machines")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write figures and pictures there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
