"""What is counted for a decision: by when the doomed have to be let go, and who is dead."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, ago, pod, pods, replica_set, source, split, twin
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation
from splitter.core.reasons import Reason
from splitter.core.rebalance import RebalanceInput
from splitter.core.rebalance.inputs import rebalance_input
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.split_status import RebalanceState

UNREMEMBERED = RebalanceState()


def counted(*doomed: Replica, memory: RebalanceState = UNREMEMBERED) -> RebalanceInput:
    """Count a workload with these pods, on spot or beside four on on-demand."""
    cheap, dear = ([one for one in doomed if one.on_spot is on_spot] for on_spot in (True, False))
    itself, spot = source(), twin(Pool.SPOT, cheap)
    on_demand = twin(Pool.ON_DEMAND, (*pods(4), *dear))
    known = split(rebalance=memory)
    observed = Observation(itself.key, NOW, itself, known, on_demand=on_demand, spot=spot)
    return rebalance_input(observed, itself, on_demand, spot, Policy())


def doomed(name: str, **fields: Any) -> Replica:  # noqa: ANN401 (fields of a pod)
    """Return a pod on a node that has a notice."""
    return pod(name, NodeStatus.DOOMED, on_spot=True, **fields)


class TestStop:
    """The earliest of all doomed replicas counts."""

    @pytest.mark.parametrize(
        ("notice_s", "termination_s", "after_s"), [(120.0, 30, 90), (30.0, 30, 0), (30.0, 60, -30)]
    )
    def test_by_the_length_of_the_notice(self, notice_s: float, termination_s: int, after_s: float) -> None:
        """Less what a pod is given to end."""
        result = counted(
            doomed("a", notice_s=notice_s, termination_s=termination_s), doomed("b", notice_s=900.0)
        )
        assert (result.spot_stop_after_s, result.spot_stop_at) == (after_s, None)

    def test_by_the_deadline(self) -> None:
        """Where a node tells one the provider's length does not count."""
        late = NOW + timedelta(seconds=100)
        result = counted(
            doomed("a", deadline=late, notice_s=30.0), doomed("b", deadline=late + timedelta(hours=1))
        )
        assert result.spot_stop_at == late - timedelta(seconds=30)
        assert result.spot_stop_after_s is None

    def test_nobody_takes_it_away(self) -> None:
        """A node that goes by somebody's choice."""
        result = counted(doomed("a", voluntary=True))
        assert (result.spot_stop_at, result.spot_stop_after_s) == (None, None)


class TestMembers:
    """Of a StatefulSet: the highest ordinals go first, and a name is free when its member has ended."""

    def counted(self, *spot: Replica, replicas: int = 10) -> RebalanceInput:
        """Count one whose spot twin has these members, beside four on on-demand."""
        itself = source(replicas)
        of_spot = replace(twin(Pool.SPOT, spot, spec=len(spot)), first_ordinal=1000)
        on_demand = twin(Pool.ON_DEMAND, pods(4))
        observed = Observation(itself.key, NOW, itself, split(), on_demand=on_demand, spot=of_spot)
        return rebalance_input(observed, itself, on_demand, of_spot, Policy())

    def member(self, ordinal: int, status: NodeStatus = NodeStatus.SOUND, **fields: object) -> Replica:
        """Return a member on spot."""
        return pod(f"db-spot-{ordinal}", status, ordinal=ordinal, on_spot=True, **fields)  # type: ignore[arg-type]

    @pytest.mark.parametrize(("below", "above", "pinned"), [(1, 0, 1), (0, 1, 0), (2, 2, 2), (2, 0, 2)])
    def test_the_doomed_below_one_that_stands(self, below: int, above: int, pinned: int) -> None:
        """They cannot be let go without it."""
        doomed = [self.member(1000 + n, NodeStatus.DOOMED) for n in range(below)]
        stands = self.member(1000 + below)
        top = [self.member(1001 + below + n, NodeStatus.DOOMED) for n in range(above)]
        result = self.counted(*doomed, stands, *top)
        assert (result.spot_pinned, result.spot_doomed) == (pinned, below + above)

    def test_the_doomed_between_two_that_stand(self) -> None:
        """It is the highest that counts."""
        members = (self.member(1000), self.member(1001, NodeStatus.DOOMED), self.member(1002))
        assert self.counted(*members).spot_pinned == 1

    def test_the_silent_hold_their_names(self) -> None:
        """Asked to end or not; after as long as any pod is dead, and no sooner."""
        dead = {"ready": False, "unready_since": ago(361)}
        asked = self.member(1000, NodeStatus.LOST, terminating=True, **dead)
        tolerant = self.member(1001, NodeStatus.LOST, **dead)
        young = self.member(1002, NodeStatus.LOST, ready=False, unready_since=ago(300))
        result = self.counted(asked, tolerant, young)
        assert (result.spot_dead, result.spot_silent) == (2, 0)
        assert self.counted(asked, tolerant, young, replicas=1).spot_dead == 1, "beside N of them at most"

    def test_who_cannot_reach_a_volume_holds_a_name(self) -> None:
        """On on-demand it is replaced as the doomed are, and is no sign that on-demand nodes are short."""
        elsewhere = Trouble(Reason.VOLUME_ZONE_CONFLICT, "")
        waits: dict[str, Any] = {"trouble": elsewhere, "unschedulable_since": ago(3600), "ready": False}
        assert self.counted(self.member(1000, NodeStatus.UNBOUND, **waits)).spot_dead == 1
        itself = source()
        members = (pod("db-0", NodeStatus.UNBOUND, ordinal=0, **waits), pod("db-1", ordinal=1))
        on_demand = replace(twin(Pool.ON_DEMAND, members, spec=2), first_ordinal=0)
        spot = replace(twin(Pool.SPOT), first_ordinal=1000)
        observed = Observation(itself.key, NOW, itself, split(), on_demand=on_demand, spot=spot)
        result = rebalance_input(observed, itself, on_demand, spot, Policy())
        assert (result.on_demand_doomed, result.on_demand_held, result.on_demand_stuck) == (1, 1, 0)

    @pytest.mark.parametrize(("asked_s", "rolled", "held"), [(59, False, 0), (60, False, 1), (60, True, 0)])
    def test_who_is_slow_to_end_holds_a_name(self, asked_s: float, *, rolled: bool, held: int) -> None:
        """By what its user lets it take, or for ever; not one that a roll ends."""
        ends = pod("db-0", ordinal=0, terminating=True, terminating_since=ago(asked_s))
        current = twin(Pool.ON_DEMAND, (pod("db-1", ordinal=1), *(() if rolled else (ends,))), spec=2)
        older = (replica_set("v0", 0, [ends], template="v0"),) if rolled else ()
        on_demand = replace(current, first_ordinal=0, replica_sets=(*current.replica_sets, *older))
        itself, spot = source(), replace(twin(Pool.SPOT), first_ordinal=1000)
        observed = Observation(itself.key, NOW, itself, split(), on_demand=on_demand, spot=spot)
        assert rebalance_input(observed, itself, on_demand, spot, Policy()).on_demand_held == held

    def test_who_is_drained_slowly_is_made_up_for_once(self) -> None:
        """It is on a node that goes, and asked to end."""
        drained = pod("db-0", NodeStatus.DOOMED, ordinal=0, terminating=True, terminating_since=ago(600))
        on_demand = replace(twin(Pool.ON_DEMAND, (drained, pod("db-1", ordinal=1)), spec=2), first_ordinal=0)
        itself, spot = source(), replace(twin(Pool.SPOT), first_ordinal=1000)
        observed = Observation(itself.key, NOW, itself, split(), on_demand=on_demand, spot=spot)
        result = rebalance_input(observed, itself, on_demand, spot, Policy())
        assert (result.on_demand_doomed, result.on_demand_held) == (1, 0)


class TestSilent:
    """Pods on nodes that say nothing, where nobody removes them."""

    @pytest.mark.parametrize(("since_s", "count"), [(359, 0), (361, 1)])
    def test_for_longer_than_kubernetes_leaves_them(self, since_s: float, count: int) -> None:
        """Five minutes, unless a pod tolerates it for longer."""
        lost = pod("a", NodeStatus.LOST, on_spot=True, ready=False, unready_since=ago(since_s))
        assert counted(lost).spot_silent == count

    @pytest.mark.parametrize(
        ("lost_s", "since_s", "count"),
        [(10, 3600, 0), (361, 3600, 1), (1361, 361, 0), (1361, 680, 0), (1361, 681, 1), (10**7, 86_401, 1)],
    )
    def test_no_longer_than_their_node(self, lost_s: float, since_s: float, count: int) -> None:
        """What never was ready is as dead as its node; what was bound to a dead one waits as long again."""
        lost = pod("a", NodeStatus.LOST, on_spot=True, ready=False, unready_since=ago(since_s))
        assert counted(lost, memory=RebalanceState(last_loss=ago(lost_s))).spot_silent == count

    @pytest.mark.parametrize("fields", [{"vanished": True}, {"terminating": True}])
    def test_somebody_removes_them(self, fields: dict[str, Any]) -> None:
        """Those of a Node that is gone, and those that are asked to end."""
        lost = pod("a", NodeStatus.LOST, on_spot=True, ready=False, unready_since=ago(999), **fields)
        assert counted(lost).spot_silent == 0


class TestLate:
    """Pods that were made when others of them were doomed already."""

    @pytest.mark.parametrize(
        ("made_s", "since_s", "count"), [(60, 61, 1), (61, 60, 0), (60, 60, 1), (60, None, 0), (None, 60, 0)]
    )
    def test_by_when_the_first_was_seen(
        self, made_s: float | None, since_s: float | None, count: int
    ) -> None:
        """In the same second is later; unknown is not."""
        made, since = (ago(one) if one is not None else None for one in (made_s, since_s))
        going = pod("a", NodeStatus.DOOMED, on_spot=False, created=made)
        seen = counted(going, memory=RebalanceState(on_demand_doomed_since=since))
        assert (seen.on_demand_doomed, seen.on_demand_late) == (1, count)

    def test_on_a_sound_node(self) -> None:
        """Nobody is late there."""
        sound = pod("a", NodeStatus.SOUND, on_spot=False, created=ago(1))
        assert counted(sound, memory=RebalanceState(on_demand_doomed_since=ago(60))).on_demand_late == 0


def test_the_doomed_stand_for_nobody() -> None:
    """Of three that are ready the status admits two, the doomed one too: the other is not yet available."""
    itself, spot = source(), twin(Pool.SPOT)
    of = (pod("old"), pod("going", NodeStatus.DOOMED), pod("young", ready_since=ago(1)))
    on_demand = twin(Pool.ON_DEMAND, of, available_replicas=2)
    observed = Observation(itself.key, NOW, itself, split(), on_demand=on_demand, spot=spot)
    assert rebalance_input(observed, itself, on_demand, spot, Policy()).on_demand_ready == 1
