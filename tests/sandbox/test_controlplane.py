"""What a killed sandbox left behind is removed by the next start, and nothing else is."""

import fcntl
import os
import time
from pathlib import Path

from lab.sandbox.controlplane import sweep


def leftover(root: Path, name: str, *, age_s: float = 3600) -> Path:
    """Make the directory of a sandbox that began some time ago."""
    home = root / f"splitter-sandbox-{name}"
    (home / "logs").mkdir(parents=True)
    owner = home / "owner.lock"
    owner.touch()
    began = time.time() - age_s
    os.utime(owner, (began, began))
    return home


class TestSweeping:
    """A directory whose owner is dead goes."""

    def test_removes_a_dead_ones(self, tmp_path: Path) -> None:
        """Nobody holds the lock: its process was killed."""
        home = leftover(tmp_path, "dead")
        sweep(tmp_path)
        assert not home.exists()

    def test_leaves_a_living_ones(self, tmp_path: Path) -> None:
        """A held lock is a running sandbox, of whatever process."""
        home = leftover(tmp_path, "living")
        with (home / "owner.lock").open("r+") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            sweep(tmp_path)
        assert home.exists()

    def test_leaves_one_that_is_being_born(self, tmp_path: Path) -> None:
        """A directory that was made a moment ago may not be locked yet."""
        home = leftover(tmp_path, "newborn", age_s=1)
        sweep(tmp_path)
        assert home.exists()

    def test_leaves_kept_logs_and_strangers(self, tmp_path: Path) -> None:
        """Logs of a failure stay until a person removes them; other directories are not ours."""
        home = leftover(tmp_path, "failed")
        (home / "kept").touch()
        stranger = tmp_path / "splitter-sandbox-notes"
        stranger.mkdir()
        sweep(tmp_path)
        assert home.exists()
        assert stranger.exists()
