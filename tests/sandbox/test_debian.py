"""Packages of Debian's are unpacked whole or not at all, without root; apt-get and dpkg are played."""

import os
import stat
from pathlib import Path

import pytest

from lab.sandbox.debian import unpack
from lab.sandbox.errors import SandboxError

APT = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
*update*) touch "{lists}" ;;
*download*)
  {fails} && {{ echo "Err http://proxy.example:3128 no such package" >&2; exit 100; }}
  touch runc_1.deb nftables_1.deb ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3"; touch "$3/$2.unpacked"
"""


class Machine:
    """A PATH with an apt-get and a dpkg, and what they were asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.lists, self.home = folder / "asked", folder / "lists", folder / "cache" / "packages"
        self.programs = folder / "bin"
        self.programs.mkdir()
        monkeypatch.setenv("PATH", f"{self.programs}{os.pathsep}{os.environ['PATH']}")
        self.write("dpkg", DPKG)

    def write(self, name: str, text: str) -> None:
        """Write a program."""
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def has_apt(self, fails: str) -> None:
        """Write an apt-get that cannot download where this holds."""
        self.write("apt-get", APT.format(log=self.log, lists=self.lists, fails=fails))

    @property
    def asked(self) -> list[str]:
        """What apt-get was asked for: its verbs."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [next(word for word in line.split() if word in {"download", "update"}) for line in lines]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine of its own."""
    return Machine(tmp_path, monkeypatch)


def left(machine: Machine) -> list[str]:
    """Return what is in the cache."""
    return sorted(one.name for one in machine.home.parent.iterdir())


def test_are_unpacked_once(machine: Machine) -> None:
    """Nothing but them is left."""
    machine.has_apt("false")
    for _ in range(2):
        unpack(machine.home, "runc", "nftables")
    assert {one.name for one in machine.home.iterdir()} == {"runc_1.deb.unpacked", "nftables_1.deb.unpacked"}
    assert left(machine) == ["packages"]
    assert machine.asked == ["download"]


def test_are_looked_up_where_nobody_has_fetched_the_lists(machine: Machine) -> None:
    """In a folder of our own: the machine's are not touched."""
    machine.has_apt(f'[ ! -e "{machine.lists}" ]')
    unpack(machine.home, "runc")
    assert machine.asked == ["download", "update", "download"]
    own = [line for line in machine.log.read_text().splitlines() if "Dir::State::Lists=" in line]
    assert len(own) == 2


def test_that_cannot_be_had_leave_nothing(machine: Machine) -> None:
    """The last words of apt-get are told, without the host of a proxy."""
    machine.has_apt("true")
    with pytest.raises(SandboxError, match="could not be downloaded") as caught:
        unpack(machine.home, "runc")
    assert "no such package" in str(caught.value)
    assert "proxy.example" not in str(caught.value)
    assert left(machine) == []
