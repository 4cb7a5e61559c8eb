"""`splitter simulate`: simulates policies on a trace of spot capacity.

No cluster is needed. It reads flags, has `splitter.plugin.simulate` play, and writes what came of it.
"""

import json
import sys
from functools import partial
from math import ceil, isfinite
from pathlib import Path
from typing import Literal

import typer

from splitter.core.labels_annotations.policy import Policy
from splitter.exits import faults_as_sentences
from splitter.plugin.cli.annotations import Named, policy_of, read_annotations, read_named
from splitter.plugin.cli.progress import progress
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.outage import parse_outage
from splitter.plugin.simulate.picture import svg
from splitter.plugin.simulate.replay import Assumptions, SimulationResult
from splitter.plugin.simulate.replay import simulate as replay
from splitter.plugin.simulate.summary import as_json, compared
from splitter.plugin.simulate.trace import Trace, read_trace

_LONG = 5_000  # changes of nodes to play: more take seconds


Output = Literal["text", "json"]


def simulate(
    replicas: int = typer.Option(..., "--replicas", min=1, max=100_000, help="Replicas of the workload."),
    trace: Path | None = typer.Option(
        None, help="A trace file: SkyPilot's JSON, or lines of milliseconds,add|remove,node."
    ),
    outage: str | None = typer.Option(
        None, help="An outage instead of a trace file: every=2h,last=10m,nodes=8,days=7."
    ),
    annotation: list[str] = typer.Option(
        [], "--annotation", help="KEY=VALUE, for every policy. May be repeated."
    ),
    policy: list[str] = typer.Option(
        [], "--policy", help="NAME:KEY=VALUE,KEY=VALUE. Repeat it to compare policies."
    ),
    spot_price: float = typer.Option(
        0.30, min=0, help="Price of a spot replica relative to on-demand (1.0)."
    ),
    on_demand_start: float = typer.Option(
        120, min=0, max=86_400, help="Seconds until an on-demand replica is ready."
    ),
    spot_start: float = typer.Option(90, min=0, max=86_400, help="Seconds until a spot replica is ready."),
    notice: float = typer.Option(0, min=0, max=86_400, help="Seconds from a node's notice to its loss."),
    replicas_per_node: int = typer.Option(1, min=1, help="How many replicas fit on one spot node."),
    output: Output = typer.Option("text", "--output", "-o", help="Output format: text or json."),
    picture: Path | None = typer.Option(None, help="Write an SVG of capacity and replicas over time."),
) -> None:
    """Replay spot capacity against policies.

    It tells availability, cost and moves, and needs no cluster.

    Exit code 1 when a trace or a policy cannot be read.
    """
    if (trace is None) == (outage is None):
        raise typer.BadParameter("give one of --trace FILE and --outage every=2h,last=10m,nodes=8")
    if not all(map(isfinite, (spot_price, on_demand_start, spot_start, notice))):
        raise typer.BadParameter("prices and seconds are finite numbers")
    given = Assumptions(
        desired=replicas,
        max_surge=ceil(replicas / 4),  # a Deployment's own default, 25 %
        on_demand_start_s=on_demand_start,
        spot_start_s=spot_start,
        notice_s=notice,
        spot_price=spot_price,
        slots_per_node=replicas_per_node,
    )
    with faults_as_sentences("simulate"):
        played = read_trace(trace) if trace is not None else parse_outage(outage or "")
        asked = _asked(annotation, policy)
        results = _play(played, asked, given)
        if picture is not None:
            picture.write_text(svg(results, replicas_per_node), encoding="utf-8")
    if output == "json":
        annotations = [one.annotations for one in asked]
        typer.echo(json.dumps(as_json(played, given, list(zip(results, annotations, strict=True))), indent=2))
        return
    typer.echo(compared(played, given, results))


def _asked(annotation: list[str], policy: list[str]) -> list[Named]:
    """Return the policies to compare; without --policy, the one that --annotation describes."""
    common = read_annotations(annotation)
    return read_named(policy, common) if policy else [Named("policy" if common else "defaults", common)]


def _play(trace: Trace, asked: list[Named], given: Assumptions) -> list[SimulationResult]:
    contenders = []
    for one in asked:
        try:
            wanted, warnings = policy_of(one.annotations, Policy(), given.desired)
        except ValueError as fault:
            raise ValueError(f"policy {one.name}: {fault}" if len(asked) > 1 else str(fault)) from None
        for warning in warnings:
            sys.stderr.write(f"splitter simulate: {warning}\n")
        contenders.append(Rebalancing(one.name, wanted))
    number = len(contenders)
    with progress(wanted=len(trace.changes) * number > _LONG) as tell:  # a bar that is gone at once flickers

        def share(before: int, done: float) -> None:
            tell("replaying", (before + done) / number)

        return [
            replay(trace, contender, given, partial(share, before))
            for before, contender in enumerate(contenders)
        ]
