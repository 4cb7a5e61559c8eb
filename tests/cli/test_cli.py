"""The command line: what it takes, what it refuses, how it fails."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from builders import observation
from splitter import __version__
from splitter.cli import VERBS, app
from splitter.cli.exits import Exit
from splitter.cli.plan import lines_of
from splitter.cli.target import Target, target_of
from splitter.cli.wrapping import wrapped
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State
from splitter.reconciler.preview import Preview

RUN = CliRunner()
ROOT = Path(__file__).resolve().parents[2]


class TestAPlanInWords:
    """What `splitter plan` says of one workload."""

    def test_has_its_advice(self) -> None:
        """Marked as what people should know; it is nothing that would be written."""
        advice = Note(Reason.NOTICE_TOO_SHORT, "pods need 300 s, the notice is 30 s")
        planned = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "as wanted"), advice=(advice,))
        preview = Preview(observation(), PolicyInForce(Policy(), (), {}, valid=True), planned)
        assert lines_of(preview) == [
            "shop/web  Steady",
            "  as wanted (Balanced)",
            "  ! pods need 300 s, the notice is 30 s (NoticeTooShort)",
            "  would write nothing",
        ]


class TestTheTarget:
    """Workloads are named as kubectl names them."""

    @pytest.mark.parametrize("written", ["deploy/web", "deployment/web", "deployments.apps/web"])
    def test_is_named_as_kubectl_names_it(self, written: str) -> None:
        """All of kubectl's spellings mean the same Deployment; the namespace defaults to `default`."""
        assert target_of(written, None, everywhere=False) == Target("default", "web", "Deployment")

    @pytest.mark.parametrize("written", ["sts/db", "statefulset/db", "statefulsets.apps/db"])
    def test_may_be_a_stateful_set(self, written: str) -> None:
        """Its kind is said, and a Deployment of that name is another one."""
        target = target_of(written, "shop", everywhere=False)
        assert (target.words, target.short) == ("statefulset shop/db", "sts/db")
        assert target.includes(Key("StatefulSet", "shop", "db"))
        assert not target.includes(Key("Deployment", "shop", "db"))

    def test_may_leave_its_kind_out(self) -> None:
        """To look, a name alone means both kinds; to write, a Deployment."""
        target = target_of("web", "shop", everywhere=False)
        assert target.includes(Key("StatefulSet", "shop", "web"))
        assert target.key == Key("Deployment", "shop", "web")

    def test_is_everything_with_all_namespaces(self) -> None:
        """-A includes every key."""
        target = target_of(None, None, everywhere=True)
        assert target.includes(Key("Deployment", "shop", "web"))
        assert target.namespaces == ()

    def test_without_a_name_is_one_namespace(self) -> None:
        """-n shop includes what is in shop, and nothing else."""
        target = target_of(None, "shop", everywhere=False)
        assert target.includes(Key("Deployment", "shop", "web"))
        assert not target.includes(Key("Deployment", "bank", "web"))

    @pytest.mark.parametrize(("written", "everywhere"), [("ds/db", False), ("web", True)])
    def test_refuses_what_cannot_be_meant(self, written: str, everywhere: bool) -> None:
        """Another kind, and one name in all namespaces, are wrong usage."""
        with pytest.raises(typer.BadParameter):
            target_of(written, None, everywhere=everywhere)


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

    @pytest.mark.parametrize("verb", VERBS)
    def test_explains_each_verb_in_80_columns(self, verb: str) -> None:
        """Without boxes and colours, which tell nothing where there are none."""
        result = RUN.invoke(app, [verb, "-h"])
        assert result.exit_code == 0
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


class TestThePlan:
    """`splitter plan` on a terminal."""

    def test_fits_the_columns(self) -> None:
        """A sentence goes on indented, and a word that is longer stays whole, to be copied."""
        text = f"  would change {'x' * 90} and more words than one line of eighty columns could ever hold"
        lines = wrapped(text, 80, further="    ")
        assert " ".join(line.strip() for line in lines) == text.strip()
        assert [line[:4] == "    " for line in lines] == [False] + [True] * (len(lines) - 1)
        assert all(len(line) <= 80 or "x" * 90 in line for line in lines)

    def test_is_whole_where_it_is_piped(self) -> None:
        """A line of a log or of a script is one line."""
        assert wrapped("word " * 40, None) == ["word " * 40]
