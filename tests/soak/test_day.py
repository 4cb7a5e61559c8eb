"""A day is drawn from a seed and a trace, and comes out the same each time."""

from collections import Counter
from pathlib import Path

import pytest

from lab.soak.day import BUSY, FIRST_NODES, HOUR_S, HOURS, Deed, What, first_nodes, hour
from lab.traces import Change, Trace, read_trace

TRACE = read_trace(Path(__file__).parents[1] / "plugin" / "simulate" / "traces" / "bamboo-g4dn.csv")
PARTS = 5
OURS = {What.RESTARTED, What.LEADER_CHANGES}


@pytest.fixture(scope="module")
def two_days() -> list[tuple[Deed, ...]]:
    """Return the hours of two days."""
    return [hour(7, number, TRACE, PARTS) for number in range(2 * HOURS)]


def test_the_same_again() -> None:
    """One seed gives one day, another seed another, on the same trace."""
    assert hour(7, 3, TRACE, PARTS) == hour(7, 3, TRACE, PARTS) != hour(8, 3, TRACE, PARTS)


def test_in_time(two_days: list[tuple[Deed, ...]]) -> None:
    """All of an hour happens in its busy part, in order."""
    for deeds in two_days:
        times = [deed.at_s for deed in deeds]
        assert times == sorted(times)
        assert all(0 <= at_s <= BUSY * HOUR_S for at_s in times)


def test_the_whole_trace(two_days: list[tuple[Deed, ...]]) -> None:
    """Each change of the trace happens once a day."""
    came = Counter(deed.node for deeds in two_days for deed in deeds if deed.what is What.NODE_COMES)
    added = Counter(change.node for change in TRACE.changes if change.added)
    assert came == Counter({f"{day}/{node}": times for node, times in added.items() for day in (0, 1)})


def test_nodes_come_and_go(two_days: list[tuple[Deed, ...]]) -> None:
    """Only who is there goes or is announced to go, and there is always a spot node at the end of an hour."""
    here = set(first_nodes())
    for deeds in two_days:
        for deed in deeds:
            if deed.what is What.NODE_COMES:
                assert deed.node not in here
                here.add(deed.node)
            elif deed.what is What.NODE_GOES:
                here.remove(deed.node)
        assert here
    assert len(first_nodes()) == FIRST_NODES


def test_all_of_it(two_days: list[tuple[Deed, ...]]) -> None:
    """Two days hold everything, for each workload."""
    deeds = [deed for each in two_days for deed in each]
    assert {deed.what for deed in deeds} == set(What) - OURS
    for what in (What.SCALE, What.DEPLOY):
        assert {deed.part for deed in deeds if deed.what is what} == set(range(PARTS))


def test_more_at_noon(two_days: list[tuple[Deed, ...]]) -> None:
    """The replicas follow the day."""
    above = {
        number: [d.number for d in deeds if d.what is What.SCALE] for number, deeds in enumerate(two_days)
    }
    assert set(above[12]) == {4}
    assert set(above[0]) == set(above[24]) == {0}


def test_a_day_can_be_read() -> None:
    """Each line says when, what and of whom."""
    trace = Trace((Change(0.0, "a", added=True), Change(86_400.0, "a", added=False)))
    [come] = [deed for deed in hour(1, 0, trace, 1) if deed.what is What.NODE_COMES]
    assert str(come) == "  0.0 s  node comes 0/a"
    assert str(Deed(2.0, What.POLICY, 1, 2, 50)).endswith("workload 1: base 2, 50 % of the rest on spot")


def test_with_restarts(two_days: list[tuple[Deed, ...]]) -> None:
    """Each day splitter is restarted three times and another leads once; nothing else differs."""
    assert not any(deed.what in OURS for deeds in two_days for deed in deeds)
    with_restarts = [hour(7, number, TRACE, PARTS, restarts=True) for number in range(2 * HOURS)]
    counts = Counter(deed.what for deeds in with_restarts for deed in deeds)
    assert (counts[What.RESTARTED], counts[What.LEADER_CHANGES]) == (6, 2)
    assert [tuple(deed for deed in deeds if deed.what not in OURS) for deeds in with_restarts] == two_days
