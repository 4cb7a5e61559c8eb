"""`splitter restart`, `rollout`, `freeze`, `unfreeze`: the annotations a person would write, written.

Each asks the running controller for something by an annotation on the source; nothing else is touched, and
it is the user's own right that counts. What comes of it is seen with `splitter status`.
"""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import typer

from splitter.cli.target import ContextOption, NamespaceOption, SettingsOption, connected, target_of
from splitter.core.surface import (
    ANNOTATION_FREEZE,
    ANNOTATION_RESTARTED_AT,
    ANNOTATION_ROLLOUT_AT,
    LABEL_SPLIT,
)
from splitter.kube.as_user import annotate

WorkloadArgument = typer.Argument(help="deploy/NAME.")
_NOT_SPLIT = 3


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (restart, rollout, freeze, unfreeze):
        app.command(name=verb.__name__)(verb)


def restart(
    workload: str = WorkloadArgument,
    namespace: str | None = NamespaceOption,
    context: str | None = ContextOption,
    settings: Path | None = SettingsOption,
) -> None:
    """Replace every pod, one twin after the other: what `kubectl rollout restart` cannot do while split.

    Exit code 0; 3 when the workload is not split.
    """
    _ask(workload, namespace, context, settings, {ANNOTATION_RESTARTED_AT: _now()}, "restarts")


def rollout(
    workload: str = WorkloadArgument,
    namespace: str | None = NamespaceOption,
    context: str | None = ContextOption,
    settings: Path | None = SettingsOption,
) -> None:
    """Roll a changed template set out now, instead of with the workload's next rollout.

    Exit code 0; 3 when the workload is not split.
    """
    _ask(workload, namespace, context, settings, {ANNOTATION_ROLLOUT_AT: _now()}, "gets its template set")


def freeze(
    workload: str = WorkloadArgument,
    namespace: str | None = NamespaceOption,
    context: str | None = ContextOption,
    settings: Path | None = SettingsOption,
) -> None:
    """Hold both counts as they are, in an emergency too, until `splitter unfreeze`.

    Exit code 0; 3 when the workload is not split.
    """
    _ask(workload, namespace, context, settings, {ANNOTATION_FREEZE: "true"}, "is frozen")


def unfreeze(
    workload: str = WorkloadArgument,
    namespace: str | None = NamespaceOption,
    context: str | None = ContextOption,
    settings: Path | None = SettingsOption,
) -> None:
    """Let both counts move again.

    Exit code 0; 3 when the workload is not split.
    """
    _ask(workload, namespace, context, settings, {ANNOTATION_FREEZE: None}, "is no longer frozen")


def _ask(
    workload: str,
    namespace: str | None,
    context: str | None,
    settings: Path | None,
    annotations: dict[str, str | None],
    comes: str,
) -> None:
    target = target_of(workload, namespace, everywhere=False)
    where, name = target.namespace or "default", target.name or workload
    if not asyncio.run(_annotated(where, name, settings, context, annotations)):
        sys.stderr.write(f"deployment {where}/{name} is not split: it has no label {LABEL_SPLIT}\n")
        raise typer.Exit(_NOT_SPLIT)
    typer.echo(f"deployment {where}/{name} {comes}; see: splitter status {workload} -n {where}")


async def _annotated(
    namespace: str,
    name: str,
    settings: Path | None,
    context: str | None,
    annotations: dict[str, str | None],
) -> bool:
    async with connected(settings, context) as (client, _):
        return await annotate(client, namespace, name, annotations)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
