"""`splitter dashboard`: what it prints, how it ends, and what a browser is handed."""

import socket
import stat
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from typer.testing import CliRunner

from splitter.plugin.cli import app, dashboard
from unlabelled import World
from world.server import serving

RUN = CliRunner()
ADDRESS = "http://127.0.0.1:4321/a-token/"


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a browser is asked to open."""
    result: list[str] = []

    def hand(address: str) -> bool:
        result.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", hand)
    return result


class TestOpen:
    """A browser is handed a file, since everybody may read what a process was started with."""

    def test_the_address_is_no_argument(self, handed: list[str]) -> None:
        """The file is its owner's alone, leads to the page, and goes with the command."""
        with dashboard.opened(ADDRESS):
            (address,) = handed
            assert "a-token" not in address
            file = Path(url2pathname(urlsplit(address).path))
            assert ADDRESS in file.read_text("utf-8")
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert not file.parent.exists()

    def test_no_browser(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Is said; the address was printed."""
        monkeypatch.setattr(webbrowser, "open", lambda _: False)
        with dashboard.opened(ADDRESS):
            pass
        assert "no browser could be opened" in capsys.readouterr().err


class TestRefused:
    """One sentence, and exit code 1."""

    def test_a_port_that_is_taken(self, tmp_path: Path) -> None:
        """Which port, and why."""
        world = World()
        world.add_namespace("shop")
        world.add_nodes()
        with serving(world.api, tmp_path / "kubeconfig"), socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            arguments = ["--kubeconfig", str(tmp_path / "kubeconfig"), "-n", "shop", "--port", str(port)]
            result = RUN.invoke(app, ["dashboard", *arguments])
        assert result.exit_code == 1
        assert f"splitter dashboard: port {port} cannot be used: Address already in use" in result.stderr

    def test_a_trace_that_cannot_be_read(self, tmp_path: Path) -> None:
        """Before anything is asked of the cluster."""
        result = RUN.invoke(app, ["dashboard", "--trace", str(tmp_path / "none.csv")])
        assert result.exit_code == 1
        assert "none.csv: No such file" in result.stderr

    def test_a_port_that_there_is_not(self) -> None:
        """Wrong usage."""
        assert RUN.invoke(app, ["dashboard", "--port", "65536"]).exit_code == 2
