"""The clock of a splitter that can be set."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.chaos.launcher import ASKING, CLOCK_FILE, SetClock, offset_s

ROOT = Path(__file__).resolve().parents[2]


def is_ahead(seconds: float) -> bool:
    """Whether the clock that can be set is so far ahead of the machine's."""
    before, seen, after = datetime.now(UTC), SetClock.now(UTC), datetime.now(UTC)
    return before <= seen - timedelta(seconds=seconds) <= after


class TestClock:
    def test_is_the_machines(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Without a file, or with one that is just being written, nothing is added."""
        monkeypatch.delenv(CLOCK_FILE, raising=False)
        assert is_ahead(0)
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
        assert is_ahead(seconds)
        file.write_text("0")
        assert is_ahead(0)


def test_nobody_else_asks_for_the_time() -> None:
    """Whoever runs in the controller and asks for the wall clock asks the one that can be set."""
    left_out = ("plugin", "sandbox", "demo")  # not in the controller
    collected = set()
    for path in (ROOT / "splitter").rglob("*.py"):
        folder = path.relative_to(ROOT / "splitter").parts[0]
        if folder not in left_out and re.search(r"\bdatetime\.now\(|\btime\.time\(|utcnow", path.read_text()):
            dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            collected.add(dotted.removesuffix(".__init__"))
    assert collected == set(ASKING)
