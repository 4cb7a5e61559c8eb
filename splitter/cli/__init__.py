"""The command line: `splitter VERB`, and the same verbs as `kubectl splitter VERB`.

One module a verb or a family; no decisions here. A failure that a person can mend is one sentence on
standard error and exit code 1; wrong usage is exit code 2; anything else is a bug and says so with a
traceback.
"""

import sys

import typer

from splitter import __version__
from splitter.cli import asks, demo, explain, plan, render, run, simulate, status, uninstall
from splitter.core.errors import SplitterError
from splitter.kube.client import ApiError

app = typer.Typer(
    name="splitter",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Runs workloads mostly on spot nodes without ever letting the service go down.",
)
run.register(app)
plan.register(app)
uninstall.register(app)
demo.register(app)
simulate.register(app)
render.register(app)
status.register(app)
explain.register(app)
asks.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Split workloads between on-demand and spot nodes."""
    del version


def main() -> None:
    """Run one verb; the entry point of `splitter` and `kubectl-splitter`."""
    try:
        app()
    except SplitterError as error:
        sys.stderr.write(f"splitter: {error}\n")
        raise SystemExit(1) from None
    except ApiError as error:
        sys.stderr.write(f"splitter: the API server answered: {error}\n")
        raise SystemExit(1) from None
