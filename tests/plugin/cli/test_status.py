"""`splitter status` and `explain` with a cluster: what they show, and what they refuse."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plugin.cli.one_cluster import api
from plugin.cli.one_split import SPLIT, lines_of, split
from splitter.kube.as_user import key_of
from splitter.plugin.cli import app
from splitter.plugin.cli.status import fitted
from world.api import Api
from world.server import serving

RUN = CliRunner()


class TestTheScreen:
    """What -w shows where not everything fits."""

    def test_shows_all_that_fits(self) -> None:
        """A heading and four lines are a screen of five."""
        splits = [split(str(number)) for number in range(4)]
        assert fitted(splits, 5) == (splits, "")

    def test_shows_first_what_is_not_steady(self) -> None:
        """In their order; the rest is counted by state."""
        states = ["Steady", "Held", "Steady", "Moving", "Moving", "Steady"]
        splits = [split(str(number), state=state) for number, state in enumerate(states)]
        shown, rest = fitted(splits, 4)
        assert [key_of(one).name for one in shown] == ["1", "3"]
        assert rest == "... and 4 more: 3 Steady, 1 Moving"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """Serve on loopback, and point KUBECONFIG there."""
    result = api()
    with serving(result, tmp_path / "kubeconfig"):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield result


@pytest.mark.usefixtures("cluster")
class TestWithACluster:
    """What is asked of the API server, and the exit codes."""

    @pytest.mark.parametrize("reported", [["web", "-n", "shop"], ["-n", "shop"], ["-A"]])
    def test_status_shows_a_table(self, reported: list[str]) -> None:
        """One workload, one namespace, all of them."""
        invoked = RUN.invoke(app, ["status", *reported])
        assert invoked.exit_code == 0
        assert "web  " in invoked.stdout

    @pytest.mark.parametrize("reported", [["status"], ["status", "-o", "yaml"], ["explain", "web"]])
    def test_words_of_others_are_escaped(self, reported: list[str]) -> None:
        """A client that may write a Split moves no cursor, and begins no line."""
        invoked = RUN.invoke(app, [*reported, "-n", "evil"])
        assert invoked.exit_code == 0
        assert "calm" in invoked.stdout
        lines = invoked.stdout.splitlines()
        assert all(map(str.isprintable, lines))
        assert not [line for line in lines if line.startswith("shop/web")]

    def test_status_of_nothing_is_a_sentence(self) -> None:
        """A namespace without split workloads is no error."""
        invoked = RUN.invoke(app, ["status"])
        assert (invoked.exit_code, invoked.stdout) == (0, "no workload is split here\n")

    def test_status_writes_what_programs_read(self) -> None:
        """A named one alone, several as a List; the same in YAML."""
        answer = json.loads(RUN.invoke(app, ["status", "web", "-n", "shop", "-o", "json"]).stdout)
        assert (answer["kind"], answer["spec"], answer["status"]) == ("Split", SPLIT["spec"], SPLIT["status"])
        listed = yaml.safe_load(RUN.invoke(app, ["status", "-A", "-o", "yaml"]).stdout)
        assert [one["metadata"]["name"] for one in listed["items"]] == ["api", "web", "web"]

    def test_status_of_what_is_not_split_is_3(self) -> None:
        """A named workload without a Split; -w does not wait for one."""
        for reported in (["status", "api", "-n", "shop"], ["status", "api", "-n", "shop", "-w"]):
            invoked = RUN.invoke(app, reported)
            assert (invoked.exit_code, invoked.stdout) == (3, "")
            assert invoked.stderr == "deployment shop/api is not split\n"

    def test_status_of_what_has_a_label(self) -> None:
        """-l chooses by the workloads' own labels, as the API server reads them."""
        invoked = RUN.invoke(app, ["status", "-A", "-l", "team=b", "-o", "json"])
        assert [one["metadata"]["name"] for one in json.loads(invoked.stdout)["items"]] == ["api"]

    def test_looks_in_the_namespace_of_the_context(self, tmp_path: Path) -> None:
        """As kubectl does, when -n does not say another."""
        file = tmp_path / "kubeconfig"
        kubeconfig = json.loads(file.read_text(encoding="utf-8"))
        there = {"cluster": "c", "user": "u", "namespace": "shop"}
        kubeconfig["contexts"].append({"name": "there", "context": there})
        file.write_text(json.dumps(kubeconfig), encoding="utf-8")
        assert RUN.invoke(app, ["status", "web", "--context", "there"]).exit_code == 0
        assert RUN.invoke(app, ["status", "web"]).exit_code == 3

    def test_looks_with_the_kubeconfig_that_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """--kubeconfig wins over KUBECONFIG; of several files there some may be missing."""
        file = str(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", "/nowhere")
        assert RUN.invoke(app, ["status", "-A"]).exit_code == 1
        assert RUN.invoke(app, ["status", "-A", "--kubeconfig", file]).exit_code == 0
        monkeypatch.setenv("KUBECONFIG", f"/nowhere{os.pathsep}{file}")
        assert RUN.invoke(app, ["status", "-A"]).exit_code == 0

    def test_explain_tells_the_story(self) -> None:
        """The Split and the source's own annotations."""
        invoked = RUN.invoke(app, ["explain", "deploy/web", "-n", "shop"])
        assert invoked.exit_code == 0
        assert invoked.stdout.splitlines() == lines_of(SPLIT)

    def test_explain_says_why_there_is_nothing(self) -> None:
        """Not labelled, or not there: exit code 3."""
        invoked = RUN.invoke(app, ["explain", "api", "-n", "shop"])
        assert invoked.exit_code == 3
        assert "is not split: kubectl label deployment" in invoked.stderr
        assert "is not there" in RUN.invoke(app, ["explain", "db", "-n", "shop"]).stderr

    def test_an_api_without_splits_is_named(self, cluster: Api) -> None:
        """No CRD: what to do."""
        cluster.missing.add("splitter.io")
        invoked = RUN.invoke(app, ["status", "-n", "elsewhere"])
        assert "knows no Splits; install splitter there" in str(invoked.exception)


class TestTheCommands:
    """Wrong usage."""

    @pytest.mark.parametrize(
        "reported",
        [
            ["status", "-w", "-o", "json"],
            ["status", "web", "-A"],
            ["status", "web", "-l", "app=web"],
            ["explain"],
            ["explain", "cronjob/db"],
            ["freeze"],
        ],
    )
    def test_are_used_wrongly(self, reported: list[str]) -> None:
        """Exit code 2, before anything is looked at."""
        assert RUN.invoke(app, reported).exit_code == 2
