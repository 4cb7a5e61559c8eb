"""The command line: `splitter VERB`, and the same verbs as `kubectl splitter VERB`.

One module a verb or a family, imported when the verb is asked for: most of a second of imports is what a
person would wait for. No decisions here. `splitter.command` calls `main`, and shows a failure that a person
can mend as one sentence on standard error; the codes are in `splitter.exits`; anything else is a bug and says
so with a traceback.
"""

import os
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from splitter import __version__

COMPLETION_VARIABLE = "_SPLITTER_COMPLETE"  # a shell that wants candidates sets it


class Verb(NamedTuple):
    """Where a verb is, and how it is listed."""

    module: str  # the one whose function of the verb's name it is
    help: str  # the first line of that function's own, known without importing it


# In the order in which --help shows them.
VERBS = {
    "status": Verb("status", "Show the state of split workloads."),
    "explain": Verb("explain", "Show why a workload is in its state."),
    "bundle": Verb("bundle", "Write what a maintainer needs into one archive."),
    "plan": Verb("plan", "Show what splitter would do now, and why."),
    "savings": Verb("savings", "Show what spot has saved."),
    "suggest": Verb("suggest", "Suggest what to split, with which policy, and its saving."),
    "dashboard": Verb("dashboard", "Show a page of what splitter does, live, until Ctrl-C."),
    "restart": Verb("asks", "Replace every pod, one twin after the other."),
    "rollout": Verb("asks", "Roll a changed template set out now."),
    "wait": Verb("wait", "Wait until a change is rolled out."),
    "freeze": Verb("asks", "Hold both counts as they are."),
    "unfreeze": Verb("asks", "Let both counts move again."),
    "uninstall": Verb("uninstall", "Give every workload back, and wait for it."),
    "render": Verb("render", "Render the twins of Deployments and StatefulSets as YAML."),
    "simulate": Verb("simulate", "Replay spot capacity against policies."),
    "admission": Verb("admission", "Print policies for the API server."),
    "demo": Verb("demo", "Say how to run the demo."),
    "completion": Verb("completion", "Print the script that makes a shell complete verbs and names."),
    "run": Verb("run", "Run the controller until SIGTERM or Ctrl-C."),
    "estimator": Verb("run", "Tell Karmada how many replicas fit here, until SIGTERM or Ctrl-C."),
}


class _Verbs(TyperGroup):
    """The verbs: listed without an import, and each imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**settings)
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, short_help=verb.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - classes typer keeps to itself
        """Return the verb that is asked for, with all that it takes and does."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name else None, rest


def _imported(name: str) -> Any:  # noqa: ANN401 - the same
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name=name)(getattr(import_module(f"splitter.plugin.cli.{VERBS[name].module}"), name))
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


def main(program: str) -> None:
    """Run one verb, under the name that the program was called by; `splitter.command` calls it."""
    prepare_completion()
    app(prog_name=program)
