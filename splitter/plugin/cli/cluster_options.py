"""The options of all commands that select a cluster, a namespace and a user.

A verb takes a `Cluster` and is decorated with `asks_cluster`, which puts kubectl's options in its place:
`-n`, `-A`, `-l`, `--context`, `--kubeconfig`, and `--settings`.
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.completion import contexts, namespaces

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "namespace": (
        str | None,
        typer.Option(
            None,
            "--namespace",
            "-n",
            autocompletion=namespaces,
            help="The namespace. Default: the context's.",
        ),
    ),
    "everywhere": (bool, typer.Option(False, "--all-namespaces", "-A", help="All namespaces.")),
    "selector": (
        str | None,
        typer.Option(None, "--selector", "-l", help="Select workloads by label, such as app=web."),
    ),
    "context": (
        str | None,
        typer.Option(
            None, "--context", autocompletion=contexts, help="The context of the kubeconfig to use."
        ),
    ),
    "kubeconfig": (Path | None, typer.Option(None, "--kubeconfig", help="Path of the kubeconfig.")),
    "settings_file": (
        Path | None,
        typer.Option(None, "--settings", help="The controller's settings file, to decide as it does."),
    ),
}


def asks_cluster(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that puts the options in the place of a verb's parameter `cluster`.

    `without` names those that make no sense for the verb, as fields of `Cluster`.
    """
    options = {name: option for name, option in _OPTIONS.items() if name not in without}

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def asked(**given: Any) -> None:  # noqa: ANN401 - typer's own values, whatever the verb declares
            cluster = Cluster(**{name: given.pop(name) for name in options})
            verb(**given, cluster=cluster)

        own = inspect.signature(verb).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [one.replace(kind=keyword) for one in own if one.name != "cluster"]
        parameters += [
            inspect.Parameter(name, keyword, annotation=annotation, default=default)
            for name, (annotation, default) in options.items()
        ]
        # What typer reads a verb's options from.
        asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        asked.__annotations__ = {one.name: one.annotation for one in parameters}
        return asked

    return decorate
