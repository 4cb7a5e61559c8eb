"""Which replicas a drain waits for, and which were missing before it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import LONG_AGO_S, NOW, ago, pod, pods, twin
from splitter.core.awaited import Awaited, Moment, awaited
from splitter.core.clock import Waits
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.split_status.starts import NOTHING_LEARNED, PoolStarts, StartTimes

SIGN_S = 300.0
AT = Moment(Waits(NOW), ago(SIGN_S), 180.0, NOTHING_LEARNED)
CRASHES = Trouble(Reason.CRASH_LOOPING, "container c ends with exit code 1")


def ill(name: str = "ill", age_s: float = LONG_AGO_S, **fields: Any) -> Replica:  # noqa: ANN401
    """Return a pod that has a node and crashes."""
    return pod(name, ready=False, created=ago(age_s), **{"trouble": CRASHES, **fields})


def sort(*those: Replica, asked: int | None = None, at: Moment = AT) -> Awaited:
    """Sort the pods of a twin that asks for so many."""
    return awaited([twin(Pool.ON_DEMAND, those)], len(those) if asked is None else asked, at)


class TestSorting:
    """Who serves, who comes, who is ill."""

    def test_who_is_ill(self) -> None:
        """What the kubelet says counts at once of those that were there before."""
        seen = sort(*pods(2), ill())
        assert (seen.ill_before, seen.coming, seen.expected) == (("ill (CrashLooping)",), (), 2)

    @pytest.mark.parametrize(("unready_s", "is_ill"), [(5, False), (179, False), (181, True)])
    def test_who_is_unready_for_a_moment(self, unready_s: float, is_ill: bool) -> None:
        """It may come back; and longer where starts take longer."""
        seen = sort(ill(trouble=None, unready_since=ago(unready_s)))
        assert bool(seen.ill_before) is is_ill
        slow = Moment(Waits(NOW), AT.sign, 180.0, StartTimes(until=NOW, on_demand=PoolStarts(start_s=(400,))))
        assert not sort(ill(trouble=None, unready_since=ago(unready_s)), at=slow).ill_before

    @pytest.mark.parametrize(("age_s", "is_ill"), [(10, False), (170, False), (190, True)])
    def test_who_is_new(self, age_s: float, is_ill: bool) -> None:
        """It has the time of a start, whatever the kubelet says in its first moments."""
        at = replace(AT, waits=Waits(NOW))
        seen = sort(ill(age_s=age_s), at=at)
        assert (bool(seen.ill_since), bool(seen.coming)) == (is_ill, not is_ill)
        assert at.waits.next_due_s == (None if is_ill else 180 - age_s)

    def test_who_finds_no_node(self) -> None:
        """It is covered by splitter itself: it explains nothing that was missing before."""
        seen = sort(pod("stuck", NodeStatus.UNBOUND, unschedulable_since=ago(LONG_AGO_S)))
        assert (seen.ill_before, seen.ill_since) == ((), ("stuck (no node)",))

    def test_who_goes(self) -> None:
        """A doomed or lost replica is none that stays."""
        seen = sort(*pods(1, doomed=1, lost=1), asked=5)
        assert (seen.serving, seen.missing, seen.expected) == (1, 2, 3)

    def test_says_for_whom_evictions_wait(self) -> None:
        """By name, three at most of each."""
        new = [pod(f"new-{number}", ready=False, created=ago(5)) for number in range(4)]
        seen = sort(*new, ill(), asked=6)
        assert seen.sentence == (
            "evictions wait for new-0 (starting), new-1 (starting), new-2 (starting) and 2 more,"
            " not for ill (CrashLooping)"
        )
        assert sort(ill()).sentence == "evictions do not wait for ill (CrashLooping)"
        late = ill("late", 200.0)
        assert sort(late).sentence == "evictions wait for late (CrashLooping)"
        assert not sort(*pods(3)).sentence

    @given(
        st.integers(1, 8),
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 4),
        st.data(),
    )
    def test_what_served_before(  # noqa: PLR0917 - the counts of one drain
        self, replicas: int, ill_before: int, doomed: int, replaced: int, gone: int, data: st.DataObject
    ) -> None:
        """However far a drain is: an eviction that N less those allows leaves as many as served at the sign.

        `replaced` of the replacements are made, and `gone` of the doomed are evicted: each has a successor.
        """
        ill_before, doomed = min(ill_before, replicas), min(doomed, replicas - min(ill_before, replicas))
        replaced, gone = min(replaced, doomed), min(gone, doomed)
        new = [
            pod(f"new-{number}", ready=data.draw(st.booleans()), created=ago(data.draw(st.integers(0, 299))))
            for number in range(replaced + gone)
        ]
        there = [
            *pods(replicas - ill_before - doomed, doomed=doomed - gone),
            *(ill(f"ill-{number}") for number in range(ill_before)),
            *new,
        ]
        left = doomed - gone
        seen = sort(*there, asked=max(len(there), replicas + left))
        keeps = replicas - seen.explained(replicas, left, left)
        assert replicas - ill_before <= keeps <= replicas
