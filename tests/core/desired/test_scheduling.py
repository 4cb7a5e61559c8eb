"""Where the pods of a twin may run: what the templates' filters make of a pod spec."""

from collections.abc import Mapping

import pytest

from splitter.core.desired.manifest import merge
from splitter.core.desired.scheduling import (
    add_tolerations,
    leave_dead_nodes_after,
    prefer_node_affinity,
    require_node_affinity,
)

ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
SPOT = {"matchExpressions": [{"key": "spot", "operator": "Exists"}]}
PREEMPTIBLE = {"matchExpressions": [{"key": "preemptible", "operator": "Exists"}]}


def required(pod_spec: Mapping[str, object]) -> object:
    """Return the required node selector terms of a pod spec."""
    affinity = pod_spec["affinity"]
    assert isinstance(affinity, dict)
    return affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def with_terms(*terms: object) -> dict[str, object]:
    """Return a pod spec whose user requires these terms."""
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": selector}}


class TestRequireNodeAffinity:
    def test_none_of_the_users(self) -> None:
        """Without terms of the user's, ours stand alone."""
        assert required(require_node_affinity({}, [SPOT, PREEMPTIBLE])) == [SPOT, PREEMPTIBLE]
        assert required(require_node_affinity({"affinity": None}, [SPOT])) == [SPOT]

    def test_each_with_each(self) -> None:
        """Ours are ANDed into each of the user's terms."""
        assert required(require_node_affinity(with_terms(ZONE, NAME), [SPOT, PREEMPTIBLE])) == [
            {"matchExpressions": ZONE["matchExpressions"] + SPOT["matchExpressions"]},
            {"matchExpressions": ZONE["matchExpressions"] + PREEMPTIBLE["matchExpressions"]},
            NAME | SPOT,
            NAME | PREEMPTIBLE,
        ]

    def test_terms_that_match_nothing(self) -> None:
        """An empty term of the user's matches no node: it is never widened to all of ours."""
        assert required(require_node_affinity(with_terms({}, ZONE), [SPOT])) == [
            {"matchExpressions": ZONE["matchExpressions"] + SPOT["matchExpressions"]}
        ]
        assert required(require_node_affinity(with_terms({}), [SPOT])) == [{}]

    @pytest.mark.parametrize("terms", [[], [{}]])
    def test_no_terms(self, terms: list[dict[str, object]]) -> None:
        """Without anything that tells spot nodes, nothing is rendered: it would run anywhere."""
        with pytest.raises(ValueError, match="enable a provider preset"):
            require_node_affinity({}, terms)

    def test_too_many_for_each_with_each(self) -> None:
        """The product is known before it is made: how many it would be, how many may be, and what to do."""
        own = [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]}] * 25_000
        spec, ours = with_terms(*own), [SPOT] * 16
        with pytest.raises(ValueError, match=r"each of the 25000 nodeSelectorTerms .* each of 16 ") as caught:
            require_node_affinity(spec, ours)
        assert "which makes 1600000 requirements and values; at most 10000 are allowed" in str(caught.value)
        assert "Ask for fewer terms" in str(caught.value)

    @pytest.mark.parametrize(("terms", "values"), [(2, 300), (155, 2), (1, 620)])
    def test_as_many_as_may_be(self, terms: int, values: int) -> None:
        """Up to the limit each is combined with each, whatever the product is made of; twice that is not."""
        listed = [{"key": "k", "operator": "In", "values": ["v"] * values}]
        own = [{"matchExpressions": listed}] * terms
        combined = required(require_node_affinity(with_terms(*own), [SPOT] * 16))
        assert isinstance(combined, list)
        assert len(combined) == 16 * terms
        with pytest.raises(ValueError, match="at most 10000 are allowed"):
            require_node_affinity(with_terms(*own, *own), [SPOT] * 16)

    def test_nothing_lost(self) -> None:
        """Other affinity, and fields of the future, stay."""
        spec = {"affinity": {"podAffinity": {"a": 1}, "nodeAffinity": {"future": 2}}, "containers": []}
        result = require_node_affinity(spec, [SPOT])
        assert merge(result, spec) == result


class TestPreferNodeAffinity:
    def test_after_the_users(self) -> None:
        """Ours come with weight 100, after what the user prefers; nothing is required."""
        own = {"weight": 1, "preference": ZONE}
        spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [own]}}}
        assert prefer_node_affinity(spec, [SPOT]) == {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        own,
                        {"weight": 100, "preference": SPOT},
                    ]
                }
            }
        }


class TestTolerations:
    def test_added_once(self) -> None:
        """A toleration that is there already is not repeated, and without any nothing is written."""
        one, two = {"key": "a"}, {"key": "b"}
        assert add_tolerations({"tolerations": [one]}, [one, two]) == {"tolerations": [one, two]}
        assert add_tolerations({}, []) == {}

    def test_dead_nodes(self) -> None:
        """Pods leave a dead node early by default."""
        assert leave_dead_nodes_after({}, 30)["tolerations"] == [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ]

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}, 1),
            ({"key": "node.kubernetes.io/unreachable", "operator": "Exists"}, 1),
            ({"operator": "Exists"}, 0),
            ({"operator": "Exists", "effect": "NoSchedule"}, 2),
            ({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"}, 2),
            ({"key": "dedicated", "operator": "Exists"}, 2),
        ],
    )
    def test_the_users_word(self, own: dict[str, object], added: int) -> None:
        """Where the user tolerates such a taint in any way, that stays."""
        tolerations = leave_dead_nodes_after({"tolerations": [own]}, 30)["tolerations"]
        assert isinstance(tolerations, list)
        assert tolerations[0] == own
        assert len(tolerations) == 1 + added
