"""`--contexts`: several clusters in one table (`status`), and on one page (`dashboard`)."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import typer
from typer.testing import CliRunner

from plugin.cli.one_cluster import api
from splitter.core.errors import SplitterError
from splitter.plugin.cli import app, dashboard
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.members import contexts_in
from world.api import Api
from world.server import serving

RUN = CliRunner()


@pytest.fixture(autouse=True)
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have two contexts of a cluster with Splits, one of a cluster that is empty, and one of none."""
    file, empty, bare = (tmp_path / name for name in ("kubeconfig", "empty", "bare"))
    without = Api()
    without.missing.add("splitter.io")
    with serving(api(), file), serving(Api(), empty), serving(without, bare):
        kubeconfig = json.loads(file.read_text(encoding="utf-8"))
        kubeconfig["contexts"] += [
            {"name": name, "context": {"cluster": cluster, "user": "u"}}
            for name, cluster in (("there", "c"), ("empty", "empty"), ("bare", "bare"), ("away", "nowhere"))
        ]
        for name, other in (("empty", empty), ("bare", bare)):
            [one] = json.loads(other.read_text(encoding="utf-8"))["clusters"]
            kubeconfig["clusters"].append({**one, "name": name})
        kubeconfig["clusters"] += [
            {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}},
        ]
        file.write_text(json.dumps(kubeconfig), encoding="utf-8")
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield


class TestContexts:
    """What is asked for."""

    @pytest.mark.parametrize("text", ["", ",", " , ", ",".join(map(str, range(33)))])
    def test_none_or_too_many(self, text: str) -> None:
        """They are refused with a sentence."""
        with pytest.raises(ValueError, match="name 1 to 32 contexts"):
            contexts_in(text)
        invoked = RUN.invoke(app, ["status", "--contexts", text])
        assert invoked.exit_code == 2

    @pytest.mark.parametrize(
        "words", [["-w"], ["-o", "json"], ["-o", "yaml"], ["--context", "here"]], ids=" ".join
    )
    def test_what_does_not_go_with_them(self, words: list[str]) -> None:
        """One table, of the clusters that are named."""
        assert RUN.invoke(app, ["status", "--contexts", "here,there", *words]).exit_code == 2

    def test_a_hub_alone(self) -> None:
        """It has no Splits."""
        assert RUN.invoke(app, ["status", "--hub", "here"]).exit_code == 2


class TestTheTable:
    """What is shown."""

    def test_has_each_cluster_and_the_sum(self) -> None:
        """A workload's rows are together, whichever cluster they are of."""
        invoked = RUN.invoke(app, ["status", "-A", "--contexts", "there,here"])
        assert invoked.exit_code == 0
        table, _, sums = invoked.stdout.partition("\n\n")
        heading, *rows = table.splitlines()
        assert heading.split()[-1] == "CLUSTER"
        assert [(row.split()[0], row.split()[-1]) for row in rows if "evil" not in row] == [
            ("bank/api", "there"),
            ("bank/api", "here"),
            ("shop/web", "there"),
            ("shop/web", "here"),
        ]
        assert "shop/web: 14 of 20 ready in there, here" in sums.splitlines()
        assert all(map(str.isprintable, invoked.stdout.splitlines()))

    def test_has_what_the_hub_asks_for(self) -> None:
        """Or that it asks for nothing: a workload that only the members have."""
        invoked = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here", "--hub", "there"])
        assert invoked.exit_code == 0
        assert invoked.stdout.splitlines()[-1].endswith("; the hub asks for 1")
        alone = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here", "--hub", "empty"])
        assert "the hub has no such workload" in alone.stdout

    def test_a_cluster_that_does_not_answer(self) -> None:
        """The others are shown, a line says which one is away, and the exit code is 1."""
        invoked = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here,away"])
        assert invoked.exit_code == 1
        assert "web " in invoked.stdout
        assert invoked.stdout.splitlines()[-1].startswith("away: ")

    def test_a_member_without_splitter(self) -> None:
        """The others are shown, and a line says what is missing there."""
        invoked = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here,bare"])
        assert invoked.exit_code == 1
        assert "web: 7 of 10 ready in here" in invoked.stdout.splitlines()
        assert "bare: " in invoked.stdout.splitlines()[-1]
        assert "knows no Splits; install splitter there" in invoked.stdout

    def test_a_hub_that_does_not_answer(self) -> None:
        """The members are shown, and a line says that it is away."""
        invoked = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here", "--hub", "away"])
        assert invoked.exit_code == 1
        assert "web: 7 of 10 ready in here" in invoked.stdout.splitlines()
        assert invoked.stdout.splitlines()[-1].startswith("away: ")

    def test_a_context_that_is_not_there(self) -> None:
        """It is told as one that does not answer."""
        invoked = RUN.invoke(app, ["status", "-n", "shop", "--contexts", "here,nobody"])
        assert invoked.exit_code == 1
        assert "nobody: " in invoked.stdout

    def test_of_nothing(self) -> None:
        """No workload is no error; a named one is."""
        invoked = RUN.invoke(app, ["status", "-n", "default", "--contexts", "here"])
        assert (invoked.exit_code, invoked.stdout) == (0, "no workload is split in any of these clusters\n")
        assert RUN.invoke(app, ["status", "no", "-n", "shop", "--contexts", "here"]).exit_code == 3


class TestThePage:
    """`splitter dashboard --contexts`."""

    async def test_has_each_cluster_the_sum_and_the_hub(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that is away is named there, and the others are shown; Ctrl-C ends it."""
        monkeypatch.setattr("splitter.plugin.kube.cluster_view._FIRST_LISTS_S", 3.0)
        printed: asyncio.Queue[str] = asyncio.Queue()
        monkeypatch.setattr(typer, "echo", printed.put_nowait)
        run = dashboard._run_all(  # noqa: SLF001 - the command itself ends by Ctrl-C only
            ("here", "there", "away"), "here", Cluster(namespace="shop"), 0, None, open_=False
        )
        task = asyncio.create_task(run)
        address = (await printed.get()).removeprefix("The page is at ")
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            text = await answer.text()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert answer.status == 200
        assert "here, there, away · shop" in text
        assert "14<small>/20</small>" in text
        assert "here asks for 1" in text
        assert "away: splits are not up to date: the API server does not answer" in text

    @pytest.mark.parametrize(
        "words",
        [["--hub", "here"], ["--contexts", ","], ["--contexts", "here,there", "--context", "here"]],
        ids=" ".join,
    )
    def test_what_does_not_go_together(self, words: list[str]) -> None:
        """It is said before anything is served."""
        assert RUN.invoke(app, ["dashboard", *words]).exit_code == 2

    def test_a_context_that_is_not_there(self) -> None:
        """It is a sentence: nothing would ever answer."""
        invoked = RUN.invoke(app, ["dashboard", "-n", "shop", "--contexts", "here,nobody"])
        assert invoked.exit_code == 1
        assert isinstance(invoked.exception, SplitterError)
        assert "context" in str(invoked.exception)
