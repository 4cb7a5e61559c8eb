"""The command line as a whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitter import __version__
from splitter.exits import Exit
from splitter.plugin.cli import COMPLETION_VARIABLE, VERBS, app

RUN = CliRunner()
ROOT = Path(__file__).resolve().parents[3]


class TestTheCommand:
    """`splitter` itself."""

    def test_prints_its_version(self) -> None:
        """--version prints the version alone."""
        result = RUN.invoke(app, ["--version"])
        assert result.output == f"{__version__}\n"
        assert result.exit_code == 0

    def test_names_its_verbs(self) -> None:
        """--help lists every verb."""
        output = RUN.invoke(app, ["--help"]).output
        assert [verb for verb in VERBS if f"  {verb} " not in output] == []
        assert output.count("...") == output.count("[ARGS]...")

    def test_documents_its_verbs(self) -> None:
        """The reference has a row for each verb."""
        text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
        table = text.partition("## ")[0]
        rows = "\n".join(re.findall(r"^\| (`[a-z`, ]+`) \|", table, re.MULTILINE))
        assert set(re.findall(r"`([a-z]+)`", rows)) == set(VERBS)

    @pytest.mark.parametrize("arguments", [["nonsense"], ["status", "--nonsense"], ["explain"]])
    def test_ends_with_2_when_used_wrongly(self, arguments: list[str]) -> None:
        """What is wrong, on standard error, and where to read on."""
        result = RUN.invoke(app, arguments)
        assert result.exit_code == Exit.USAGE
        assert "-h' for help" in result.stderr
        assert result.stdout == ""

    def test_names_what_a_mistyped_verb_may_mean(self) -> None:
        """The verbs that are spelt much like it."""
        result = RUN.invoke(app, ["stats", "-A"])
        assert result.exit_code == Exit.USAGE
        assert "No such command 'stats'. Did you mean 'status'" in result.stderr

    @pytest.mark.parametrize(
        "asked", [{}, {COMPLETION_VARIABLE: "complete_bash", "COMP_WORDS": "splitter s", "COMP_CWORD": "1"}]
    )
    def test_lists_its_verbs_without_importing_one(self, asked: dict[str, str]) -> None:
        """Neither --help nor a Tab waits for the imports of a verb, which take a second or two."""
        ran = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "splitter", "--help"],
            env={**os.environ, **asked},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert "suggest" in ran.stdout
        imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
        assert "typer" in imported
        modules = {f"splitter.plugin.cli.{verb.module}" for verb in VERBS.values()}
        assert imported & {"kubernetes", "aiohttp", "jinja2", *modules} == set()

    @pytest.mark.parametrize("verb", VERBS)
    def test_explains_each_verb_in_80_columns(self, verb: str) -> None:
        """As it is listed first; without boxes and colours, which tell nothing where there are none."""
        result = RUN.invoke(app, [verb, "-h"])
        assert result.exit_code == 0
        assert f"\n\n  {VERBS[verb].help}\n" in result.stdout
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert result.stdout.isascii()

    def test_says_in_one_sentence_what_is_wrong(self) -> None:
        """A kubeconfig that is not there: exit code 1, the reason, no traceback."""
        ran = subprocess.run(
            [sys.executable, "-m", "splitter", "plan", "-A"],
            env={"KUBECONFIG": "/nowhere/kubeconfig", "PATH": "", "HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 1
        assert "ApiUnreachable" in ran.stderr
        assert "/nowhere/kubeconfig" in ran.stderr
        assert "Traceback" not in ran.stderr
