"""What a twin must look like: enforcement, hashes, and the templates' filters."""

import copy
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.desired.compare import rendered_hash, template_hash
from splitter.core.desired.manifest import merge
from splitter.core.desired.scheduling import (
    add_tolerations,
    leave_dead_nodes_after,
    prefer_node_affinity,
    require_node_affinity,
)
from splitter.core.desired.tracking import is_tracking, portable_labels
from splitter.core.desired.twin import enforce, hosts
from splitter.core.model import Pool

SOURCE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
}
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
SPOT = {"matchExpressions": [{"key": "spot", "operator": "Exists"}]}
PREEMPTIBLE = {"matchExpressions": [{"key": "preemptible", "operator": "Exists"}]}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


def required(pod_spec: Mapping[str, object]) -> object:
    """Return the required node selector terms of a pod spec."""
    affinity = pod_spec["affinity"]
    assert isinstance(affinity, dict)
    return affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def with_terms(*terms: object) -> dict[str, object]:
    """Return a pod spec whose user requires these terms."""
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": selector}}


class TestEnforce:
    def test_hostile_template(self) -> None:
        """Whatever a template says, what is ours is right, and what is not the twin's is gone."""
        template = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "other",
                "namespace": "kube-system",
                "generateName": "x",
                "uid": "u-2",
                "finalizers": ["example.com/hold"],
                "ownerReferences": [],
                "labels": {"splitter.io/split": "enabled", "splitter.io/pool": "none", "team": "a"},
                "annotations": {
                    "argocd.argoproj.io/tracking-id": "x",
                    "splitter.io/freeze": "true",
                    "note": "n",
                },
            },
            "spec": {
                "replicas": 99,
                "paused": True,
                "strategy": {"type": "Recreate"},
                "revisionHistoryLimit": 0,
                "selector": {"matchLabels": {"app": "other"}},
                "template": {
                    "metadata": {"labels": {"app": "other", "own": "1"}},
                    "spec": {"containers": []},
                },
            },
            "status": {"replicas": 99},
        }
        pods = {"app": "web", "splitter.io/pool": "spot", "splitter.io/source": "web"}
        assert enforce(template, SOURCE, Pool.SPOT) == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web-spot",
                "namespace": "shop",
                "labels": {
                    "team": "a",
                    "splitter.io/split": "twin",
                    "splitter.io/pool": "spot",
                    "splitter.io/source": "web",
                },
                "annotations": {"note": "n"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "name": "web",
                        "uid": "u-1",
                        "controller": True,
                        "blockOwnerDeletion": False,
                    }
                ],
            },
            "spec": {
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "revisionHistoryLimit": 2,
                "selector": {"matchLabels": pods},
                "template": {"metadata": {"labels": {"own": "1"} | pods}, "spec": {"containers": []}},
            },
        }

    @given(MAPPINGS)
    def test_any_output(self, manifest: dict[str, object]) -> None:
        """Any mapping at all ends as a twin of the source, and is itself left as it was."""
        before = copy.deepcopy(manifest)
        twin = enforce(manifest, SOURCE, Pool.ON_DEMAND)
        assert twin == enforce(twin, SOURCE, Pool.ON_DEMAND)
        assert set(twin) == {"apiVersion", "kind", "metadata", "spec"}
        assert manifest == before

    def test_offline(self) -> None:
        """Without a uid and a namespace, as in a file, there is no owner and no namespace."""
        source = SOURCE | {"metadata": {"name": "web"}}
        metadata = enforce({}, source, Pool.SPOT)["metadata"]
        assert isinstance(metadata, dict)
        assert sorted(metadata) == ["labels", "name"]

    def test_expressions_of_the_selector(self) -> None:
        """The source's selector stays whole: its expressions too."""
        expressions = [{"key": "canary", "operator": "DoesNotExist"}]
        source = SOURCE | {"spec": {"selector": {"matchExpressions": expressions}}}
        spec = enforce({}, source, Pool.SPOT)["spec"]
        assert isinstance(spec, dict)
        assert spec["selector"] == {
            "matchExpressions": expressions,
            "matchLabels": {"splitter.io/pool": "spot", "splitter.io/source": "web"},
        }


class TestHashes:
    def test_rendered_hash_leaves_out(self) -> None:
        """Replicas, the numbers of the roll and the stored hash are written apart from the template."""
        twin = {
            "metadata": {"annotations": {"splitter.io/rendered-hash": "x", "note": "n"}},
            "spec": {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 7}}},
        }
        bare = {"spec": {"strategy": {"type": "RollingUpdate"}}, "metadata": {"annotations": {"note": "n"}}}
        assert rendered_hash(twin) == rendered_hash(bare)
        assert rendered_hash(twin) != rendered_hash(bare | {"metadata": {}})

    def test_known_value(self) -> None:
        """The hash does not change between versions unseen: each change is a write to every twin."""
        assert rendered_hash({}) == "0b62bf431418a4d4"

    @pytest.mark.parametrize(
        ("one", "other", "equal"),
        [
            (
                {"metadata": {"labels": {"a": "1", "pod-template-hash": "x"}}},
                {"metadata": {"labels": {"a": "1"}}},
                True,
            ),
            ({"metadata": {"creationTimestamp": None}}, {"metadata": {}}, True),
            ({"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1}}, True),
            ({"spec": {"a": [1, 2]}}, {"spec": {"a": [2, 1]}}, False),
            ({"metadata": {"annotations": {"a": "1"}}}, {"metadata": {}}, False),
            ({"spec": {"a": "1"}}, {"spec": {"a": 1}}, False),
        ],
    )
    def test_template_hash(self, one: dict[str, object], other: dict[str, object], equal: bool) -> None:
        """Two pod templates are one where the Deployment controller says so."""
        assert (template_hash(one) == template_hash(other)) is equal

    def test_half_a_surrogate_pair(self) -> None:
        """Text that is not Unicode is hashed, not an error."""
        assert template_hash({"a": "\ud800"})


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


class TestLabels:
    @pytest.mark.parametrize(
        "key",
        [
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "argocd.argoproj.io/instance",
            "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/name",
            "helm.sh/chart",
            "kapp.k14s.io/app",
            "applyset.kubernetes.io/part-of",
            "splitter.io/split",
        ],
    )
    def test_tracking(self, key: str) -> None:
        """Neither copied by the default templates nor let through from any other."""
        assert portable_labels({key: "x"}) == {}
        assert is_tracking(key)

    def test_unknown_prefix(self) -> None:
        """A prefix nobody knows is not copied by default, yet a template's author may write it."""
        assert portable_labels({"company.example/rules": "x", "app": "web"}) == {"app": "web"}
        assert not is_tracking("company.example/rules")


class TestMerge:
    @given(MAPPINGS)
    def test_nothing(self, base: dict[str, object]) -> None:
        """An empty change is no change."""
        assert merge(base, {}) == base

    @given(MAPPINGS, MAPPINGS)
    def test_twice(self, base: dict[str, object], change: dict[str, object]) -> None:
        """A change made twice is a change made once, and neither argument is touched."""
        before = copy.deepcopy((base, change))
        once = merge(base, change)
        assert merge(once, change) == once
        assert (base, change) == before

    def test_named_lists(self) -> None:
        """Containers are merged by their names; what the change does not speak of stays."""
        base = {"containers": [{"name": "a", "image": "a:1", "future": 1}, {"name": "b"}], "args": [1, 2]}
        change = {"containers": [{"name": "c"}, {"name": "a", "image": "a:2"}], "args": [3]}
        assert merge(base, change) == {
            "containers": [{"name": "a", "image": "a:2", "future": 1}, {"name": "b"}, {"name": "c"}],
            "args": [3],
        }

    def test_null_removes(self) -> None:
        """Null in a change takes a key away, at any depth, and is otherwise left alone."""
        assert merge({"a": {"b": 1, "c": None}}, {"a": {"b": None}, "d": {"e": None}}) == {
            "a": {"c": None},
            "d": {},
        }


class TestHosts:
    @pytest.mark.parametrize("count", [1000, 1001, 10**9])
    def test_no_more_than_there_are_ordinals(self, count: int) -> None:
        """A twin has 1,000 ordinals, so there are no more names."""
        assert len(hosts({"name": "db-spot", "service": "db", "first_ordinal": 0}, count)) == 1000

    @pytest.mark.parametrize("field", ["name", "service"])
    def test_no_longer_than_names_are(self, field: str) -> None:
        """The API server takes any text for a StatefulSet's Service: a thousand of a long one are refused."""
        peer = {"name": "db", "service": "db", "first_ordinal": 0, field: "x" * 254}
        with pytest.raises(ValueError, match=r"is no name; Kubernetes' have at most 253 characters"):
            hosts(peer, 2)
