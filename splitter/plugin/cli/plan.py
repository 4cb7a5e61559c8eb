"""`splitter plan`: shows what splitter would do now and why, without writing anything."""

import asyncio
import json
import shutil
import sys
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal

import typer

from splitter.core.labels_annotations import LABEL_SPLIT, SPLIT_ENABLED
from splitter.core.names import Key
from splitter.exits import Exit
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.target import Target
from splitter.plugin.cli.wrapping import wrapped
from splitter.plugin.core.action_messages import describe
from splitter.plugin.preview import Preview, preview
from splitter.render.bounded import BoundedRenderer
from splitter.report.printable import printable

_SUPPOSED = f" (if it were labelled {LABEL_SPLIT}={SPLIT_ENABLED})"


Output = Literal["text", "json"]


@asks_cluster()
def plan(
    workload: str | None = typer.Argument(
        None, help="deploy/NAME or sts/NAME. Default: every workload.", autocompletion=workloads
    ),
    output: Output = typer.Option("text", "--output", "-o", help="Output format: text or json."),
    *,
    cluster: Cluster,
) -> None:
    """Show what splitter would do now, and why.

    It writes nothing. A named workload without the label is planned as if it had just been labelled.

    Exit code 0; 3 when a named workload does not exist.
    """
    target = cluster.target(workload)
    previews = asyncio.run(_look(target, cluster))
    if target.name is not None and not previews:
        sys.stderr.write(f"{target.words} is not there\n")
        raise typer.Exit(Exit.NOT_SPLIT)
    if output == "json":
        typer.echo(json.dumps([_plain(one) for one in previews], indent=2))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None  # what is piped is whole
    for one in previews:
        for line in map(printable, lines_of(one)):
            typer.echo("\n".join(wrapped(line, width, further="    ")))
    if not previews:
        typer.echo("no workload is labelled or split here")


async def lines_of_plan(cluster: Cluster, key: Key) -> list[str]:
    """Return the lines about one workload, printable. Raises ApiError, SplitterError."""
    target = Target(key.namespace, key.name, key.kind)
    previews = await _look(target, replace(cluster, selector=None))
    return [printable(line) for one in previews for line in lines_of(one)] or [f"{target.words} is not there"]


async def _look(target: Target, cluster: Cluster) -> list[Preview]:
    """Return the previews. Sets of the cluster are rendered within limits: others wrote them."""
    from splitter.assembly import cache_of, renderer_of, rules_of
    from splitter.kube.asks import enqueue_nothing

    async with cluster.connected() as (client, previews):
        cache = cache_of(previews, enqueue_nothing)
        with closing(BoundedRenderer(renderer_of(previews, cache.template_sets.by_name))) as renderer:
            return await preview(
                client,
                cache,
                renderer,
                rules_of(previews),
                namespaces=target.namespaces,
                wanted=await cluster.chosen(client, target),
                named=target.keys,
            )


def _plain(one: Preview) -> dict[str, Any]:
    return {
        "namespace": one.observed.key.namespace,
        "name": one.observed.key.name,
        "step": one.plan.step.value,
        "labelled": not one.supposed,
        "state": one.plan.state.value,
        "reason": one.plan.verdict.reason.value,
        "message": one.plan.verdict.message,
        "wanted": {"onDemand": one.plan.wanted_on_demand, "spot": one.plan.wanted_spot},
        "advice": [note.message for note in (*one.plan.barred, *one.plan.advice)],
        "objection": one.plan.objection.message if one.plan.objection else "",
        "unrehearsed": one.without_dry_run,
        "problems": [problem.message for problem in one.in_force.problems],
        "members": list(one.plan.outlook),
        "actions": [describe(action) for action in one.plan.actions],
    }


def lines_of(one: Preview) -> list[str]:
    """Return what is said of one workload, its advice included."""
    lines = [
        f"{one.observed.key}  {one.plan.state}{_SUPPOSED if one.supposed else ''}",
        # First: the rest of the plan is worth little where a pool takes no replica.
        *(f"  ! {note.message} ({note.reason})" for note in one.plan.barred),
        f"  {one.plan.verdict.message} ({one.plan.verdict.reason})",
    ]
    lines += [f"  ! {problem.message}" for problem in one.in_force.problems]
    if one.plan.objection is not None:
        lines.append(f"  ! {one.plan.objection.message} ({one.plan.objection.reason})")
    lines += [f"  ! {note.message} ({note.reason})" for note in one.plan.advice]
    if one.without_dry_run:
        lines.append(f"  ? not tried in a dry run with these credentials: {one.without_dry_run}")
    lines += [f"  {member}" for member in one.plan.outlook]
    lines += [f"  would {describe(action)}" for action in one.plan.actions]
    if not one.plan.actions:
        lines.append("  would write nothing")
    return lines
