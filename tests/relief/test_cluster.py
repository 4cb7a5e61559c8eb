"""What a reconcile knows, as relief looks at it: what replicas ask for, and with whom they are spread."""

from dataclasses import replace

import pytest

from builders import ago, observation, pod, pods, replica_set, twin, twin_of
from cpu import cpu_below
from splitter.core.model import Attachment
from splitter.core.nodes.fit import MatchExpression, SpreadConstraint
from splitter.core.relief.model import Amounts
from splitter.core.replica import NodeStatus, Pool
from splitter.relief.cluster import amounts_of, replica_loads, spread_loads
from splitter.relief.loads import Qos

OF_WEB = (MatchExpression("app", "In", ("web",)),)
BY_ZONE = SpreadConstraint("zone", 1, strict=False, selector=OF_WEB)


class TestReplicas:
    def test_are_those_of_both_twins_that_count(self) -> None:
        """One that ends is none of them; one without a node stands nowhere."""
        ends, waits = pod("ends", terminating=True), pod("waits", NodeStatus.UNBOUND)
        seen = observation(on_demand=twin(Pool.ON_DEMAND, pods(1)), spot=twin(Pool.SPOT, [ends, waits]))
        assert [(one.pod, one.pool, one.node) for one in replica_loads(seen)] == [
            ("ready-0", Pool.ON_DEMAND, "node-1"),
            ("waits", Pool.SPOT, ""),
        ]

    @pytest.mark.parametrize(
        ("fields", "ready"),
        [
            ({"ready_since": ago(9)}, True),
            ({"ready_since": None}, False),
            ({"node_status": NodeStatus.DOOMED}, False),
        ],
    )
    def test_are_ready_on_nodes_that_stay(self, fields: dict[str, object], *, ready: bool) -> None:
        """What goes anyway is not moved."""
        one = replace(pod("web"), **fields)  # type: ignore[arg-type]
        (load,) = replica_loads(observation(spot=twin(Pool.SPOT, [one])))
        assert (load.ready_since is not None) is ready

    def test_that_ask_for_nothing_go_before_those_that_do(self) -> None:
        """Of the same priority: by the QoS class, as far as requests tell it."""
        asks = pod("asks", requests=(("cpu", 250), ("memory", 1024), ("pods", 1)), priority=7)
        loads = {
            one.pod: one for one in replica_loads(observation(spot=twin(Pool.SPOT, [asks, pod("none")])))
        }
        assert (loads["asks"].requests, loads["asks"].priority) == (Amounts(250, 1024), 7)
        assert (loads["asks"].qos, loads["none"].qos) == (Qos.BURSTABLE, Qos.BEST_EFFORT)
        assert amounts_of({"gpu": 1}) == Amounts()


class TestSpreads:
    def test_count_whom_their_selector_counts(self) -> None:
        """In both twins, where both bear the labels; each is borne by the pods of its own ReplicaSet."""
        seen = observation(
            on_demand=twin(Pool.ON_DEMAND, [pod("a")]),
            spot=twin(Pool.SPOT, [pod("b"), pod("ends", terminating=True)]),
        )
        ((pool, load),) = spread_loads(seen, {Pool.SPOT: (BY_ZONE,)})
        assert (pool, load.constraint) == (Pool.SPOT, BY_ZONE)
        assert load.pods == {"uid-b"}
        assert load.counted == {"uid-a", "uid-b"}

    def test_of_a_revision_count_that_revision_where_they_ask_so(self) -> None:
        """By matchLabelKeys: in a roll the old ones are others."""
        old = replica_set("web-spot-1", of=[pod("old")], attachment=Attachment.ATTACHED)
        new = replica_set("web-spot-2", of=[pod("new")], attachment=Attachment.ATTACHED)
        empty = replica_set("web-spot-0", attachment=Attachment.ATTACHED)
        seen = observation(spot=twin_of(Pool.SPOT, [empty, old, new], updated=1))
        alike = replace(BY_ZONE, label_keys=("pod-template-hash",))
        counted = [
            (set(load.pods), set(load.counted)) for _, load in spread_loads(seen, {Pool.SPOT: (alike,)})
        ]
        assert counted == [({"uid-old"}, {"uid-old"}), ({"uid-new"}, {"uid-new"})]
        both = [load.counted for _, load in spread_loads(seen, {Pool.SPOT: (BY_ZONE,)})]
        assert both == [{"uid-old", "uid-new"}] * 2

    def test_of_many_revisions(self) -> None:
        """400 revisions, and constraints whose selectors nothing ends early: the cost is their sum."""
        absent = tuple(MatchExpression(f"absent-{number}", "DoesNotExist") for number in range(250))
        constraints = tuple(replace(BY_ZONE, selector=(*absent, *OF_WEB)) for _ in range(4))
        sets = [
            replace(
                replica_set(f"web-{number}", of=pods(1), attachment=Attachment.ATTACHED),
                template_labels={"app": "web", "pod-template-hash": str(number)},
            )
            for number in range(400)
        ]
        seen = observation(spot=twin_of(Pool.SPOT, sets, updated=1))
        with cpu_below(1.0):
            spreads = spread_loads(seen, {Pool.SPOT: constraints})
        assert (len(spreads), {len(load.counted) for _, load in spreads}) == (1600, {1})

    def test_of_nobody_are_none(self) -> None:
        """A twin that asks for none, and one without pods."""
        seen = observation(on_demand=twin(Pool.ON_DEMAND, pods(1)), spot=twin(Pool.SPOT))
        assert spread_loads(seen, {Pool.SPOT: (BY_ZONE,)}) == ()
