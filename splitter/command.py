"""The command `splitter`: runs the controller, and passes most other verbs to the kubectl plugin.

`run` and `estimator` are read here with argparse, so that a process in a cluster loads nothing that only a
person needs. The plugin (`splitter.plugin`) is imported by its name, here and nowhere else. The image has no
plugin; the Job of `helm uninstall` runs the one other verb that is left there, `uninstall`.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

from splitter import __version__
from splitter.exits import Exit, MendableError, failures_as_sentences

PLUGIN: Final = "splitter.plugin.cli"
_WITHOUT_PLUGIN: Final = frozenset({"splitter.plugin", PLUGIN, "typer"})  # one of these is missing then
_SUMMARY: Final = "Run workloads mostly on spot nodes, and keep the service up when they vanish."
_ALONE: Final = {  # what needs no plugin
    "run": "Run the controller until SIGTERM or Ctrl-C.",
    "estimator": "Tell Karmada how many replicas fit here, until SIGTERM or Ctrl-C.",
    "uninstall": "Give every workload back, and wait for it.",
}


def main() -> None:
    """Run one verb; the entry point of `splitter` and `kubectl-splitter`."""
    # kubectl calls its plugins by their whole name; people write the name with a space.
    program = "kubectl splitter" if Path(sys.argv[0]).name.startswith("kubectl-") else "splitter"
    words = sys.argv[1:]
    with failures_as_sentences():
        if words == ["--version"]:
            sys.stdout.write(f"{__version__}\n")
        elif words[:1] in (["run"], ["estimator"]):
            _alone(program, words)
        elif (plugin := _plugin()) is not None:
            plugin.main(program)
        else:
            _without_plugin(program, words)


def _plugin() -> ModuleType | None:
    """Return the command line of the plugin; None where it, or what it needs, is not installed."""
    try:
        return import_module(PLUGIN)
    except ModuleNotFoundError as missing:
        if missing.name in _WITHOUT_PLUGIN:
            return None
        raise


def _without_plugin(program: str, words: list[str]) -> None:
    """Run what the controller's own house has. Raises MendableError for a verb of the plugin."""
    if words and words[0] in _ALONE:
        _alone(program, words)
    if words and not words[0].startswith("-"):
        raise MendableError(
            f"`{words[0]}` needs the kubectl plugin, which is not installed here (the image has only"
            f" {', '.join(_ALONE)}); install splitter with pip where your kubeconfig is, and run it there"
        )
    parser = argparse.ArgumentParser(
        prog=program,
        description=_SUMMARY,
        epilog="All other verbs belong to the kubectl plugin, which is not installed here.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=__version__, help="Print the version and exit."
    )
    verbs = parser.add_subparsers(metavar="VERB")
    for verb, says in _ALONE.items():
        verbs.add_parser(verb, help=says)
    parser.parse_args(words)
    parser.print_help()
    raise SystemExit(Exit.USAGE)


def _alone(program: str, words: list[str]) -> NoReturn:
    """Run what needs no plugin, with nothing of it, and exit."""
    verb, *options = words
    parser = argparse.ArgumentParser(prog=f"{program} {verb}", description=_ALONE[verb], allow_abbrev=False)
    try:
        runs = {"run": _run, "estimator": _estimator, "uninstall": _uninstall}
        raise SystemExit(runs[verb](parser, options))
    except KeyboardInterrupt:
        # Before the controller's own handler of SIGINT is there.
        sys.stderr.write("\nAborted!\n")
        raise SystemExit(Exit.MENDABLE) from None


def _run(parser: argparse.ArgumentParser, options: list[str]) -> Exit:
    settings = _settings(parser, options)
    from splitter.run import run

    run(settings)
    return Exit.DONE


def _estimator(parser: argparse.ArgumentParser, options: list[str]) -> Exit:
    settings = _settings(parser, options)
    from splitter.estimator import run

    run(settings)
    return Exit.DONE


def _settings(parser: argparse.ArgumentParser, options: list[str]) -> Path | None:
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="<path>",
        help="A YAML file of settings. SPLITTER_... environment variables override it.",
    )
    named: Path | None = parser.parse_args(options).settings
    return named


def _uninstall(parser: argparse.ArgumentParser, options: list[str]) -> Exit:
    """Give back what is split in all namespaces, as the Job of `helm uninstall` asks."""
    parser.add_argument("-A", "--all-namespaces", action="store_true", required=True, help="All namespaces.")
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="<path>",
        help="The controller's settings file, to decide as it does.",
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=600.0, metavar="<float>", help="Seconds to wait. Default: 600."
    )
    given = parser.parse_args(options)
    from splitter.connection import connected
    from splitter.giving_back import give_back

    return give_back(lambda: connected(given.settings), None, None, given.timeout)


def _seconds(written: str) -> float:
    """Return a number of seconds, 1 at least. Raises ArgumentTypeError."""
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not seconds >= 1:
        raise argparse.ArgumentTypeError(f"{written!r} is not a number of seconds, 1 or more")
    return seconds
