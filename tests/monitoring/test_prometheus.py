"""Prometheus is found where it may be; where it cannot be had, the reason and the remedy are said."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitoring import prometheus
from monitoring.prometheus import NoPrometheusError, promtool


class TestFinding:
    @pytest.fixture(autouse=True)
    def _nothing_known(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with no program on PATH and an empty cache."""
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        prometheus.tool.cache_clear()

    def test_on_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is installed is used, and nothing is downloaded."""
        command = tmp_path / "bin" / "promtool"
        command.parent.mkdir()
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(command.parent))
        assert prometheus.tool("promtool") == command

    def test_nowhere(self, tmp_path: Path) -> None:
        """Where there is no Debian it says what to install, and leaves nothing behind."""
        with pytest.raises(NoPrometheusError, match=r"apt-get.*Install Prometheus"):
            prometheus.tool("promtool")
        assert list((tmp_path / "cache" / "splitter").iterdir()) == []

    def test_gone_wrong(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An apt-get that fails is quoted."""
        apt = tmp_path / "bin" / "apt-get"
        apt.parent.mkdir()
        apt.write_text("#!/bin/sh\necho E: Failed to fetch http://mirror.corp/debian >&2\nexit 100\n")
        apt.chmod(0o755)
        monkeypatch.setenv("PATH", str(apt.parent))
        with pytest.raises(NoPrometheusError, match=r"Failed to fetch http://\(host\)/debian"):
            prometheus.tool("prometheus")

    @pytest.fixture(autouse=True)
    def _found_anew(self) -> Iterator[None]:
        """Let later tests look again."""
        yield
        prometheus.tool.cache_clear()


def test_runs() -> None:
    """The one that was found is one."""
    assert "promtool, version" in promtool("--version").stdout
