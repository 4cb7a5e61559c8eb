"""Shell completion: names of workloads, namespaces and contexts, for `splitter` and for kubectl.

`splitter completion bash` prints what a shell sources. For `kubectl splitter <TAB>` kubectl runs the
executable `kubectl_complete-splitter` with the words so far, and reads lines of `value<TAB>meaning` and a
last line with a directive (`complete_for_kubectl`). Whatever fails, fails silently and soon: a person is
waiting with a finger on the key.
"""

import asyncio
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from splitter.plugin.cli.cluster import Cluster

_PATIENCE_S = 3.0
_MOST = "500"  # names that are fetched; nobody reads more
# cobra's ShellCompDirectiveNoFileComp: what is no name of ours is not a file either.
_NO_FILES = ":4"


class Shell(StrEnum):
    """A shell that completion can be printed for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(shell: Shell = typer.Argument(..., help="Which shell.")) -> None:
    """Print the script that makes a shell complete verbs and names.

    For bash: source <(splitter completion bash).

    For `kubectl splitter`, the executable kubectl_complete-splitter on the PATH is all that kubectl needs.
    """
    _run_completion(f"source_{shell.value}")


def complete_for_kubectl() -> None:
    """Print the candidates for the last argument; the entry point of `kubectl_complete-splitter`."""
    *words, last = sys.argv[1:] or [""]
    line = " ".join(["splitter", *map(shlex.quote, words), ""]) + (shlex.quote(last) if last else "")
    asked = {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_ARGS": line}
    answer = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(answer):
        _run_completion("complete_fish", asked)  # the one of typer's forms that is kubectl's too
    lines = filter(None, answer.getvalue().splitlines())
    sys.stdout.write("\n".join([*lines, _NO_FILES, ""]))


def _run_completion(instruction: str, asked: Mapping[str, str] | None = None) -> None:
    """Run typer's completion as a shell does: by environment variables. It prints, and exits."""
    from splitter.plugin.cli import COMPLETION_VARIABLE, app, prepare_completion

    os.environ.update({COMPLETION_VARIABLE: instruction, **(asked or {})})
    prepare_completion()
    app(prog_name="splitter")


def contexts(incomplete: str) -> list[str]:
    """Return the contexts of the kubeconfig."""
    from splitter.kube.kubeconfig import contexts_of, kubeconfig_path

    return [name for name in contexts_of(kubeconfig_path()) if name.startswith(incomplete)]


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the cluster's namespaces."""
    names = _asked(ctx, "/api/v1/namespaces")
    return [name for one in names if (name := str(one["metadata"]["name"])).startswith(incomplete)]


def workloads(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the split workloads of the namespace, each with its state: as `deploy/web` if typed so."""
    from splitter.kube.as_user import key_of
    from splitter.plugin.cli.splits import status_of

    names = []
    for split in _asked(ctx, "/apis/splitter.io/v1alpha1/namespaces/{namespace}/splits"):
        key, status = key_of(split), status_of(split)
        kind, slash, _ = incomplete.rpartition("/")
        name = f"sts/{key.name}" if key.kind == "StatefulSet" else f"{kind}{slash}{key.name}"
        if name.startswith(incomplete):
            names.append((name, f"{status.state or '-'} {status.reason or '-'}"))
    return names


def _asked(ctx: typer.Context, path: str) -> list[dict[str, Any]]:
    """Return the items of one list; empty when it cannot be had at once."""
    try:
        return asyncio.run(_list(_cluster(ctx), path))
    except Exception:  # noqa: BLE001 - an error printed amid a command line helps nobody
        return []


def _cluster(ctx: typer.Context) -> "Cluster":
    """Return the cluster that the options typed so far mean."""
    from splitter.plugin.cli.cluster import Cluster

    names = [field.name for field in fields(Cluster)]
    given = {name: value for name in names if (value := ctx.params.get(name)) is not None}
    for path in ("kubeconfig", "settings_file"):
        if path in given:
            given[path] = Path(str(given[path]))
    return Cluster(**given)


async def _list(cluster: "Cluster", path: str) -> list[dict[str, Any]]:
    from splitter.kube.paths import ResourcePath

    where = ResourcePath.read(path.format(namespace=cluster.target(None).namespace))
    async with asyncio.timeout(_PATIENCE_S), cluster.connected() as (client, _):
        items: list[dict[str, Any]] = (await client.get(where, limit=_MOST))["items"]
        return items
