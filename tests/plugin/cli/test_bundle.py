"""`splitter bundle`: the archive that is written, and what is said when something cannot be."""

import errno
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitter.exits import Exit
from splitter.plugin.cli import app
from splitter.plugin.cli import bundle as verb
from splitter.plugin.cli.bundle import archive, contents
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.target import Target
from splitter.plugin.kube.bundle import BundleParts

RUN = CliRunner()
PARTS = BundleParts(
    objects={"splits": []},
    logs={"b": "leading\n", "b-previous": "crashed\n", "a": "standing by\n"},
    metrics={"a": "splitter_leader 0\n"},
    leader="b",
    failures={"metrics/b": "you may not: pods/proxy\x1b[2J"},
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Target, str | None, int]]:
    """Return what the verb asks the cluster for, which answers with what was found."""
    questions: list[tuple[Target, str | None, int]] = []

    async def read(cluster: Cluster, target: Target, installation: str | None, log_lines: int) -> BundleParts:
        del cluster
        questions.append((target, installation, log_lines))
        return PARTS

    monkeypatch.setattr(verb, "_read", read)
    return questions


class TestBundle:
    def test_writes_one_archive(self, asked: list[tuple[Target, str | None, int]], tmp_path: Path) -> None:
        """Every file is in one folder, for its owner alone; what is missing is said, and is no failure."""
        file = tmp_path / "b.tar.gz"
        arguments = ["bundle", "-n", "blue", "--namespace", "shop", "-o", str(file), "--log-lines", "7"]
        result = RUN.invoke(app, arguments)
        assert result.exit_code == Exit.DONE, result.output
        assert asked == [(Target("shop", None), "blue", 7)]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with tarfile.open(file) as tar:
            assert tar.getnames() == [
                "splitter-bundle/README.txt",
                "splitter-bundle/splits.json",
                "splitter-bundle/logs/leader-b.log",
                "splitter-bundle/logs/leader-b-previous.log",
                "splitter-bundle/logs/a.log",
                "splitter-bundle/metrics/a.txt",
            ]
            log = tar.extractfile("splitter-bundle/logs/leader-b.log")
            assert log is not None
            assert log.read() == b"leading\n"
        assert result.stderr == "not in it: metrics/b: you may not: pods/proxy\\x1b[2J\n"
        assert "6 files" in result.stdout

    def test_looks_everywhere_with_a(
        self, asked: list[tuple[Target, str | None, int]], tmp_path: Path
    ) -> None:
        """-A is about the Splits; the installation's namespace is then that of the settings."""
        result = RUN.invoke(app, ["bundle", "-A", "-o", str(tmp_path / "b.tar.gz")])
        assert result.exit_code == Exit.DONE
        assert asked == [(Target(None, None), None, 5000)]

    def test_names_its_file_by_the_time(
        self,
        asked: list[tuple[Target, str | None, int]],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Without -o it is where one stands."""
        monkeypatch.chdir(tmp_path)
        assert RUN.invoke(app, ["bundle", "-A"]).exit_code == Exit.DONE
        [file] = tmp_path.iterdir()
        assert file.match("splitter-bundle-????????-??????.tar.gz")
        assert len(asked) == 1

    def test_fails_where_nothing_can_be_written(
        self, asked: list[tuple[Target, str | None, int]], tmp_path: Path
    ) -> None:
        """A folder that is not there: one sentence says so."""
        result = RUN.invoke(app, ["bundle", "-A", "-o", str(tmp_path / "no" / "b.tar.gz")])
        assert result.exit_code != Exit.DONE
        assert "cannot be written: No such file or directory" in str(result.exception)
        assert len(asked) == 1

    @pytest.mark.parametrize("option", ["-n", "--namespace"])
    def test_a_namespace_that_cannot_be(
        self, asked: list[tuple[Target, str | None, int]], option: str, tmp_path: Path
    ) -> None:
        """Said as a wrong usage, without a question to anybody and without a file."""
        file = tmp_path / "b.tar.gz"
        result = RUN.invoke(app, ["bundle", option, "../secrets", "-o", str(file)])
        assert result.exit_code == Exit.USAGE
        assert "is no name of a namespace" in result.output
        assert not asked
        assert not file.exists()

    def test_writes_over_nothing(self, asked: list[tuple[Target, str | None, int]], tmp_path: Path) -> None:
        """Neither a file that is there, nor what somebody's link of that name leads to."""
        kept, link = tmp_path / "kept", tmp_path / "b.tar.gz"
        kept.write_text("mine", encoding="utf-8")
        link.symlink_to(kept)
        dangling = tmp_path / "c.tar.gz"
        dangling.symlink_to(tmp_path / "elsewhere")
        for file in (kept, link, dangling):
            result = RUN.invoke(app, ["bundle", "-A", "-o", str(file)])
            assert "cannot be written: File exists" in str(result.exception)
        assert kept.read_text(encoding="utf-8") == "mine"
        assert not (tmp_path / "elsewhere").exists()
        assert len(asked) == 3

    def test_a_full_disk_leaves_nothing(
        self, asked: list[tuple[Target, str | None, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half an archive is none. And nobody else could open the file before there was anything in it."""
        modes = []

        class Full(io.FileIO):
            def write(self, content: object) -> int:
                del content
                modes.append(stat.S_IMODE(os.fstat(self.fileno()).st_mode))
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("splitter.plugin.cli.bundle.os.fdopen", Full)
        result = RUN.invoke(app, ["bundle", "-A", "-o", str(tmp_path / "b.tar.gz")])
        assert "cannot be written: No space left on device" in str(result.exception)
        assert modes == [0o600]
        assert not list(tmp_path.iterdir())
        assert len(asked) == 1


class TestContents:
    def test_begins_with_the_overview(self) -> None:
        """It names each file, the leader and what is missing."""
        name, text = next(iter(contents(PARTS).items()))
        assert name == "README.txt"
        assert "leader: b" in text
        assert "  logs/leader-b.log" in text
        assert "  metrics/b: you may not" in text

    def test_is_packed_with_its_time(self) -> None:
        """A text of any characters is packed, as of the time that is given."""
        packed = archive({"a.txt": "\ud800 é"}, 60.0)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            [member] = tar.getmembers()
        assert (member.mtime, member.size) == (60, len("? é".encode()))
