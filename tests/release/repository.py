"""The git repository of a release: what it says, and the few things a release does to it."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.errors import ReleaseError

_DEADLINE_S = 120.0


class Repository:
    """A clone with its work tree. Every method raises ReleaseError with git's own words when git refuses."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str) -> str:
        """Run git here and return what it printed."""
        return self._run(*arguments).decode().strip()

    def _run(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.root), *arguments]
        try:
            answer = subprocess.run(command, capture_output=True, timeout=_DEADLINE_S, check=False)
        except FileNotFoundError:
            raise ReleaseError("git is not there: install it, and try again.") from None
        if answer.returncode != 0:
            said = answer.stderr.decode(errors="replace").strip()
            raise ReleaseError(f"git {arguments[0]} failed: mend what it says, and try again.\n{said}")
        return answer.stdout

    @property
    def branch(self) -> str:
        """Return the branch that is checked out, or nothing."""
        return self.git("branch", "--show-current")

    @property
    def changed(self) -> list[str]:
        """Return the files that are not as committed, new ones too."""
        lines = (
            self._run("status", "--porcelain", "--untracked-files=normal", "-z")
            .decode(errors="replace")
            .split("\0")
        )
        return [line[3:] for line in lines if line]

    @property
    def tags(self) -> list[str]:
        """Return the tags of versions."""
        return self.git("tag", "--list", "v*").split()

    def check_identity(self) -> None:
        """Raise ReleaseError unless git knows in whose name to commit."""
        try:
            self.git("var", "GIT_COMMITTER_IDENT")
        except ReleaseError:
            raise ReleaseError(
                "git does not know who you are: set user.name and user.email with git config, and try again."
            ) from None

    def epoch(self, commit: str) -> int:
        """Return when a commit was made, in seconds since 1970."""
        return int(self.git("log", "-1", "--format=%ct", commit))

    @contextmanager
    def exported(self, commit: str) -> Iterator[Path]:
        """Give a clean copy of a commit, without what this machine's work tree has beside it."""
        # A user's tar.umask would show in the modes.
        content = self._run("-c", "tar.umask=0022", "archive", "--format=tar", commit)
        with tempfile.TemporaryDirectory(prefix="splitter-release-") as folder:
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(folder, filter="data")
            yield Path(folder)

    @contextmanager
    def aside(self) -> Iterator["Repository"]:
        """Give a second work tree of the present commit, on no branch; what is committed there stays."""
        with tempfile.TemporaryDirectory(prefix="splitter-release-") as folder:
            tree = Path(folder) / "tree"
            self.git("worktree", "add", "--quiet", "--detach", str(tree))
            try:
                yield Repository(tree)
            finally:
                self.git("worktree", "remove", "--force", str(tree))

    def adopt(self, commit: str, tag: str, message: str) -> None:
        """Move the branch forward to a commit and tag it: both, or neither."""
        self.git("tag", "--annotate", "--message", message, tag, commit)
        try:
            self.git("merge", "--quiet", "--ff-only", commit)
        except ReleaseError:
            self.git("tag", "--delete", tag)
            raise
