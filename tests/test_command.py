"""The command `splitter`: `run` without the plugin, all else with it, and what is left without one."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
import yaml

from splitter import __version__, command, giving_back
from splitter.command import PLUGIN, main
from splitter.exits import Exit

ROOT = Path(__file__).resolve().parents[1]
JOB = ROOT / "manifests/helm/splitter/templates/uninstall.yaml"


class Ended(NamedTuple):
    """What a person sees of a command that has ended."""

    code: object
    out: str
    err: str


class Command:
    """`splitter` in the process of the tests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def without(self, missing: str = PLUGIN) -> "Command":
        """Have a module not installed: of the plugin, or one that the plugin needs."""

        def import_module(_: str) -> NoReturn:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

        self._monkeypatch.setattr(command, "import_module", import_module)
        return self

    def __call__(self, *words: str, program: str = "splitter") -> Ended:
        """Run it."""
        self._monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", *words])
        code: object = Exit.DONE
        try:
            main()
        except SystemExit as end:
            code = end.code
        return Ended(code, *self._capsys.readouterr())


@pytest.fixture
def splitter(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command."""
    monkeypatch.setenv("COLUMNS", "80")
    return Command(monkeypatch, capsys)


def words_of(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


class TestRun:
    @pytest.mark.parametrize("verb", ["run", "estimator"])
    def test_loads_nothing_that_only_a_person_needs(self, verb: str) -> None:
        """Its help is there without the plugin, typer and the packages of the process itself."""
        ran = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "splitter", verb, "--help"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
        assert "splitter.command" in imported
        assert (
            imported & {"typer", "click", "rich", "jinja2", "pydantic", "kopf", "grpc", "splitter.plugin"}
            == set()
        )

    def test_is_named_as_it_was_called(self, splitter: Command) -> None:
        """By kubectl too."""
        assert "usage: splitter run " in splitter("run", "-h").out
        assert "usage: kubectl splitter run " in splitter("run", "-h", program="kubectl-splitter").out

    @pytest.mark.parametrize("words", [["--nonsense"], ["more"], ["--settings"], ["--setting", "a"]])
    def test_ends_with_2_when_used_wrongly(self, splitter: Command, words: list[str]) -> None:
        """What is wrong, on standard error."""
        ended = splitter("run", *words)
        assert (ended.code, ended.out) == (Exit.USAGE, "")
        assert "splitter run" in ended.err

    def test_of_the_estimator(self, splitter: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the settings that are named, in the image too."""
        named: list[Path | None] = []
        monkeypatch.setattr("splitter.estimator.run", named.append)
        assert splitter("estimator", "--settings", "settings.yaml").code == Exit.DONE
        assert splitter.without()("estimator").code == Exit.DONE
        assert named == [Path("settings.yaml"), None]

    def test_ends_with_a_sentence_when_interrupted_early(
        self, splitter: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While the controller has no handler of its own yet."""

        def interrupted(_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("splitter.run.run", interrupted)
        assert splitter("run") == Ended(Exit.MENDABLE, "", "\nAborted!\n")


class TestOtherVerbs:
    def test_are_the_plugins(self, splitter: Command) -> None:
        """All of them are listed, `run` too; the name is that of the call."""
        shown = splitter("--help", program="kubectl-splitter")
        assert shown.code == Exit.DONE
        assert re.match(r"\s*Usage: kubectl splitter ", shown.out)
        assert {"status", "uninstall", "run"} <= set(shown.out.split())

    def test_are_followed_by_the_version(self, splitter: Command) -> None:
        """With the plugin or without."""
        assert splitter("--version").out == f"{__version__}\n"
        assert splitter.without()("--version").out == f"{__version__}\n"


class TestWithoutThePlugin:
    """The image."""

    @pytest.mark.parametrize("missing", [PLUGIN, "splitter.plugin", "typer"])
    def test_a_verb_of_the_plugin_is_refused_in_a_sentence(self, splitter: Command, missing: str) -> None:
        """What is missing, and what to do."""
        ended = splitter.without(missing)("status", "-A")
        assert ended == Ended(
            Exit.MENDABLE,
            "",
            "splitter: `status` needs the kubectl plugin, which is not installed here (the image has only"
            " run, estimator, uninstall); install splitter with pip where your kubeconfig is, and run it"
            " there\n",
        )

    def test_a_bug_in_the_plugin_is_no_missing_plugin(self, splitter: Command) -> None:
        """It keeps its traceback."""
        with pytest.raises(ModuleNotFoundError, match="No module named 'splitter_core'"):
            splitter.without("splitter_core")("explain", "web")

    def test_help_lists_what_is_there(self, splitter: Command) -> None:
        """And says that there is more."""
        ended = splitter.without()("--help")
        assert ended.code == Exit.DONE
        assert {"run", "uninstall"} <= set(ended.out.split())
        assert "All other verbs belong to the kubectl plugin" in words_of(ended.out)

    def test_no_verb_is_wrong_usage(self, splitter: Command) -> None:
        """With the help, as with the plugin."""
        ended = splitter.without()()
        assert ended.code == Exit.USAGE
        assert "usage: splitter" in ended.out

    def test_uninstall_takes_what_the_charts_job_says(
        self, splitter: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its exit code is that of giving back."""
        [line] = re.findall(r"^ +args: (\[uninstall.*\])$", JOB.read_text(encoding="utf-8"), re.MULTILINE)
        words = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "270", line))
        asked: list[tuple[object, ...]] = []

        def give_back(_: object, *options: object) -> Exit:
            asked.append(options)
            return Exit.NOT_ALL_BACK

        monkeypatch.setattr(giving_back, "give_back", give_back)
        assert splitter.without()(*map(str, words)).code == Exit.NOT_ALL_BACK
        assert asked == [(None, None, 270.0)]

    @pytest.mark.parametrize(
        "words", [[], ["-A", "--timeout", "0"], ["-A", "--timeout", "x"], ["-A", "-l", "a"]]
    )
    def test_uninstall_has_no_other_options(self, splitter: Command, words: list[str]) -> None:
        """All namespaces are named, as they are by the Job; a second is the least."""
        ended = splitter.without()("uninstall", *words)
        assert (ended.code, ended.out) == (Exit.USAGE, "")
        assert "splitter uninstall" in ended.err

    def test_uninstall_ends_with_a_sentence(
        self, splitter: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where no cluster answers."""
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
        ended = splitter.without()("uninstall", "-A")
        assert (ended.code, ended.out) == (Exit.MENDABLE, "")
        assert ended.err.startswith("splitter: ApiUnreachable: ")
