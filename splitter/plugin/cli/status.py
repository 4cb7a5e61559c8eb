"""`splitter status`: shows the state of split workloads, once or live."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.core.reasons import State
from splitter.exits import Exit, MendableError
from splitter.kube.as_user import key_of
from splitter.kube.client import ApiError, Json
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.dialect import written
from splitter.plugin.cli.members import Member, contexts_in, members, wanted_at, whole
from splitter.plugin.cli.splits import beside, read_splits, status_of, table
from splitter.plugin.cli.target import Target

_LOOK_S = 1.0
_NOTHING = "no workload is split here"


Output = Literal["table", "wide", "json", "yaml"]


@asks_cluster()
def status(
    workload: str | None = typer.Argument(
        None, help="deploy/NAME or sts/NAME. Default: every workload.", autocompletion=workloads
    ),
    output: Output = typer.Option(
        "table", "--output", "-o", help="Output format: table, wide, json or yaml."
    ),
    watch: bool = typer.Option(False, "--watch", "-w", help="Refresh every second until Ctrl-C."),
    contexts: str | None = typer.Option(
        None, "--contexts", help="Several clusters in one table: their contexts, as m1,m2."
    ),
    hub: str | None = typer.Option(
        None, "--hub", help="With --contexts: the context of Karmada, whose wish is shown beside the sum."
    ),
    *,
    cluster: Cluster,
) -> None:
    """Show the state of split workloads.

    READY counts all wanted replicas, ON-DEMAND and SPOT those wanted in each pool. REASON says why.

    Exit code 0; 3 if a named workload is not split; 1 if one of several clusters does not answer.
    """
    if watch and output in {"json", "yaml"}:
        raise typer.BadParameter("-w shows a table; leave it out, or -o")
    target = cluster.target(workload)
    if contexts is not None:
        _show_all(contexts, hub, cluster, target, output, watch=watch)
        return
    if hub is not None:
        raise typer.BadParameter("--hub goes with --contexts")
    try:
        text = asyncio.run(_show(target, cluster, output, watch=watch))
    except KeyboardInterrupt:
        if watch:
            return  # how -w ends
        raise
    if target.name is not None and not text:
        sys.stderr.write(f"{target.words} is not split\n")
        raise typer.Exit(Exit.NOT_SPLIT)


def _show_all(
    contexts: str, hub: str | None, cluster: Cluster, target: Target, output: Output, *, watch: bool
) -> None:
    """Show several clusters once; raises typer.Exit as `status` says."""
    if watch or output in {"json", "yaml"}:
        raise typer.BadParameter(
            "--contexts shows one table; ask each cluster with --context for -w, json or yaml"
        )
    if cluster.context is not None:
        raise typer.BadParameter("name one cluster with --context, or several with --contexts")
    try:
        names = contexts_in(contexts)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from None
    answers, wanted, away = asyncio.run(_asked_all(names, hub, cluster, target))
    console = Console(highlight=False, soft_wrap=True)
    width = console.width if console.is_terminal else None
    namespaced = target.namespace is None
    shown = [*answers, *away]
    console.print(whole(shown, wanted, namespaced=namespaced, wide=output == "wide", width=width))
    if any(member.failure for member in shown):
        raise typer.Exit(Exit.MENDABLE)
    if target.name is not None and not any(member.splits for member in answers):
        raise typer.Exit(Exit.NOT_SPLIT)


async def _asked_all(
    names: Sequence[str], hub: str | None, cluster: Cluster, target: Target
) -> tuple[list[Member], Mapping[Key, int | None] | None, list[Member]]:
    """Return what the clusters say, what the hub asks for, and the hub if it does not answer."""
    answers = await members(names, cluster, target)
    if hub is None:
        return answers, None, []
    keys = dict.fromkeys(key_of(split) for member in answers for split in member.splits)
    try:
        return answers, await wanted_at(hub, cluster, keys), []
    except (SplitterError, MendableError) as error:
        return answers, None, [Member(hub, failure=str(error))]


async def _show(target: Target, cluster: Cluster, output: Output, *, watch: bool) -> bool:
    """Return whether anything was found at the first look."""
    console = Console(highlight=False, soft_wrap=True)
    async with cluster.connected() as (client, _):

        async def look() -> list[Json]:
            return await read_splits(client, target, await cluster.chosen(client, target))

        splits = await look()
        if target.name is not None and not splits:
            return False
        if watch:
            await _watch(look, target, console, wide=output == "wide")
        else:
            _print(splits, target, console, output)
            if target.name is not None and output in {"table", "wide"}:
                for line in filter(None, [await beside(client, key_of(one)) for one in splits]):
                    console.print(line)
    return bool(splits)


def _print(splits: list[Json], target: Target, console: Console, output: Output) -> None:
    match output:
        case "json":
            typer.echo(json.dumps(_whole(splits, target), indent=2))
        case "yaml":
            typer.echo(written(_whole(splits, target)), nl=False)
        case "table" | "wide":
            console.print(_table(splits, target, console, wide=output == "wide"))


def _whole(splits: list[Json], target: Target) -> Json:
    """Return one object where one was named, else a List, as kubectl does."""
    if target.name is not None:
        return splits[0]
    return {"apiVersion": "v1", "kind": "List", "items": splits}


def _table(splits: list[Json], target: Target, console: Console, *, wide: bool) -> Text:
    if not splits:
        return Text(_NOTHING)
    width = console.width if console.is_terminal else None  # what is piped is not shortened
    return table(splits, namespaced=target.namespace is None, wide=wide, width=width)


async def _watch(
    look: Callable[[], Awaitable[list[Json]]], target: Target, console: Console, *, wide: bool
) -> None:
    """Show the table until Ctrl-C: in its place on a terminal, elsewhere whenever it has changed."""
    before = ""
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            try:
                splits = await look()
            except ApiError as error:
                shown = Text(f"no answer: {error.message}; trying again", style="yellow")
            else:
                splits, left_out = fitted(splits, console.height) if console.is_terminal else (splits, "")
                shown = _table(splits, target, console, wide=wide)
                if left_out:
                    shown.append(f"\n{left_out}")
            if console.is_terminal:
                live.update(shown, refresh=True)
            elif shown.plain != before:
                before = shown.plain
                console.file.write(f"{before}\n")
                console.file.flush()
            await asyncio.sleep(_LOOK_S)


def fitted(splits: list[Json], height: int) -> tuple[list[Json], str]:
    """Return what a screen holds and a line about the rest; where not all fits, first what is not Steady.

    >>> fitted([{"status": {"state": "Steady"}}] * 9 + [{"status": {"state": "Held"}}], 3)
    ([{'status': {'state': 'Held'}}], '... and 9 more: 9 Steady')
    """
    if len(splits) < height:
        return splits, ""
    lines = max(1, height - 2)  # the heading, and the line about the rest
    urgent = sorted(splits, key=lambda split: status_of(split).state == State.STEADY)
    left = Counter(status_of(split).state or "-" for split in urgent[lines:])
    states = ", ".join(f"{count} {state}" for state, count in left.most_common())
    return urgent[:lines], f"... and {left.total()} more: {states}"
