"""A public trace of spot capacity, as the lab plays it."""

from pathlib import Path

import pytest

from lab.checkout import ROOT
from lab.traces import Change, read_trace
from splitter.plugin.simulate import trace

BAMBOO = ROOT / "tests" / "plugin" / "simulate" / "traces" / "bamboo-g4dn.csv"


def test_reads_what_the_simulator_reads() -> None:
    """Of a public trace, each change at the same second."""
    ours, theirs = read_trace(BAMBOO), trace.read_trace(BAMBOO)
    assert [(one.at_s, one.node, one.added) for one in ours.changes] == [
        (one.at_s, one.node, one.added) for one in theirs.changes
    ]
    assert ours.duration_s == theirs.duration_s


def test_is_by_time(tmp_path: Path) -> None:
    """Whatever the order of the lines."""
    path = tmp_path / "short.csv"
    path.write_text("2000,remove,a\n0,add,a\n")
    assert read_trace(path).changes == (Change(0.0, "a", added=True), Change(2.0, "a", added=False))


@pytest.mark.parametrize("text", ["", "1000,add\n", "1000,come,a\n", "soon,add,a\n", "1000,add,\n"])
def test_what_is_no_change_is_refused(tmp_path: Path, text: str) -> None:
    """With the file's name."""
    path = tmp_path / "odd.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"odd\.csv"):
        read_trace(path)
