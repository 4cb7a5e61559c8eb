"""Placeholders keep the new replica of a move off hot nodes: before the raise, and for seconds."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from builders import NOW, pod, rendered, source
from core.twins.relief_moment import DEFAULTS, MEASURED, RULES, SPOT, WANTED, WHY, Moment, begun, moment
from splitter.core.actions import CreatePlaceholder, Scale
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.model import Rendered
from splitter.core.plan import PlanInput, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import State
from splitter.core.replica import NodeStatus, Pool, Replica
from splitter.core.twins.hints import asked

KEPT_OFF = replace(WANTED, leaves=LeavingReplica("uid-web-spot-0", WHY, keep_off=("hot-1", "hot-2")))


def hint(name: str = "hot-1", **fields: object) -> Replica:
    """Return a placeholder that keeps replicas off a node."""
    made = pod(f"web-placeholder-{name}", held_for=f"relief/{name}", created=NOW)
    return replace(made, **fields)  # type: ignore[arg-type]


def hinted(**fields: object) -> Moment:
    """Return a workload of which a replica is to leave, and no new one is to come to two nodes."""
    return moment(hot=KEPT_OFF, **fields)


def spec_of(**template: object) -> dict[str, Any]:
    """Return the spec of the placeholder beside a twin with this pod spec."""
    observed = hinted().observed()
    manifest = json.dumps({"spec": {"template": {"spec": template}}})
    twins = {pool: Rendered(manifest, "v1") for pool in Pool}
    assert observed.source is not None
    this = PlanInput(observed, observed.source, policy_in_force(observed, DEFAULTS), twins, RULES)
    first, *_ = asked(this, Pool.SPOT, LeavingReplica("uid", WHY, keep_off=("hot-1",)))
    spec: dict[str, Any] = json.loads(first.spec_json)
    return spec


class TestPlaceholder:
    def test_stands_on_its_node_only(self) -> None:
        """It is the scheduler that binds it, by a requirement that no new node meets."""
        spec = spec_of()
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": ["hot-1"]}
        assert terms == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert "nodeName" not in spec

    def test_prefers_to_be_without_the_twins_pods(self) -> None:
        """Of the twin that is raised, and nobody else's; a preference, so that nobody is kept out."""
        apart = spec_of()["affinity"]["podAntiAffinity"]
        [term] = apart["preferredDuringSchedulingIgnoredDuringExecution"]
        labels = {"splitter.io/source": "web", "splitter.io/pool": "spot"}
        assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels
        assert list(apart) == ["preferredDuringSchedulingIgnoredDuringExecution"]

    def test_holds_no_room_and_ends_itself(self) -> None:
        """It requests next to nothing, yields to all, and kubelet ends it where splitter does not."""
        spec = spec_of()
        amounts = {"cpu": "10m", "memory": "16777216"}
        assert [one["resources"] for one in spec["containers"]] == [{"requests": amounts, "limits": amounts}]
        assert spec["priorityClassName"] == "splitter-placeholder"
        assert spec["activeDeadlineSeconds"] == 120

    def test_may_stand_where_the_twin_may(self) -> None:
        """It tolerates what the twin's pods do, and takes nothing else of theirs."""
        tolerations = [{"key": "spot", "operator": "Exists"}]
        spec = spec_of(tolerations=tolerations, nodeSelector={"a": "b"}, schedulerName="own")
        assert spec["tolerations"] == tolerations
        assert not {"nodeSelector", "schedulerName"} & set(spec)


class TestHint:
    def test_comes_before_the_raise(self) -> None:
        """The counts rest while it is awaited."""
        one = hinted()
        first = one.planned()
        assert first.state is State.STEADY
        assert [write.node for write in first.actions if isinstance(write, CreatePlaceholder)] == [
            "hot-1",
            "hot-2",
        ]
        assert first.verdict.message.endswith("placeholders are to keep the new replica off hot nodes")
        one.hints = [hint(name, node=None, node_status=NodeStatus.UNBOUND) for name in ("hot-1", "hot-2")]
        one.now += timedelta(seconds=1)
        assert one.planned().actions == ()  # they have no node yet
        one.now += timedelta(seconds=10)
        assert [type(write) for write in one.planned().actions] == [Scale]

    def test_one_of_the_future_is_not_waited_for(self) -> None:
        """Whose clock is wrong, or who made it up: it is swept, and nobody waits for it."""
        one = moment(hints=[hint(node=None, node_status=NodeStatus.UNBOUND)])
        one.hints = [replace(one.hints[0], created=NOW + timedelta(days=9))]
        planned = one.planned()
        assert [write for write in planned.actions if isinstance(write, Scale)]
        assert [write.uid for write in planned.let_go] == [one.hints[0].uid]

    def test_does_not_wait_for_ever(self) -> None:
        """A new replica that the controller does not make: after a minute they go, and the move goes on."""
        one = begun()
        del one.pods[Pool.SPOT][-1]
        one.hints = [hint()]
        for seconds, goes in ((59, False), (61, True)):
            one.now = NOW + timedelta(seconds=seconds)
            planned = one.planned()
            assert bool(planned.let_go) is goes
            assert planned.relief is not None
            assert planned.relief.current is not None

    def test_none_where_nobody_could_make_one(self) -> None:
        """Without what placeholders are made of the move goes on as ever."""
        one = hinted()
        observed = one.observed()
        planned = plan(observed, policy_in_force(observed, DEFAULTS), rendered(), Rules(defaults=DEFAULTS))
        assert [type(write) for write in planned.actions] == [Scale]


class TestSweep:
    @pytest.mark.parametrize(
        "annotations",
        [
            {},
            {"splitter.io/relief": "cpu=85"},
            {"splitter.io/freeze": "true"},
            {"splitter.io/dry-run": "true"},
            {"splitter.io/relief": "nonsense"},
        ],
    )
    def test_without_a_move_there_is_none(self, annotations: dict[str, str]) -> None:
        """Whatever became of the move: also while counts are held, and in a dry run."""
        one = moment(hot=MEASURED, source=source(SPOT + 2, annotations=annotations), hints=[hint()])
        assert [write.uid for write in one.planned().let_go] == ["uid-web-placeholder-hot-1"]

    def test_after_a_restart_the_young_ones_stay(self) -> None:
        """Till it is known which nodes are hot: the next leader wants the same move again."""
        one = moment(hot=HotNodes(), hints=[hint()])
        assert one.planned().let_go == ()
        one.now += timedelta(seconds=61)
        assert one.planned().let_go
        one = moment(hot=HotNodes(paused="no metrics"), hints=[hint()])
        assert one.planned().let_go

    def test_after_a_loss(self) -> None:
        """The raise of the loss is written first."""
        one = begun(hints=[])
        one.hints = [hint()]
        pods = one.pods[Pool.SPOT]
        pods[:] = [
            replace(pod, node_status=NodeStatus.DOOMED) if pod.node == "hot-1" else pod for pod in pods
        ]
        planned = one.planned()
        assert planned.raises
        assert planned.let_go

    def test_one_that_is_no_placeholder_stays(self) -> None:
        """What holds room for a member, or is somebody's pod that claims to be the Split's, is not ours."""
        others = [pod("held", held_for="spot/4/abc"), pod("claimed")]
        assert moment(hot=MEASURED, hints=others).planned().let_go == ()

    def test_many_go_in_turns(self) -> None:
        """Whoever may create pods may make any number look like ours: a reconcile ends all the same."""
        many = [hint(f"n-{number}") for number in range(100)]
        assert len(moment(hot=MEASURED, hints=many).planned().let_go) == 16
