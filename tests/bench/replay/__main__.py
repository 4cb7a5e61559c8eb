"""`make replay`: a public spot trace drives real nodes under a real application.

The simulator's word for the same trace stands beside what was measured. The table goes to standard
output, progress to standard error.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.replay.prediction import Figures, compressed, predicted, spread
from bench.replay.stage import Cast, Outcome, play
from lab.bench.figures import machine
from lab.checkout import ROOT
from lab.sandbox import SandboxError
from splitter.plugin.simulate.trace import Trace, read_trace

DATA = Path(os.environ.get("SPLITTER_DATA", ROOT.parent / "shared" / "data"))
PLAYS = 200
SURGE_PERCENT = 25
PODS_PER_NODE = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, predict, print; return the exit code."""
    chosen = _parser().parse_args(arguments)
    cast = Cast(chosen.manifest, chosen.replicas, chosen.start)
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:5.0f} s  {line}\n")
        sys.stderr.flush()

    try:
        trace = _beginning(read_trace(chosen.trace), chosen.hours)
        guesses = predicted(
            trace,
            chosen.factor,
            replicas=cast.replicas,
            surge=-(-cast.replicas * SURGE_PERCENT // 100),
            start_s=cast.start_s,
            times=PLAYS,
            per_node=PODS_PER_NODE,
        )
        outcome = play(compressed(trace, chosen.factor), chosen.factor, cast, tell)
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, SandboxError) as fault:
        sys.stderr.write(f"error: {fault}\n")
        return 1
    sys.stdout.write(_report(trace, chosen.factor, cast, guesses, outcome))
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(_raw(guesses, outcome), indent=1) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make replay", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--trace", type=Path, default=DATA / "traces" / "bamboo-p3.csv", help="what to play")
    parser.add_argument("--manifest", type=Path, default=DATA / "online-boutique.yaml", help="on what")
    parser.add_argument("--factor", type=float, default=40.0, help="how many times faster than it was")
    parser.add_argument("--hours", type=float, default=1e6, help="play only so much of its beginning")
    parser.add_argument("--replicas", type=int, default=4, help="of each Deployment")
    parser.add_argument("--start", type=float, default=3.0, help="real seconds until a pod is ready")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the raw figures there, as JSON")
    return parser


def _beginning(trace: Trace, hours: float) -> Trace:
    end_s = min(trace.duration_s, hours * 3600)
    return Trace(trace.name, tuple(change for change in trace.changes if change.at_s < end_s), end_s)


def _report(trace: Trace, factor: float, cast: Cast, guesses: list[Figures], outcome: Outcome) -> str:
    seen = list(outcome.figures.values())
    whole = cast.replicas * trace.duration_s / factor
    rows = [
        (
            "ready replica-seconds lost",
            *_both("{:.1f}", [one.lost for one in seen], [g.lost for g in guesses]),
        ),
        (
            "availability",
            *_both("{:.5f}", [1 - one.lost / whole for one in seen], [1 - g.lost / whole for g in guesses]),
        ),
        ("moves of on-demand", *_both("{:.1f}", [one.moves for one in seen], [g.moves for g in guesses])),
        ("share on spot", *_both("{:.3f}", [one.on_spot for one in seen], [g.on_spot for g in guesses])),
        (
            "most ready replicas",
            *_both("{:.1f}", [one.most_ready for one in seen], [g.most_ready for g in guesses]),
        ),
    ]
    length_s, short_s = trace.duration_s, trace.duration_s / factor
    pods = f"{len(seen)} Deployments of {cast.replicas} replicas, all wanted on spot"
    start = f"ready after {cast.start_s:g} s, that is {cast.start_s * factor:.0f} s of the trace"
    heads = (f"mean of {count} (5 %..95 %)" for count in (len(seen), PLAYS))
    lines = [
        f"{trace.name}: {length_s / 3600:.1f} h in {short_s:.0f} s, factor {factor:g}",
        f"{len(trace.changes)} times a node came or went, the latest {outcome.latest_s:.2f} s late",
        f"{pods}; {start}; most pods at once: {outcome.most_pods}",
        f"{machine()}",
        "",
        "| a workload | measured, {} | predicted, {} |".format(*heads),
        "|---|---|---|",
        *(f"| {name} | {measured} | {guess} |" for name, measured, guess in rows),
    ]
    return "\n".join(lines) + "\n"


def _both(form: str, measured: Sequence[float], guesses: Sequence[float]) -> tuple[str, str]:
    return _written(form, measured), _written(form, guesses)


def _written(form: str, values: Sequence[float]) -> str:
    mean, low, high = (form.format(value) for value in spread(values))
    return f"{mean} ({low}..{high})"


def _raw(guesses: list[Figures], outcome: Outcome) -> dict[str, object]:
    return {
        "measured": {name: asdict(one) for name, one in outcome.figures.items()},
        "mostPods": outcome.most_pods,
        "latestSeconds": outcome.latest_s,
        "predicted": [asdict(one) for one in guesses],
    }


if __name__ == "__main__":
    sys.exit(main())
