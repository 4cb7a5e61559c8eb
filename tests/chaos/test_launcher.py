"""The clock of a splitter that can be set."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaos.launcher import ASKING, CLOCK_FILE, SetClock, offset_s

ROOT = Path(__file__).resolve().parents[2]


def ahead_s() -> float:
    """Return how far the clock that can be set is ahead of the machine's."""
    return (SetClock.now(UTC) - datetime.now(UTC)).total_seconds()


class TestClock:
    def test_is_the_machines(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Without a file, or with one that is just being written, nothing is added."""
        monkeypatch.delenv(CLOCK_FILE, raising=False)
        assert abs(ahead_s()) < 1
        monkeypatch.setenv(CLOCK_FILE, str(tmp_path / "clock"))
        assert offset_s() == 0
        (tmp_path / "clock").write_text("")
        assert offset_s() == 0

    @pytest.mark.parametrize("seconds", [3600, -3600])
    def test_is_set(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: int) -> None:
        """What stands in the file is added, and may change while the process runs."""
        file = tmp_path / "clock"
        monkeypatch.setenv(CLOCK_FILE, str(file))
        file.write_text(str(seconds))
        assert abs(ahead_s() - seconds) < 1
        file.write_text("0")
        assert abs(ahead_s()) < 1


def test_nobody_else_asks_for_the_time() -> None:
    """Whoever runs in the controller and asks for the wall clock asks the one that can be set."""
    left_out = ("cli", "dashboard", "sandbox", "demo", "simulate")  # not in the controller
    collected = set()
    for path in (ROOT / "splitter").rglob("*.py"):
        folder = path.relative_to(ROOT / "splitter").parts[0]
        if folder not in left_out and re.search(r"\bdatetime\.now\(|\btime\.time\(|utcnow", path.read_text()):
            dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            collected.add(dotted.removesuffix(".__init__"))
    collected.discard("splitter.reconciler.preview")  # asked by `splitter plan` only
    assert collected == set(ASKING)
