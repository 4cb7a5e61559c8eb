"""`run` and `estimator` as they are listed and completed: `splitter.command` runs them without the plugin."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitter.command import main
from splitter.plugin.cli import app


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("run", "Run the controller until SIGTERM or Ctrl-C."),
        ("run", "A YAML file of settings. SPLITTER_... environment variables override it."),
        ("run", "--settings <path>"),
        ("estimator", "Tell Karmada how many replicas fit here, until SIGTERM or Ctrl-C."),
        ("estimator", "--settings <path>"),
    ],
)
def test_has_the_help_of_the_command(
    verb: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words, and the same option."""
    monkeypatch.setattr(sys, "argv", ["splitter", verb, "--help"])
    with pytest.raises(SystemExit):
        main()
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert sentence in " ".join(CliRunner().invoke(app, [verb, "--help"]).output.split())


@pytest.mark.parametrize(
    ("verb", "runs"), [("run", "splitter.run.run"), ("estimator", "splitter.estimator.run")]
)
def test_runs_what_is_asked_for(verb: str, runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings that are named."""
    asked: list[Path | None] = []
    monkeypatch.setattr(runs, asked.append)
    assert CliRunner().invoke(app, [verb, "--settings", "settings.yaml"]).exit_code == 0
    assert CliRunner().invoke(app, [verb]).exit_code == 0
    assert asked == [Path("settings.yaml"), None]
