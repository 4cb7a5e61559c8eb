"""Rounds are drawn from a seed, and come out the same each time."""

import pytest

from lab.chaos.__main__ import main
from lab.chaos.faults import KINDS, RIGHTS, Fault, Stroke
from lab.chaos.schedule import ROUND_S, Event, drawn


class TestDrawn:
    def test_the_same_again(self) -> None:
        """One seed and number give one round, whichever were drawn before."""
        first = drawn(7, 3)
        drawn(7, 4)
        assert drawn(7, 3) == first
        assert drawn(8, 3) != first != drawn(7, 4)

    def test_within_the_round(self) -> None:
        """All has ended when the round ends, and nothing is drawn twice in one round."""
        for number in range(200):
            entries = drawn(1, number)
            assert all(entry.at_s >= 0 and entry.at_s + entry.for_s <= ROUND_S + 0.1 for entry in entries)
            names = [entry.name for entry in entries]
            assert len(set(names)) == len(names)

    def test_everything_comes(self) -> None:
        """Eight hundred rounds hold every fault, every event and every right that may be taken away."""
        entries = [entry for number in range(800) for entry in drawn(1, number)]
        assert {entry.name for entry in entries} == {*Fault, *Event}
        strokes = [entry.what for entry in entries if isinstance(entry.what, Stroke)]
        taken = {stroke.right for stroke in strokes if stroke.fault is Fault.FORBIDDEN}
        assert taken == set(range(len(RIGHTS)))

    def test_only_what_was_asked_for(self) -> None:
        """A round of two kinds has no third."""
        entries = [entry for number in range(20) for entry in drawn(1, number, (Fault.SLOW,), (Event.SCALE,))]
        assert {entry.name for entry in entries} == {Fault.SLOW, Event.SCALE}


def test_every_fault_is_told() -> None:
    """Each has a reach, a share and a sentence."""
    assert set(KINDS) == set(Fault)


class TestCommand:
    def test_lists(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The schedule can be read with nothing played."""
        assert main(["--list", "--seed", "7", "--rounds", "2"]) == 0
        assert capsys.readouterr().out.count("round") == 2

    def test_refuses_unknown_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A wrong name is answered with the right ones."""
        with pytest.raises(SystemExit):
            main(["--list", "--faults", "slow,gremlins"])
        said = capsys.readouterr().err
        assert "gremlins: the names are slow, throttled" in said
