"""`splitter run` and `splitter estimator`, as --help and a shell's completion show them.

`splitter.command` runs both without typer.
"""

from pathlib import Path

import typer

_SETTINGS = typer.Option(
    None, help="A YAML file of settings. SPLITTER_... environment variables override it."
)


def run(settings: Path | None = _SETTINGS) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    from splitter.run import run as run_controller

    run_controller(settings)


def estimator(settings: Path | None = _SETTINGS) -> None:
    """Tell Karmada how many replicas fit here, until SIGTERM or Ctrl-C."""
    from splitter.estimator import run as run_estimator

    run_estimator(settings)
