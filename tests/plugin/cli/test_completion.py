"""Completion: what is offered at a Tab, by kubectl and by shells; nothing where nothing can be had."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.cli.one_cluster import api
from splitter.plugin.cli import COMPLETION_VARIABLE
from splitter.plugin.cli.completion import complete_for_kubectl
from world.server import serving


@pytest.fixture(autouse=True)
def _cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve on loopback, and point KUBECONFIG there."""
    with serving(api(), tmp_path / "kubeconfig"):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield


class TestCompletion:
    @pytest.mark.parametrize(
        ("typed", "offered"),
        [
            (["sta"], ["status\tShow the state of split workloads."]),
            (["status", "-n", "shop", ""], ["web\tMoving SpotInterrupted"]),
            (["status", "-n", "shop", "deploy/"], ["deploy/web\tMoving SpotInterrupted"]),
            (["explain", "-n", "shop", "x"], []),
            (["status", "-n", "s"], ["shop"]),
            (["status", "--context", ""], ["here"]),
            (["freeze", "-n", "nowhere", ""], []),
        ],
    )
    def test_completes_for_kubectl(
        self,
        typed: list[str],
        offered: list[str],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Verbs, workloads with how they stand, namespaces, contexts; nothing where nothing can be had."""
        for variable in (COMPLETION_VARIABLE, "_TYPER_COMPLETE_FISH_ACTION", "_TYPER_COMPLETE_ARGS"):
            monkeypatch.setenv(variable, "")  # it is a process of its own, and sets them
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-splitter", *typed])
        complete_for_kubectl()
        printed = capsys.readouterr()
        assert printed.out.splitlines() == [*offered, ":4"]
        assert printed.err == ""

    def test_completes_in_a_shell(self) -> None:
        """What `splitter completion bash` prints offers workloads in a bash that has read it."""
        asked = {**os.environ, "_SPLITTER_COMPLETE": "complete_bash", "COMP_CWORD": "4"}
        asked["COMP_WORDS"] = "splitter status -n shop w"
        ran = subprocess.run(
            [sys.executable, "-m", "splitter"],
            env=asked,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert ran.stdout == "web\n"
        printed = subprocess.run(
            [sys.executable, "-m", "splitter", "completion", "bash"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        subprocess.run(["bash", "-n"], input=printed.stdout, text=True, check=True, timeout=60)
        assert "_SPLITTER_COMPLETE=complete_bash" in printed.stdout
