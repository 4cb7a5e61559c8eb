"""A twin's manifest is forced to be one, whatever its template says."""

import copy

import pytest
from hypothesis import given

from core.desired.documents import MAPPINGS
from splitter.core.desired.twin import enforce, hosts
from splitter.core.replica import Pool

SOURCE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
}


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


class TestHosts:
    @pytest.mark.parametrize("count", [1000, 1001, 10**9])
    def test_no_more_than_there_are_ordinals(self, count: int) -> None:
        """A twin has 1,000 ordinals, so there are no more names."""
        assert len(hosts({"name": "db-spot", "service": "db", "first_ordinal": 0}, count)) == 1000

    def test_of_pods_without_a_service(self) -> None:
        """Their names have no domain."""
        assert hosts({"name": "db"}, 2) == ["db-0", "db-1"]

    @pytest.mark.parametrize("field", ["name", "service"])
    def test_no_longer_than_names_are(self, field: str) -> None:
        """The API server takes any text for a StatefulSet's Service: a thousand of a long one are refused."""
        peer = {"name": "db", "service": "db", "first_ordinal": 0, field: "x" * 254}
        with pytest.raises(ValueError, match=r"is no name; Kubernetes' have at most 253 characters"):
            hosts(peer, 2)
