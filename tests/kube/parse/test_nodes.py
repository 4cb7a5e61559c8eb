"""Nodes, as Kubernetes writes them."""

from kube.raw import READY, condition, metadata
from splitter.core.nodes.facts import Condition, Taint
from splitter.kube import parse
from splitter.kube.parse.fields import instant


class TestNodes:
    def test_as_found(self) -> None:
        """What the classifier reads of a node."""
        node_facts = parse.node_facts(
            {
                "metadata": metadata("spot-1", labels={"pool": "spot"}, annotations={"a": "b"}),
                "spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}], "unschedulable": True},
                "status": {
                    "conditions": [condition("Ready", "Unknown", reason="NodeStatusUnknown")],
                    "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                },
            }
        )
        assert (node_facts.name, node_facts.uid, node_facts.labels) == (
            "spot-1",
            "uid-spot-1",
            {"pool": "spot"},
        )
        assert (node_facts.annotations, node_facts.unschedulable) == ({"a": "b"}, True)
        assert node_facts.taints == (Taint("gone", "", "NoSchedule"),)
        assert node_facts.conditions == (Condition("Ready", "Unknown", "NodeStatusUnknown"),)
        assert node_facts.allocatable == {"cpu": 4000, "memory": 16 * 2**30, "pods": 110}
        assert node_facts.deletion_timestamp is None

    def test_newborn(self) -> None:
        """A node that has registered and said nothing yet."""
        node_facts = parse.node_facts({"metadata": metadata("new")})
        assert (
            node_facts.taints,
            node_facts.conditions,
            node_facts.allocatable,
            node_facts.unschedulable,
        ) == ((), (), {}, False)

    def test_going(self) -> None:
        """A node that is being deleted says since when."""
        node_facts = parse.node_facts({"metadata": metadata("old", deletionTimestamp=READY)})
        assert node_facts.deletion_timestamp == instant(READY)
