"""kubectl's options in the place of a verb's cluster: what is typed becomes a `Cluster`."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster

RUN = CliRunner()


def app_of(*without: str) -> tuple[typer.Typer, list[tuple[str | None, bool, Cluster]]]:
    """Return an app with one verb, and what it was called with."""
    called: list[tuple[str | None, bool, Cluster]] = []
    app = typer.Typer()

    @app.command()
    @asks_cluster(without=without)
    def look(workload: str | None = typer.Argument(None), *, deep: bool = False, cluster: Cluster) -> None:
        """Look at something."""
        called.append((workload, deep, cluster))

    return app, called


def test_are_those_of_kubectl() -> None:
    """Long and short; what is not typed is None."""
    app, called = app_of()
    typed = [
        "web",
        "-n",
        "shop",
        "-l",
        "a=b",
        "--context",
        "there",
        "--kubeconfig",
        "/k",
        "--settings",
        "/s",
        "--deep",
    ]
    assert RUN.invoke(app, typed).exit_code == 0
    assert RUN.invoke(app, ["-A"]).exit_code == 0
    assert called == [
        ("web", True, Cluster("shop", False, "a=b", "there", Path("/k"), Path("/s"))),
        (None, False, Cluster(everywhere=True)),
    ]


def test_are_no_more_than_make_sense() -> None:
    """One that a verb does not have is refused, and has its default."""
    app, called = app_of("everywhere", "selector")
    assert RUN.invoke(app, ["-A"]).exit_code == 2
    assert RUN.invoke(app, ["-l", "a=b"]).exit_code == 2
    assert RUN.invoke(app, ["web"]).exit_code == 0
    assert called == [("web", False, Cluster())]


@pytest.mark.parametrize(
    "option", ["--namespace", "--all-namespaces", "--selector", "--context", "--kubeconfig", "--settings"]
)
def test_are_explained(option: str) -> None:
    """In the verb's own help, beside its own words."""
    app, _ = app_of()
    helped = RUN.invoke(app, ["--help"], env={"COLUMNS": "120"}).stdout
    assert "Look at something." in helped
    assert option in helped
