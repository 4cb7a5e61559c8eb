"""One batch of a hand-over at a time: who grows, who shrinks, and when nobody may."""

from dataclasses import replace
from typing import Any

from builders import ago, observation, pod, pods, replica_set, source, twin, twin_of
from holding import lags
from splitter.core.actions import HolderKind, Scale
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation
from splitter.core.replica import NodeStatus, Pool
from splitter.core.twins import replica_moves

HALF = Policy(on_demand_base=2, spot_percent=80)  # 10 -> 4 + 6


def pair(on_demand: int = 0, spot: int = 0) -> dict[str, Any]:
    """Return both twins with so many ready replicas."""
    return {
        "on_demand": twin(Pool.ON_DEMAND, pods(on_demand)),
        "spot": twin(Pool.SPOT, pods(spot)),
    }


def moves(value: replica_moves.Transfer) -> dict[str, int]:
    """Return name -> new count."""
    return {scale.name: scale.replicas for scale in value.scales}


def towards_twins(observed: Observation, policy: Policy = HALF) -> dict[str, int]:
    """Return the batch towards the twins."""
    assert observed.source is not None
    return moves(replica_moves.towards_twins(observed, observed.source, policy, cover=0))


class TestLags:
    """Whether a lowering from 10 to 7 has reached the pods: what goes up meanwhile would be beyond N + S."""

    ENDING = tuple(pod(f"ending-{number}", terminating=True) for number in range(3))

    def test_the_replica_set_has_not_heard_of_it(self) -> None:
        """Only the Deployment has been lowered."""
        assert lags(twin(Pool.ON_DEMAND, pods(10), spec_replicas=7))

    def test_the_pods_are_still_there(self) -> None:
        """Its ReplicaSet has been lowered, and its controller has deleted none or some."""
        assert lags(twin(Pool.ON_DEMAND, pods(10), spec=7))
        assert lags(twin(Pool.ON_DEMAND, (*pods(8), *self.ENDING[:2]), spec=7))

    def test_pods_are_seen_to_end(self) -> None:
        """What two controllers have yet to write into the status is no news."""
        seen = twin(Pool.ON_DEMAND, (*pods(7), *self.ENDING), spec=7, status_replicas=10)
        assert not lags(seen)

    def test_of_pods_that_nobody_has_seen_the_status_tells(self) -> None:
        """Some may not have come through the watch yet."""
        assert lags(twin(Pool.ON_DEMAND, pods(7), spec=7, status_replicas=10))
        known = twin(Pool.ON_DEMAND, (*pods(7), *self.ENDING), spec=7, status_replicas=11)
        assert lags(known)

    def test_a_member_is_there_until_it_has_ended(self) -> None:
        """A StatefulSet counts it, and waits for it."""
        seen = twin(Pool.ON_DEMAND, (*pods(7), *self.ENDING), spec=7, status_replicas=10, first_ordinal=0)
        assert lags(seen)


class TestTowardsTheTwins:
    """Taking over: MAKE, else BREAK."""

    def test_on_demand_is_made_first_within_the_surge(self) -> None:
        """10 parked, S = 3: three on-demand replicas."""
        assert towards_twins(observation(sets=[replica_set(of=pods(10))], **pair())) == {"web-on-demand": 3}

    def test_nothing_is_broken_before_what_was_made_is_available(self) -> None:
        """The three are there and not ready: wait."""
        starting = {**pair(), "on_demand": twin(Pool.ON_DEMAND, pods(starting=3))}
        assert towards_twins(observation(sets=[replica_set(of=pods(10))], **starting)) == {}

    def test_then_as_many_parked_ones_go(self) -> None:
        """Thirteen available, ten are needed."""
        observed = observation(sets=[replica_set(of=pods(10))], **pair(on_demand=3))
        assert towards_twins(observed) == {"web-1": 7}

    def test_without_surge_it_breaks_first(self) -> None:
        """S = 0, U = 2: down to the floor N - U, then make."""
        flat = source(max_surge=0)
        assert towards_twins(observation(flat, [replica_set(of=pods(10))], **pair())) == {"web-1": 8}
        assert towards_twins(observation(flat, [replica_set(of=pods(8))], **pair())) == {"web-on-demand": 2}

    def test_doomed_replicas_are_replaced_on_demand_at_once(self) -> None:
        """Room grows by what goes, wherever it runs."""
        parked = replica_set(of=pods(6, doomed=4))
        assert towards_twins(observation(sets=[parked], **pair())) == {"web-on-demand": 7}

    def test_spot_that_stays_short_is_covered(self) -> None:
        """So that taking over always ends."""
        short = {**pair(on_demand=4), "spot": twin(Pool.SPOT, pods(stuck=6))}
        observed = observation(sets=[replica_set(of=pods(6))], **short)
        assert towards_twins(observed)["web-on-demand"] == 7

    def test_on_demand_max_is_kept(self) -> None:
        """Cover stops at the user's bound."""
        policy = Policy(on_demand_base=2, spot_percent=80, on_demand_max=5)
        parked = replica_set(of=pods(6, doomed=4))
        assert towards_twins(observation(sets=[parked], **pair()), policy)["web-on-demand"] == 5

    def test_the_oldest_parked_one_goes_first(self) -> None:
        """An intruder is the youngest and may have the better image; the order is that of H56."""
        old = replica_set("web-old", of=pods(5), age_s=99)
        young = replica_set("web-young", of=pods(5), age_s=9)
        assert towards_twins(observation(sets=[young, old], **pair(4, 0))) == {"web-old": 1}

    def test_no_replicas_wanted_empties_everything(self) -> None:
        """N = 0: no floor, no target."""
        observed = observation(source(0), [replica_set(of=pods(2))], **pair(1, 1))
        assert towards_twins(observed) == {"web-1": 0, "web-on-demand": 0, "web-spot": 0}


class TestLagging:
    """A lowering has reached the pods, or not yet: what takes their place waits."""

    def test_of_a_statefulset_that_has_not_seen_it(self) -> None:
        """All its pods look as if they were of another revision, and it has no surge."""
        old = replica_set("db-on-demand-1", of=pods(6), attachment=Attachment.ATTACHED, template="v0")
        lowered = twin_of(Pool.ON_DEMAND, [old], updated=0, spec_replicas=3, observed=False, first_ordinal=0)
        assert lags(lowered)
        assert not lags(replace(lowered, spec_replicas=6))

    def test_a_surge_is_no_lag(self) -> None:
        """In a roll a Deployment holds maxSurge more than its spec, and no more than that."""
        sets = [
            replica_set("a", of=pods(4), attachment=Attachment.ATTACHED, template="v0"),
            replica_set("b", of=pods(starting=2), attachment=Attachment.ATTACHED),
        ]
        rolling = twin_of(Pool.SPOT, sets, updated=2, spec_replicas=4, max_surge=2)
        assert not lags(rolling)
        assert lags(replace(rolling, spec_replicas=3))


class TestCover:
    """What on-demand holds for spot that was lost, in the middle of taking over."""

    def test_it_is_not_withdrawn_when_the_lost_pods_are_gone(self) -> None:
        """Nothing tells of the loss any more but what is remembered."""
        observed = observation(sets=[replica_set(of=pods(4))], **pair(9, 0))
        assert observed.source is not None
        [kept] = replica_moves.towards_twins(observed, observed.source, HALF, cover=6).scales
        assert (kept.name, kept.replicas) == ("web-1", 1)

    def test_what_is_doomed_and_what_is_covered_are_the_same(self) -> None:
        """Six lost on spot are six more on on-demand, not twelve."""
        doomed = twin(Pool.SPOT, pods(doomed=6))
        observed = observation(sets=[replica_set(of=pods(4))], on_demand=twin(Pool.ON_DEMAND), spot=doomed)
        assert observed.source is not None
        [raised] = replica_moves.towards_twins(observed, observed.source, HALF, cover=6).scales
        assert (raised.name, raised.replicas) == ("web-on-demand", 9)

    def test_members_of_vanished_nodes_make_room_once(self) -> None:
        """They hold their names until they are removed: 7 at home, 3 gone, 6 more within N + S and them."""
        gone = {"vanished": True, "on_spot": True}
        lost = [pod(f"db-{k}", NodeStatus.LOST, ordinal=1000 + k, **gone) for k in range(3)]
        home = [pod(f"db-{k}", ordinal=k) for k in range(7)]
        itself = replace(replica_set("db", of=home, attachment=Attachment.PARKED), first_ordinal=0)
        on_demand = replace(twin(Pool.ON_DEMAND), first_ordinal=0)
        spot = replace(twin(Pool.SPOT, lost), first_ordinal=1000)
        observed = observation(sets=[itself], on_demand=on_demand, spot=spot)
        assert towards_twins(observed)["web-on-demand"] == 6


class TestPreconditions:
    """Who lowers says what it has seen."""

    def test_a_raise_carries_none_and_a_lowering_the_version(self) -> None:
        """A replica that became ready in between would be deleted."""
        raised = replica_moves.towards_twins(
            observation(sets=[replica_set(of=pods(10))], **pair()), source(), HALF, cover=0
        )
        assert raised.scales == (Scale(HolderKind.DEPLOYMENT, "web-on-demand", 0, 3, None),)
        observed = observation(sets=[replica_set(of=pods(10))], **pair(on_demand=3))
        lowered = replica_moves.towards_twins(observed, source(), HALF, cover=0)
        assert lowered.scales == (Scale(HolderKind.REPLICA_SET, "web-1", 10, 7, "rv-web-1"),)


class TestTowardsTheSource:
    """Giving a StatefulSet back: the mirror image, to exactly N."""

    def test_it_grows_within_the_surge(self) -> None:
        """Ten on the twins: three of the source's own first."""
        observed = observation(sets=[replica_set(spec=0)], **pair(4, 6))
        assert moves(replica_moves.towards_source(observed, source(), 180.0)) == {"web-1": 3}

    def test_spot_goes_before_on_demand(self) -> None:
        """The safe half serves longest."""
        observed = observation(sets=[replica_set(of=pods(3))], **pair(4, 6))
        assert moves(replica_moves.towards_source(observed, source(), 180.0)) == {"web-spot": 3}


class TestDrain:
    """Beside a source that runs its own replicas again."""

    def test_all_of_ours_goes_when_the_source_has_n(self) -> None:
        """The source's own count as others' available."""
        own = replica_set("web-2", of=pods(10), attachment=Attachment.ATTACHED)
        observed = observation(sets=[own], **pair(4, 6))
        assert moves(replica_moves.drain(observed, source(paused=False))) == {
            "web-on-demand": 0,
            "web-spot": 0,
        }

    def test_a_source_in_its_own_roll_counts_the_least(self) -> None:
        """Its controller may take U away without asking us."""
        own = [
            replica_set("web-2", of=pods(8), attachment=Attachment.ATTACHED),
            replica_set("web-3", of=pods(2), attachment=Attachment.ATTACHED),
        ]
        observed = observation(sets=own, **pair(0, 6))
        assert moves(replica_moves.drain(observed, source(paused=False))) == {"web-spot": 2}

    def test_a_source_that_is_being_scaled_down_may_keep_its_doomed(self) -> None:
        """Eight ready, six of them doomed, two to stay: nobody knows which (found by a random life)."""
        own = replica_set("web-2", spec=2, of=pods(2, doomed=6), attachment=Attachment.ATTACHED)
        observed = observation(sets=[own, replica_set(of=pods(1))], **pair())
        small = source(2, paused=False)
        assert moves(replica_moves.drain(observed, small)) == {}
        calm = observation(
            sets=[replica_set("web-2", of=pods(2), attachment=Attachment.ATTACHED), replica_set(of=pods(1))],
            **pair(),
        )
        assert moves(replica_moves.drain(calm, small)) == {"web-1": 0}


class TestLoweringWhatDecideLowers:
    """`decide` takes what is not ready for free; here is what it cannot know."""

    def test_a_ready_replica_that_no_status_shows_is_not_free(self) -> None:
        """The status comes within a moment; the replica would have been gone."""
        behind = twin(Pool.SPOT, pods(4), available_replicas=0)
        observed = observation(on_demand=twin(Pool.ON_DEMAND), spot=behind)
        assert not replica_moves.may_lower(observed, source(), {behind.name: 1}, behind)
        level = twin(Pool.SPOT, pods(4))
        assert replica_moves.may_lower(observation(source(1), spot=level), source(1), {level.name: 1}, level)

    def test_what_is_not_in_the_status_yet_beside_the_doomed(self) -> None:
        """Two are admitted, and one of them is doomed: the third is younger than `minReadySeconds`."""
        of = (*pods(1, doomed=1), pod("young", ready_since=ago(1)))
        on_demand, spot = twin(Pool.ON_DEMAND, of, available_replicas=2), twin(Pool.SPOT, pods(1))
        young = replace(on_demand.replica_sets[0], available_replicas=2)
        seen = observation(source(2), on_demand=replace(on_demand, replica_sets=(young,)), spot=spot)
        assert not replica_moves.may_lower(seen, source(2), {spot.name: 0}, spot)
        assert not replica_moves.may_lower(seen, source(2), {on_demand.name: 2}, on_demand)

    def test_scaling_in_mid_roll_may_take_the_serving_set(self) -> None:
        """Proportional scaling takes the older of two equal sets, whatever maxUnavailable says."""
        old = replica_set("web-on-demand-8", of=pods(2), attachment=Attachment.ATTACHED, template="v1")
        bad = replica_set(
            "web-on-demand-13", of=pods(starting=2), attachment=Attachment.ATTACHED, template="v2"
        )
        rolling = twin_of(
            Pool.ON_DEMAND, [old, bad], template="v2", updated=2, max_surge=0, max_unavailable=1
        )
        observed = observation(source(5), on_demand=rolling, spot=twin(Pool.SPOT, pods(3)))
        assert not replica_moves.may_lower(observed, source(5), {rolling.name: 3}, rolling)
        assert replica_moves.may_lower(observed, source(4), {rolling.name: 3}, rolling)

    def test_two_lowerings_share_one_surplus(self) -> None:
        """Either twin may give one of six beside a floor of five; both may not."""
        old = replica_set("web-on-demand-8", of=pods(2), attachment=Attachment.ATTACHED, template="v1")
        new = replica_set("web-on-demand-13", of=pods(1), attachment=Attachment.ATTACHED, template="v2")
        rolling = twin_of(Pool.ON_DEMAND, [old, new], template="v2", updated=1, max_surge=1)
        spot = twin(Pool.SPOT, pods(3))
        observed = observation(source(5), on_demand=rolling, spot=spot)
        assert replica_moves.may_lower(observed, source(5), {}, rolling)
        assert replica_moves.may_lower(observed, source(5), {rolling.name: 2}, rolling)
        assert replica_moves.may_lower(observed, source(5), {spot.name: 2}, spot)
        assert not replica_moves.may_lower(observed, source(5), {rolling.name: 2, spot.name: 2}, spot)

    def test_at_zero_looks_at_spec_and_status(self) -> None:
        """What is scaled to 0 may still have pods."""
        assert replica_moves.at_zero((), [replica_set(spec=0)])
        assert not replica_moves.at_zero((), [replica_set(spec=0, of=(pod("x", NodeStatus.SOUND),))])


class TestAStatefulSetThatIsToHaveNone:
    """Its highest member is on a node that says nothing; where it is OrderedReady the others wait for it."""

    def itself(self, spec: int) -> Observation:
        """Return one that was scaled down, whose two members have an old template and one cannot end."""
        members = (pod("db-0", ordinal=0), pod("db-1", NodeStatus.LOST, ordinal=1, terminating=True))
        held = replace(replica_set("db", spec, members), first_ordinal=0, rolls=True)
        return observation(source(5), sets=[held], **pair(on_demand=5))

    def test_rolls_nobody(self) -> None:
        """So the twins' rollout does not wait for it."""
        assert replica_moves.source_rolls(self.itself(1))
        assert not replica_moves.source_rolls(self.itself(0))

    def test_has_nobody_to_be_replaced(self) -> None:
        """Who is to go is made up for already; within the count it is replaced on on-demand."""
        assert "web-on-demand" not in towards_twins(self.itself(0), Policy(on_demand_base=5))
        assert towards_twins(self.itself(2), Policy(on_demand_base=5))["web-on-demand"] == 6
