"""What a run prints, of rounds made by hand."""

from lab.chaos.faults import Fault, Stroke
from lab.chaos.judge import Terms, Verdict
from lab.chaos.report import line_of, table
from lab.chaos.schedule import Entry, Event
from lab.chaos.suite import Footprint, Round

TERMS = Terms("chaos-web", least=5, most=6, surge=2, unavailable=0)
ENTRIES = (Entry(1.0, 2.0, Stroke(Fault.CONFLICT, 1)), Entry(2.0, 3.0, Event.CRASH, 4))


def played(number: int, *faults: str) -> Round:
    """Return a round that took 7 s to be steady."""
    verdict = Verdict(TERMS, lowest=4, excused=1, highest=7, starting=2, faults=())
    footprint = Footprint(1, kib=80 * 1024, files=30, threads=4, watches=13)
    return Round(number, ENTRIES, (verdict,), 7.0, faults, (footprint,), {Fault.CONFLICT: 9})


def test_a_round() -> None:
    """One line says what was promised and what was seen."""
    assert line_of(played(3), 7) == (
        "round 3: kept; steady after 7 s; web served >= 4 (5 less 1 taken), staying <= 7 (8 and 2 starting);"
        " conflict crash"
    )


def test_a_broken_round() -> None:
    """It says what was broken, and how to play it again."""
    [first, fault, again] = line_of(played(3, "floor: broken"), 7).splitlines()
    assert first.startswith("round 3: BROKEN")
    assert fault == "  floor: broken"
    assert again == '  play it again: make chaos CHAOS="--seed 7 --only 3"'


def test_a_run() -> None:
    """Each fault and event has a row: in how many rounds, how many of them kept all, how many requests."""
    said = table(7, [played(1), played(2, "floor: broken")])
    assert "seed 7: 2 rounds, 1 kept every promise" in said
    assert "median 7 s, longest 7 s" in said
    assert "80..80 MiB, 30..30 open files, 13..13 watches" in said
    assert "| conflict | 2 | 1 | 18 |" in said
    assert "| crash | 2 | 1 |  |" in said


def test_memory_that_grows() -> None:
    """What a process held at first is what it is compared with."""
    first = Footprint(1, kib=80 * 1024, files=30, threads=4, watches=13)
    assert list(Footprint(1, 100 * 1024, 40, 4, 14).growth(first)) == []
    grown = list(Footprint(1, 120 * 1024, 60, 4, 26).growth(first))
    assert grown == [
        "memory: 80 MiB became 120 MiB",
        "open files: 30 became 60",
        "open watches: 13 became 26",
    ]
