"""The command line: `splitter VERB`, and the same verbs as `kubectl splitter VERB`.

One module a verb or a family, imported when the verb is asked for: most of a second of imports is what a
person would wait for. No decisions here. A failure that a person can mend is one sentence on standard
error; the codes are in `exits`; anything else is a bug and says so with a traceback.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from splitter import __version__
from splitter.cli.exits import Exit, MendableError
from splitter.core.errors import SplitterError
from splitter.report.printable import printable

COMPLETION_VARIABLE = "_SPLITTER_COMPLETE"  # a shell that wants candidates sets it
# Each verb and the module whose function of that name it is, in the order in which --help shows them.
VERBS = {
    "status": "status",
    "explain": "explain",
    "bundle": "bundle",
    "plan": "plan",
    "savings": "savings",
    "suggest": "suggest",
    "dashboard": "dashboard",
    "restart": "asks",
    "rollout": "asks",
    "freeze": "asks",
    "unfreeze": "asks",
    "uninstall": "uninstall",
    "render": "render",
    "simulate": "simulate",
    "admission": "admission",
    "demo": "demo",
    "completion": "completion",
    "run": "run",
}


class _Verbs(TyperGroup):
    """The verbs, each imported when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - a class that typer keeps to itself
        """Name all verbs."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - the same
        """Return one verb, None when there is no such one."""
        del ctx
        if cmd_name not in VERBS:
            return None
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        module = import_module(f"splitter.cli.{VERBS[cmd_name]}")
        alone.command(name=cmd_name)(getattr(module, cmd_name))
        return get_command(alone)


# Plain help: boxes and colours tell nothing, and do not fit where columns are few.
app = typer.Typer(
    name="splitter",
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Run workloads mostly on spot nodes, and keep the service up when they vanish."""
    del version


def prepare_completion() -> None:
    """Make typer know its shells, if one of them is asking now."""
    if COMPLETION_VARIABLE in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # its side effect; typer hides the function that does only that


def main() -> None:
    """Run one verb; the entry point of `splitter` and `kubectl-splitter`."""
    prepare_completion()
    called = Path(sys.argv[0]).name
    try:
        # kubectl calls its plugins by their whole name; people write the name with a space.
        app(prog_name="kubectl splitter" if called.startswith("kubectl-") else "splitter")
    except (SplitterError, MendableError) as error:
        message = "\n".join(map(printable, str(error).splitlines()))
        sys.stderr.write(f"splitter: {message}\n")
        raise SystemExit(Exit.MENDABLE) from None
