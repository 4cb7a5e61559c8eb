"""What others are at holds one workload up for a while, and never for ever."""

from dataclasses import replace

import pytest

from builders import observation, pods, twin
from splitter.core.labels_annotations.policy import Policy
from splitter.core.names import Key
from splitter.core.replica import Pool
from splitter.reconciler.others import KEPT_S, RESERVED_S, TURN_S, Others
from splitter.reconciler.ranking import Ranking

A, B, C = (Key("Deployment", "shop", name) for name in "abc")


class Clock:
    """A clock that is set."""

    now_s = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def test_turns(clock: Clock) -> None:
    """A workload counts for others while it is moved, and never for itself."""
    others = Others(10, clock, Ranking())
    others.moves(A, still=True)
    others.moves(B, still=True)
    assert [others.moving(key) for key in (A, B, C)] == [1, 1, 2]
    others.moves(B, still=False)
    assert [others.moving(key) for key in (A, B, C)] == [0, 1, 1]
    assert (others.has_turn(A), others.has_turn(B)) == (True, False)


def test_a_turn_ends(clock: Clock) -> None:
    """Who does not get on is at it still, and others need not wait; nor does it begin anew by going on."""
    others = Others(10, clock, Ranking())
    others.moves(A, still=True)
    clock.now_s += TURN_S / 2
    others.moves(A, still=True)
    others.moves(B, still=True)
    assert others.moving(C) == 2
    clock.now_s += TURN_S / 2
    assert others.moving(C) == 1
    assert others.has_turn(A)


def test_who_waits_is_woken_by_namespace(clock: Clock) -> None:
    """A turn that is free goes to one of each namespace after the other, whoever came in between."""
    others = Others(2, clock, Ranking())
    many = [Key("Deployment", "many", str(number)) for number in range(5)]
    few = Key("Deployment", "few", "0")
    for key in (A, B):
        others.moves(key, still=True)
    for key in (*many, few, many[0]):  # who asks again keeps its place
        others.moves(key, still=False, waits=True)
    assert others.grant_turns() == []
    others.moves(A, still=False)
    assert others.grant_turns() == [many[0]]
    assert others.grant_turns() == []
    assert others.moving(C) == 2  # it is kept for the one that was woken
    others.moves(many[0], still=True)
    others.moves(B, still=False)
    assert others.grant_turns() == [few]
    assert others.next_turn() == (many[1], KEPT_S)


def test_a_turn_is_not_kept_for_ever(clock: Clock) -> None:
    """Whose reconcile fails, and whose move does not get on: the next one's turn comes by time."""
    others = Others(1, clock, Ranking())
    others.moves(A, still=True)
    others.moves(B, still=False, waits=True)
    others.moves(C, still=False, waits=True)
    clock.now_s += TURN_S - 5
    assert others.next_turn() == (B, 5)
    clock.now_s += 5
    assert others.grant_turns() == [B]
    assert others.next_turn() == (C, KEPT_S)
    clock.now_s += KEPT_S
    assert others.grant_turns() == [C]


def test_the_first_by_rank_is_woken_first(clock: Clock) -> None:
    """Whoever asked first; and the priority of pods counts before that."""
    ranking = Ranking()
    for key, priority, rank in ((A, 0, 500), (B, 0, 2), (C, 1000, 900)):
        on_spot = [replace(pod, priority=priority) for pod in pods(2)]
        observed = observation(on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT, on_spot))
        ranking.saw(replace(observed, key=key), Policy(rank=rank))
    others = Others(1, clock, ranking)
    for key in (A, B, C):
        others.moves(key, still=False, waits=True)
    woken = []
    while one := others.grant_turns():
        woken += one
        others.moves(one[0], still=False)
    assert woken == [C, B, A]


@pytest.mark.parametrize("asks_again", [False, True])
def test_a_priority_starves_no_other_namespace(clock: Clock, *, asks_again: bool) -> None:
    """200 stuck workloads of two namespaces with the highest class: others have every second turn."""
    ranking = Ranking()
    stuck = [Key("Deployment", f"evil-{number % 2}", str(number)) for number in range(200)]
    on_spot = [replace(pod, priority=2_000_000_000) for pod in pods(1)]
    seen = observation(on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT, on_spot))
    for key in stuck:
        ranking.saw(replace(seen, key=key), Policy())
    others = Others(1, clock, ranking)
    for key in (*stuck, A, B):
        others.moves(key, still=False, waits=True)
    granted: list[Key] = []
    while len(granted) < 12:
        for key in others.grant_turns():
            granted.append(key)
            others.moves(key, still=True)
        clock.now_s += TURN_S
        if asks_again and granted[-1] in stuck:
            others.moves(granted[-1], still=False, waits=True)
    assert granted[0] in stuck  # the priority decides still
    assert granted.index(A) < 6
    assert granted.index(B) < 12


def test_who_waits_no_more_is_not_woken(clock: Clock) -> None:
    """Its label has gone meanwhile."""
    others = Others(1, clock, Ranking())
    others.moves(A, still=False, waits=True)
    others.moves(A, still=False)
    assert (others.grant_turns(), others.next_turn()) == ([], None)


def test_reservations(clock: Clock) -> None:
    """What was given away counts for others, for as long as its pods may not be bound."""
    others = Others(10, clock, Ranking())
    others.reserve_spot(A, 3, fits=10)
    others.reserve_spot(B, 2, fits=10)
    others.reserve_spot(B, -4, fits=10)
    assert [others.reserved(key) for key in (A, B, C)] == [2, 3, 5]
    clock.now_s += RESERVED_S + 1
    assert others.reserved(C) == 0


def test_reservations_are_bounded_by_the_headroom(clock: Clock) -> None:
    """Whoever asks for more than fits, or up and down again and again, takes what fits and no more."""
    others = Others(10, clock, Ranking())
    others.reserve_spot(A, 2_000_000_000, fits=5)
    assert others.reserved(B) == 5
    for _ in range(100):
        clock.now_s += RESERVED_S / 1000
        others.reserve_spot(A, 1000, fits=5)
    assert others.reserved(B) == 5
    others.reserve_spot(A, 1000, fits=7)
    assert others.reserved(B) == 7
    clock.now_s += RESERVED_S + 1
    others.reserve_spot(A, 1000, fits=4)
    assert others.reserved(B) == 4
