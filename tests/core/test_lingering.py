"""How long replicas stay that Karmada moves to another cluster."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, ago, observation, pods, rendered, source, split, twin
from splitter.core.model import Observation
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.split_status import PoolStarts, StartTimes
from splitter.core.split_status.moving import NOTHING_FOLLOWED, FollowedCount

BEFORE = FollowedCount(12, 12, "2")
KNOWN = StartTimes(until=NOW, on_demand=PoolStarts((60, 60, 60), (0, 0, 0)))


def moving(asked: int, followed: FollowedCount = BEFORE, generation: str = "2", **fields: Any) -> Observation:  # noqa: ANN401 (fields of the source and the Split)
    """Return 4 on on-demand and 8 on spot, of which Karmada's write leaves so many."""
    starts = fields.pop("starts", StartTimes())
    of = source(asked, karmada_generation=generation, **fields)
    return observation(
        of,
        split=split(followed=followed, starts=starts),
        on_demand=twin(Pool.ON_DEMAND, pods(4)),
        spot=twin(Pool.SPOT, tuple(replace(one, on_spot=True) for one in pods(8))),
    )


def planned(observed: Observation) -> Plan:
    """Return what one reconcile does; the base is 4."""
    rules = Rules()
    in_force = policy_in_force(observed, replace(rules.defaults, on_demand_base=4))
    return plan(observed, in_force, rendered(), rules)


def divided(observed: Observation) -> int:
    """Return how many replicas are divided."""
    made = planned(observed)
    return made.wanted_on_demand + made.wanted_spot


class TestAMove:
    """The count falls, and Karmada's generation stays."""

    def test_is_followed_later(self) -> None:
        """All replicas stay, people read why and until when, and it is looked at again then."""
        made = planned(moving(8))
        assert made.wanted_on_demand + made.wanted_spot == 12
        assert not made.actions
        [note] = [one for one in made.advice if one.reason is Reason.LINGERING]
        assert note.message == (
            "4 of 12 replicas stay until 10:00:30Z: Karmada moves them to another cluster, and their"
            " successors there may not be ready yet"
        )
        assert made.followed == FollowedCount(12, 8, "2", NOW + timedelta(seconds=30))
        assert made.requeue_after_s is not None
        assert made.requeue_after_s <= 30.0

    def test_is_not_told_to_karmada(self) -> None:
        """Which may take the sum of what its members count for what is asked of all."""
        made = planned(moving(8, by_karmada=True))
        assert made.shown is not None
        assert made.shown.message.startswith("8 of 8 replicas are available (replicas=8 updated=8 ready=8 ")

    def test_has_an_end(self) -> None:
        """After that the count is followed."""
        over = FollowedCount(12, 8, "2", ago(0))
        assert divided(moving(8, over)) == 8
        assert planned(moving(8, over)).followed == FollowedCount(8, 8, "2")

    def test_of_more_begins_again(self) -> None:
        """Each part has its time; what is looked at twice has not."""
        under_way = FollowedCount(12, 8, "2", NOW + timedelta(seconds=10))
        again, more = planned(moving(8, under_way)).followed, planned(moving(6, under_way)).followed
        assert again is not None
        assert again.until == NOW + timedelta(seconds=10)
        assert more is not None
        assert more.until == NOW + timedelta(seconds=30)

    def test_that_is_taken_back(self) -> None:
        """As many as there are, or more, are followed at once."""
        under_way = FollowedCount(12, 8, "2", NOW + timedelta(seconds=10))
        assert planned(moving(12, under_way)).followed == FollowedCount(12, 12, "2")
        assert divided(moving(14, under_way)) == 14

    def test_lasts_as_long_as_starts_need(self) -> None:
        """One and a half of the learned start, which may be no shorter elsewhere."""
        followed = planned(moving(8, starts=KNOWN)).followed
        assert followed is not None
        assert followed.until == NOW + timedelta(seconds=90)

    @pytest.mark.parametrize(("said", "until_s"), [("10s", 10), ("5m", 300)])
    def test_lasts_as_long_as_is_said(self, said: str, until_s: int) -> None:
        """The annotation wins over what was learned."""
        followed = planned(moving(8, starts=KNOWN, annotations={"splitter.io/linger": said})).followed
        assert followed is not None
        assert followed.until == NOW + timedelta(seconds=until_s)


class TestNoMove:
    """What is followed at once."""

    def test_a_person_scales(self) -> None:
        """In Karmada's control plane: its generation is another."""
        assert divided(moving(8, generation="3")) == 8

    def test_it_is_switched_off(self) -> None:
        """By the annotation, also in the middle."""
        under_way = FollowedCount(12, 8, "2", NOW + timedelta(seconds=10))
        off = {"splitter.io/linger": "0s"}
        assert divided(moving(8, under_way, annotations=off)) == 8

    def test_karmada_does_not_manage_it(self) -> None:
        """Nothing is remembered then, and what was is forgotten."""
        observed = moving(8, generation="")
        assert divided(observed) == 8
        assert planned(observed).followed == NOTHING_FOLLOWED

    def test_nothing_is_known_yet(self) -> None:
        """Who takes it over first sees one count."""
        assert divided(moving(8, NOTHING_FOLLOWED)) == 8


class TestATenant:
    """Whoever may write a Split's status."""

    def test_asks_for_no_more_than_there_is(self) -> None:
        """A count that was never there is not asked for."""
        assert divided(moving(8, FollowedCount(2**31 - 1, 8, "2", NOW + timedelta(seconds=9)))) == 12

    def test_holds_nothing_for_ever(self) -> None:
        """An end in a year is one after the linger."""
        far = FollowedCount(12, 8, "2", NOW + timedelta(days=365))
        followed = planned(moving(8, far)).followed
        assert followed is not None
        assert followed.until == NOW + timedelta(seconds=30)
