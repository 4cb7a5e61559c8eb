"""`splitter status`: how the split workloads stand, once or live."""

import asyncio
import json
import sys
from enum import StrEnum
from pathlib import Path

import typer
import yaml
from rich.console import Console
from rich.live import Live
from rich.text import Text

from splitter.cli.splits import read_splits, table
from splitter.cli.target import (
    AllOption,
    ContextOption,
    NamespaceOption,
    SettingsOption,
    Target,
    connected,
    target_of,
)
from splitter.kube.client import ApiError, Client, Json

_LOOK_S = 1.0
_NOTHING = "no workload is split here"


class Output(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="status")(status)


def status(
    workload: str | None = typer.Argument(None, help="deploy/NAME; without it every workload."),
    namespace: str | None = NamespaceOption,
    everywhere: bool = AllOption,
    context: str | None = ContextOption,
    settings: Path | None = SettingsOption,
    output: Output = typer.Option(Output.TABLE, "--output", "-o", help="table, wide, json or yaml."),
    watch: bool = typer.Option(False, "--watch", "-w", help="Go on looking, each second, until Ctrl-C."),
) -> None:
    """Show how the split workloads stand: READY of all wanted, each pool's ready of wanted, and why.

    Exit code 0; 3 when a workload was named that is not split.
    """
    if watch and output in {Output.JSON, Output.YAML}:
        raise typer.BadParameter("-w shows a table; leave it out, or -o")
    target = target_of(workload, namespace, everywhere=everywhere)
    try:
        found = asyncio.run(_show(target, settings, context, output, watch=watch))
    except KeyboardInterrupt:
        return  # how -w ends
    if target.name is not None and not found:
        sys.stderr.write(f"deployment {target.namespace}/{target.name} is not split\n")
        raise typer.Exit(3)


async def _show(
    target: Target, settings: Path | None, context: str | None, output: Output, *, watch: bool
) -> bool:
    """Return whether anything was found at the first look."""
    console = Console(highlight=False, soft_wrap=True)
    async with connected(settings, context) as (client, _):
        splits = await read_splits(client, target)
        if target.name is not None and not splits:
            return False
        if watch:
            await _watch(client, target, console, wide=output is Output.WIDE)
        else:
            _print(splits, target, console, output)
    return bool(splits)


def _print(splits: list[Json], target: Target, console: Console, output: Output) -> None:
    match output:
        case Output.JSON:
            typer.echo(json.dumps(_whole(splits, target), indent=2))
        case Output.YAML:
            typer.echo(yaml.safe_dump(_whole(splits, target), sort_keys=False, allow_unicode=True), nl=False)
        case Output.TABLE | Output.WIDE:
            console.print(_table(splits, target, console, wide=output is Output.WIDE))


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


async def _watch(client: Client, target: Target, console: Console, *, wide: bool) -> None:
    """Show the table until Ctrl-C: in its place on a terminal, elsewhere whenever it has changed."""
    before = ""
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            try:
                shown = _table(await read_splits(client, target), target, console, wide=wide)
            except ApiError as error:
                shown = Text(f"no answer: {error.message}; trying again", style="yellow")
            if console.is_terminal:
                live.update(shown, refresh=True)
            elif shown.plain != before:
                before = shown.plain
                console.file.write(f"{before}\n")
                console.file.flush()
            await asyncio.sleep(_LOOK_S)
