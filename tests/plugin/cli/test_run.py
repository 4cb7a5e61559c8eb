"""`splitter run` as it is listed and completed: `splitter.command` runs it without the plugin."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitter.command import main
from splitter.plugin.cli import app


@pytest.mark.parametrize(
    "sentence",
    [
        "Run the controller until SIGTERM or Ctrl-C.",
        "A YAML file of settings. SPLITTER_... environment variables override it.",
        "--settings <path>",
    ],
)
def test_has_the_help_of_the_command(
    sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words, and the same option."""
    monkeypatch.setattr(sys, "argv", ["splitter", "run", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert sentence in " ".join(CliRunner().invoke(app, ["run", "--help"]).output.split())


def test_runs_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings that are named."""
    asked: list[Path | None] = []
    monkeypatch.setattr("splitter.run.run", asked.append)
    assert CliRunner().invoke(app, ["run", "--settings", "settings.yaml"]).exit_code == 0
    assert CliRunner().invoke(app, ["run"]).exit_code == 0
    assert asked == [Path("settings.yaml"), None]
