"""`splitter run`, as --help and a shell's completion show it; `splitter.command` runs it without typer."""

from pathlib import Path

import typer


def run(
    settings: Path | None = typer.Option(
        None, help="A YAML file of settings. SPLITTER_... environment variables override it."
    ),
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    from splitter.run import run as run_controller

    run_controller(settings)
