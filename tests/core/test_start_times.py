"""What is learned of a workload's starts, and what follows from it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, ago, observation, pod, source, split, twin
from splitter.core.labels_annotations import (
    ANNOTATION_GRACE,
    ANNOTATION_ON_DEMAND_BASE,
    ANNOTATION_SOAK,
)
from splitter.core.labels_annotations.policy import Level, Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.split_status import PoolStarts, StartTimes
from splitter.core.split_status.starts import KEPT, NOTHING_LEARNED
from splitter.core.start_times import cover_s, gap_note, learned, quantile, warned_s, with_pods

UNRENDERED = Note(Reason.TEMPLATE_INVALID, "no twins here")


def started(
    name: str = "web-1",
    bound_ago_s: float = 1000,
    start_s: float | None = 40,
    node_s: float = 90,
    **fields: Any,  # noqa: ANN401 (fields of the view)
) -> Replica:
    """Return a pod that was bound `node_s` after it was made, and Ready `start_s` later; None: it starts."""
    bound = ago(bound_ago_s)
    return pod(
        name,
        created=bound - timedelta(seconds=node_s),
        bound_since=bound,
        ready_since=bound + timedelta(seconds=start_s) if start_s is not None else None,
        **fields,
    )


def after(*pods: Replica, known: StartTimes = NOTHING_LEARNED, now: datetime = NOW) -> StartTimes:
    """Return what is known after these pods were seen, once it was kept in a Split and read again."""
    return StartTimes.from_json(with_pods(known, pods, now).to_json())


class TestAPod:
    """What one pod tells."""

    def test_tells_its_start_and_its_node(self) -> None:
        """Of the pool on which it stands: from scheduled to Ready, and from created to scheduled."""
        starts = after(started(), started("web-2", start_s=300, node_s=0, on_spot=True))
        assert starts.on_demand == PoolStarts((40,), (90,))
        assert starts.spot == PoolStarts((300,), (0,))

    def test_counts_once(self) -> None:
        """However often it is looked at, over a restart too, and when it has become Ready anew meanwhile."""
        first = after(started())
        assert after(started(), known=first) == first
        assert after(started(start_s=900), known=first) == first

    def test_that_starts_holds_up_those_bound_after_it(self) -> None:
        """They are counted with it, so that one instant tells who was."""
        slow, quick = started("slow", 200, None), started("quick", 100, 30)
        known = after(started("old", 900, 20), slow, quick)
        assert known.on_demand.start_s == (20,)
        known = after(replace(slow, ready_since=ago(1)), quick, known=known)
        assert known.on_demand.start_s == (20, 199, 30)

    def test_that_never_starts_holds_up_for_an_hour(self) -> None:
        """Then the others count, and it does not."""
        stuck, quick = started("stuck", 3601, None), started("quick", 100, 30)
        assert after(stuck, quick).on_demand.start_s == (30,)

    @pytest.mark.parametrize("fields", [{"terminating": True}, {"node_status": NodeStatus.LOST}])
    def test_that_goes_holds_up_nobody(self, fields: dict[str, Any]) -> None:
        """It will not become Ready."""
        assert after(started("gone", 200, None, **fields), started("quick", 100, 30)).on_demand.start_s == (
            30,
        )

    def test_of_a_node_that_nobody_has_seen_waits(self) -> None:
        """It is not known of which pool it is."""
        assert after(started(node_status=NodeStatus.UNSEEN)) == NOTHING_LEARNED

    @pytest.mark.parametrize(
        ("start_s", "known"),
        [(0, (0,)), (-3, (0,)), (3600, (3600,)), (-600, ()), (3601, ()), (86_400, ())],
    )
    def test_with_a_time_that_cannot_be_tells_nothing(self, start_s: float, known: tuple[int, ...]) -> None:
        """Clocks differ by seconds; a start of hours was a pod that had been Ready before."""
        assert after(started(bound_ago_s=90_000, start_s=start_s)).on_demand.start_s == known

    def test_that_found_no_node_for_long_says_nothing_of_nodes(self) -> None:
        """There was none to be bought."""
        assert after(started(node_s=601)).on_demand == PoolStarts((40,), ())


class TestWhatIsKept:
    """In the Split."""

    def test_is_the_last_few(self) -> None:
        """A workload that starts slower by now is known to be slow after so many starts."""
        known = after(*(started(f"web-{n}", 1000 - n, n) for n in range(KEPT + 10)))
        assert known.on_demand.start_s == tuple(range(10, KEPT + 10))

    def test_is_small_and_can_be_read(self) -> None:
        """Whole seconds, the newest last."""
        seen = started(on_spot=True, usual_notice_s=120.0)
        assert with_pods(NOTHING_LEARNED, [seen], NOW).to_json() == {
            "until": "2026-01-05T09:43:20Z",
            "noticeSeconds": 120,
            "spot": {"startSeconds": [40], "nodeSeconds": [90]},
        }

    def test_outlives_the_spot_nodes(self) -> None:
        """What their notice is stays known while there are none."""
        known = after(started(on_spot=True, usual_notice_s=120.0))
        assert warned_s(after(started("web-2", 100), known=known)) == 120
        assert warned_s(NOTHING_LEARNED) == 30

    def test_is_the_shortest_notice_of_several(self) -> None:
        """Spot nodes of two providers: a replacement has to be there before the first is gone."""
        seen = (started(f"web-{s:g}", on_spot=True, usual_notice_s=s) for s in (120.0, 30.0, 60.0))
        assert after(*seen).notice_s == 30

    def test_is_nothing_before_one_was_counted(self) -> None:
        """A Split takes no notice without the time of the count, and then none of its status."""
        first = started(start_s=None, on_spot=True, usual_notice_s=120.0)
        assert after(first) == NOTHING_LEARNED
        assert warned_s(after(replace(first, ready_since=NOW))) == 120

    def test_with_a_time_of_the_future_stops_nothing(self) -> None:
        """A clock that was set back: pods that are bound from now on count again."""
        known = StartTimes(until=NOW + timedelta(days=400))
        known = after(known=known)
        later = NOW + timedelta(seconds=100)
        fresh = pod(created=NOW, bound_since=NOW + timedelta(seconds=5), ready_since=later)
        assert after(fresh, known=known, now=later + timedelta(seconds=1)).on_demand.start_s == (95,)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
            lambda one: (
                st.lists(one, max_size=30)
                | st.dictionaries(
                    st.sampled_from(
                        ["until", "noticeSeconds", "onDemand", "spot", "startSeconds", "nodeSeconds"]
                    ),
                    one,
                )
            ),
        )
    )
    def test_may_be_anything(self, raw: object) -> None:
        """What cannot be read is nothing; what can is within its bounds, and is read again as written."""
        known = StartTimes.from_json(raw)
        numbers = [*known.on_demand.start_s, *known.on_demand.node_s, *known.spot.start_s, *known.spot.node_s]
        assert len(numbers) <= 4 * KEPT
        assert all(0 <= one <= 3600 for one in numbers)
        assert StartTimes.from_json(known.to_json()) == replace(
            known, until=known.until.replace(microsecond=0) if known.until else None
        )

    def test_of_a_hostile_hand_is_bounded(self) -> None:
        """A thousand numbers, negative ones, words and truths: the last few that are seconds."""
        raw = {
            "until": "2026-01-05T09:00:00Z",
            "noticeSeconds": 10**30,
            "onDemand": {"startSeconds": [*range(1000), -1, "9", True, 10**40], "nodeSeconds": {"a": 1}},
            "spot": [1, 2],
        }
        known = StartTimes.from_json(raw)
        assert known.on_demand == PoolStarts(tuple(range(984, 1000)), ())
        assert (known.notice_s, known.spot) == (None, PoolStarts())


class TestQuantiles:
    """Of few times."""

    @given(st.lists(st.integers(0, 3600), min_size=1, max_size=KEPT), st.floats(0.01, 1.0))
    def test_are_times_that_were_seen(self, times: list[int], share: float) -> None:
        """At least that share is not above, and the share below is smaller."""
        at = quantile(times, share)
        assert at in times
        assert sum(one <= at for one in times) >= share * len(times) - 1e-9
        assert sum(one < at for one in times) < share * len(times)


SLOW = StartTimes(until=ago(60), notice_s=30, on_demand=PoolStarts((280, 300, 290), (0, 0, 0)))


class TestTheGap:
    """What a loss of all spot leaves where a start outlasts the notice."""

    def test_is_told_with_its_numbers(self) -> None:
        """And with the base that would leave more."""
        note = gap_note(20, 6, SLOW)
        assert note is not None
        assert (note.reason, note.message) == (
            Reason.NOTICE_TOO_SHORT,
            (
                "pods need 300 s, the notice is 30 s: a loss of all spot leaves 6 of 20 for 270 s;"
                " splitter.io/on-demand-base 11 would leave 11"
            ),
        )

    def test_counts_the_node_that_has_to_be_bought(self) -> None:
        """As long as one usually takes."""
        bought = replace(SLOW, on_demand=replace(SLOW.on_demand, node_s=(0, 80, 90)))
        assert cover_s(bought) == 380

    @pytest.mark.parametrize(
        ("replicas", "base", "starts"),
        [
            (20, 11, SLOW),
            (1, 1, SLOW),
            (0, 0, SLOW),
            (20, 0, NOTHING_LEARNED),
            (20, 0, replace(SLOW, notice_s=300)),
            (20, 0, replace(SLOW, on_demand=PoolStarts((0,), (0,)))),
        ],
    )
    def test_is_not_told_where_there_is_none(self, replicas: int, base: int, starts: StartTimes) -> None:
        """Enough stays, nothing is known, or the notice is long enough."""
        assert gap_note(replicas, base, starts) is None


def seen(starts: StartTimes, annotations: dict[str, str] | None = None, *on_spot: Replica) -> Observation:
    """Return what is seen of a workload whose Split keeps these starts."""
    return observation(
        source=source(10, annotations=annotations),
        split=split(starts=starts),
        on_demand=twin(Pool.ON_DEMAND, ()),
        spot=twin(Pool.SPOT, on_spot),
    )


class TestDefaults:
    """Grace and soak where nobody has written any."""

    def test_follow_what_was_learned(self) -> None:
        """Spot nodes come in 240 s: 360 s of grace. Pods start in 300 s: 900 s of soak. Both are told."""
        in_force = policy_in_force(
            seen(replace(SLOW, spot=PoolStarts((300,) * 3, (240, 20, 250)))), Policy(grace_s=180, soak_s=600)
        )
        assert (in_force.policy.grace_s, in_force.policy.soak_s) == (360, 900)
        assert in_force.levels[ANNOTATION_GRACE] is in_force.levels[ANNOTATION_SOAK] is Level.LEARNED
        assert in_force.levels[ANNOTATION_ON_DEMAND_BASE] is Level.DEFAULT

    def test_are_the_users_where_there_are_any(self) -> None:
        """On the workload or on its Namespace."""
        starts = replace(SLOW, spot=PoolStarts((300,) * 3, (240,) * 3))
        observed = replace(
            seen(starts, {ANNOTATION_GRACE: "60s"}), namespace_annotations={ANNOTATION_SOAK: "1m"}
        )
        policy = policy_in_force(observed, Policy()).policy
        assert (policy.grace_s, policy.soak_s) == (60, 60)

    def test_are_the_settings_where_these_are_others(self) -> None:
        """Who runs splitter has said how long it is to be, shorter or longer."""
        starts = replace(SLOW, spot=PoolStarts((300,) * 3, (240,) * 3))
        policy = policy_in_force(seen(starts), Policy(grace_s=5, soak_s=700)).policy
        assert (policy.grace_s, policy.soak_s) == (5, 700)

    @pytest.mark.parametrize(
        ("spot", "grace_s", "soak_s"),
        [
            (PoolStarts(), 180, 600),
            (PoolStarts((3600,) * 2, (600,) * 2), 180, 600),
            (PoolStarts((0,) * 20, (0,) * 20), 180, 600),
            (PoolStarts((3600,) * 20, (600,) * 20), 600, 3600),
        ],
    )
    def test_stay_within_bounds(self, spot: PoolStarts, grace_s: float, soak_s: float) -> None:
        """Never shorter than the defaults, nothing after two times, at most ten minutes and an hour."""
        policy = policy_in_force(seen(StartTimes(until=ago(60), spot=spot)), Policy()).policy
        assert (policy.grace_s, policy.soak_s) == (grace_s, soak_s)


class TestAPlan:
    """What is said."""

    def test_tells_the_gap(self) -> None:
        """As advice: it stands, and is no decision."""
        observed = seen(SLOW, {ANNOTATION_ON_DEMAND_BASE: "2"})
        in_force = policy_in_force(observed, Policy())
        advice = plan(observed, in_force, UNRENDERED, Rules()).advice
        says = (
            "pods need 300 s, the notice is 30 s: a loss of all spot leaves 2 of 10 for 270 s;"
            " splitter.io/on-demand-base 6 would leave 6"
        )
        assert [note.message for note in advice if note.reason is Reason.NOTICE_TOO_SHORT] == [says]

    def test_calls_nobody_stuck_who_is_slow(self) -> None:
        """Replicas there need up to 300 s: not Ready after 250 s is slow, after 310 s it is stuck."""

        def troubles_after(seconds: float) -> list[Reason]:
            waiting = started("slow", seconds, None, on_spot=True, unready_since=ago(seconds))
            observed = seen(replace(SLOW, spot=PoolStarts((300, 200, 250))), None, waiting)
            in_force = policy_in_force(observed, Policy(grace_s=180))
            return [note.reason for note in plan(observed, in_force, UNRENDERED, Rules()).troubles]

        assert troubles_after(250) == []
        assert troubles_after(310) == [Reason.NOT_READY]


def test_a_workload_that_is_not_split_tells_by_the_pods_it_has() -> None:
    """So `splitter plan` can warn before the label is set."""
    assert learned(replace(seen(NOTHING_LEARNED, None, started(on_spot=True)), split=None)).spot.start_s == (
        40,
    )
