"""Where real nodes cannot be had, it is said why and what to do, and nothing is left behind."""

import os
import shutil
from pathlib import Path

import pytest

from lab.sandbox import SandboxError, debian
from lab.sandbox.preflight import GIB, Report, check
from lab.sandbox.processes import Nursery
from lab.sandbox.real import build, world

TOOLS = ("unshare", "nsenter", "mount", "ip", "sh")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder in the place of PATH, with nothing in it, and return it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(world, "SYSTEM_PATHS", ())
    return folder


def tool(folder: Path, name: str, script: str = "") -> None:
    """Make a program of this name that does nothing, or what the script says."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


class TestTheSystem:
    """What the system lacks or refuses is named."""

    def test_lacks_a_tool(self, path: Path) -> None:
        """The packages that have it are named, each once."""
        tool(path, "mount")
        assert world.refusal() == (
            "real nodes need unshare, nsenter, ip, and PATH has none. Install iproute2, util-linux."
        )

    def test_refuses_user_namespaces(self, path: Path) -> None:
        """Its own words are quoted, and what allows it is named."""
        for name in TOOLS:
            tool(path, name, "echo warning >&2; echo 'unshare failed: Operation not permitted' >&2; exit 1")
        refused = world.refusal()
        assert refused is not None
        assert "refuses it (unshare failed: Operation not permitted)" in refused
        assert "user.max_user_namespaces above 0" in refused

    def test_says_nothing(self, path: Path) -> None:
        """A silent refusal is told by its code."""
        for name in TOOLS:
            tool(path, name, "exit 7")
        assert "refuses it (code 7)" in str(world.refusal())

    def test_allows_it(self, path: Path) -> None:
        """Then there is nothing to say."""
        for name in TOOLS:
            tool(path, name)
        assert world.refusal() is None

    def test_a_world_is_not_begun(self, path: Path, tmp_path: Path) -> None:
        """No process is started and no folder made where it is refused."""
        nursery = Nursery()
        home = tmp_path / "real"
        assert not list(path.iterdir())
        with pytest.raises(SandboxError, match="real nodes need unshare"):
            world.World(nursery, tmp_path, tmp_path, home).start(1)
        assert nursery.children == ()
        assert not home.exists()

    def test_is_told_before_the_tests(self, path: Path, tmp_path: Path) -> None:
        """The check says that tests are skipped, and does not ask for what they would run."""
        tool(path, "mount")

        def look(*, real: bool) -> Report:
            home = {"XDG_CACHE_HOME": str(tmp_path)}
            return check(home, real=real, memory=lambda: 64 * GIB, disk=lambda _: (1, 64 * GIB))

        [reported] = set(look(real=True).notes) - set(look(real=False).notes)
        assert reported.startswith("Tests with real nodes are skipped: real nodes need unshare")


class TestPrograms:
    """What Go cannot build comes from PATH or from Debian."""

    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return where builds lie; nothing is there, and nothing beside PATH is looked at."""
        monkeypatch.setattr(build, "SYSTEM_PATHS", ())
        return tmp_path / "splitter" / "sandbox"

    @pytest.mark.usefixtures("path")
    def test_are_nowhere(self, tmp_path: Path, cache: Path) -> None:
        """What is missing is named, and the package to install; nothing is left in the cache."""
        reported: list[str] = []
        with pytest.raises(SandboxError, match=r"need nft, and PATH has none.*Install the package nftables"):
            build.real_nodes(reported.append, {"XDG_CACHE_HOME": str(tmp_path)})
        assert [one.name for one in cache.iterdir()] == ["build.lock"]

    def test_have_gone(self, tmp_path: Path, cache: Path) -> None:
        """A program of the system's that was there at the build and is not any more is named."""
        home = cache / build.key()
        for name in build.PROGRAMS:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).touch(mode=0o755)
        (home / "nft").unlink()
        (home / "nft").symlink_to(tmp_path / "gone")
        with pytest.raises(SandboxError, match=r"has no nft: .*Delete the directory"):
            build.real_nodes(print, {"XDG_CACHE_HOME": str(tmp_path)})

    def test_a_full_disk(self, path: Path, tmp_path: Path) -> None:
        """A download that fails is quoted, and nothing of it stays."""
        tool(path, "apt-get", "echo 'E: No space left on device' >&2; exit 100")
        with pytest.raises(SandboxError, match="No space left on device"):
            debian.unpack(tmp_path / "cache" / "nft", "nftables")
        assert list((tmp_path / "cache").iterdir()) == []

    def test_unpacked_all_or_nothing(self, path: Path, tmp_path: Path) -> None:
        """With one package that cannot be unpacked, none is there; a second try begins anew."""
        for name in ("mkdir", "touch", "cp"):
            (path / name).symlink_to(shutil.which(name, path=os.defpath) or name)
        tool(path, "apt-get", "touch one.deb two.deb")
        tool(path, "dpkg", '[ "$2" = one.deb ] && mkdir -p unpacked/usr || exit 2')
        home = tmp_path / "cache" / "nft"
        with pytest.raises(SandboxError, match="could not be downloaded"):
            debian.unpack(home, "one", "two")
        assert not home.exists()
        tool(path, "dpkg", "mkdir -p unpacked/usr")
        debian.unpack(home, "one", "two")
        assert (home / "usr").is_dir()
        tool(path, "apt-get", "exit 1")
        debian.unpack(home, "one", "two")  # it is there: nobody is asked
