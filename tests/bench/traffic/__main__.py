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

from bench.figures import machine
from bench.traffic import report
from bench.traffic.scenes import SCENES, Segments
from bench.traffic.stage import stage
from splitter.sandbox import SandboxError


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is asked for and print the table, as far as it came; return the exit code."""
    chosen = _parser().parse_args(arguments)
    keys = chosen.only or [scene.key for scene in SCENES]
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:5.0f} s  {line}\n")
        sys.stderr.flush()

    segments: Segments = []
    code = 0
    try:
        with stage(tell) as here:
            for scene in (scene for scene in SCENES if scene.key in keys):
                story = (scene.play.__doc__ or "").strip()
                tell(f"{scene.key}, load average {os.getloadavg()[0]:.1f}: {story}")
                told = len(segments)
                with here.shops(scene.key) as shops:
                    scene.play(shops, segments)
                for segment in segments[told:]:
                    for system, seen in segment.seen.items():
                        tell(f"  {segment.name}, {system}: {report.Figures.of(segment, seen)}")
    except KeyboardInterrupt:
        code = 130
    except SandboxError as fault:
        tell(f"error: {fault}")
        code = 1
    sys.stdout.write(f"{report.markdown(segments)}\n\n")
    missed = report.misses(segments)
    sys.stdout.writelines(f"missed: {line}\n" for line in missed)
    if not missed and code == 0:
        sys.stdout.write("every target that was measured is reached\n")
    if chosen.output is not None:
        chosen.output.mkdir(parents=True, exist_ok=True)
        figures = json.dumps(report.raw(segments, machine()), indent=1) + "\n"
        (chosen.output / "traffic.json").write_text(figures, encoding="utf-8")
        for segment in segments:
            name = segment.name.replace(", ", "-").replace(" ", "-").lower()
            (chosen.output / f"traffic-{name}.svg").write_text(report.svg(segment), encoding="utf-8")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make traffic", description="Count failed requests; 8 minutes.")
    keys = [scene.key for scene in SCENES]
    parser.add_argument(
        "--only", action="append", choices=keys, help="a scene, more than once for several; all by default"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write figures and pictures there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
