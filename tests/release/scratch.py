"""A repository to release in: files of this one as they lie here, with one commit, in another folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from release import changelog

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120.0
# Its change log has something to tell, also when this one's has just been released.
REPORTED = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"
_LEFT_OUT = ("tests/", "docs/", "benchmarks/")
_TAKEN = ("tests/release/", "docs/how-to/install.md", "docs/reference/reasons.md")
# Nothing of the user's own git, and the same commit wherever and whenever it is made.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "2026-01-31T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-31T12:00:00Z",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it printed. Raises AssertionError with its complaint."""
    answer = subprocess.run(
        ["git", "-C", folder, *arguments],
        env={"PATH": os.environ["PATH"], **GIT},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def repository(folder: Path) -> Path:
    """Make the repository in a new folder and return it; it lacks what no part of a release is made of."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        if name.startswith(_LEFT_OUT) and not name.startswith(_TAKEN):
            continue
        if (ROOT / name).is_symlink() or (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / changelog.FILE).write_text(REPORTED, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "user.name", "A. Maintainer")
    git(folder, "config", "user.email", "maintainer@example.org")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def release(
    folder: Path, *arguments: str, umask: int = 0o022, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m release` in a folder, by the code that lies there."""
    return subprocess.run(
        [sys.executable, "-m", "release", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "tests", "PYTHONDONTWRITEBYTECODE": "1", **GIT}
        | dict(environment or {}),
        umask=umask,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
