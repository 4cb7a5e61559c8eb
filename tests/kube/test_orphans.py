"""Which pods without an owner belong to a workload that is handed over, and which never do."""

from collections.abc import Mapping

import pytest

from kube.raw import Raw, deployment, owner, pod, replica_set
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes import assess
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.orphans import orphans_of

KEY = Key(DEPLOYMENT, "shop", "web")
OURS = {"app": "web", "pod-template-hash": "1", "splitter.io/pool": "spot", "splitter.io/source": "web"}
KEPT = {"splitter.io/split": "parked", "pod-template-hash": "split1"}


def seen(
    labels: Mapping[str, str], owners: list[Raw] | None = None, selector: Raw | None = None
) -> tuple[list[str], bool]:
    """Return the names of the orphans, and whether there will be more, with one such pod there."""
    cache = Cache(assess, lambda *_, **__: None)
    kept = replica_set("web-split1", {"replicas": 0}, labels=KEPT)
    kept["metadata"]["ownerReferences"][0]["controller"] = False
    cache.replica_sets.upsert(kept)
    raw = pod("web-1-a", labels=dict(labels))
    raw["metadata"]["ownerReferences"] = owners or []
    cache.pods.upsert(raw)
    source = parse.source(deployment(spec={"selector": selector} if selector else None)).view
    found, more = orphans_of(cache, KEY, source, ())
    return [one.name for one in found], more


class TestOrphans:
    """Pods that the next ReplicaSet will adopt."""

    def test_let_go_a_moment_ago(self) -> None:
        """Labelled for the workload, of a hash, and nobody's."""
        assert seen(OURS) == (["web-1-a"], False)

    def test_made_in_the_last_moment(self) -> None:
        """By the ReplicaSet that was let go, after all others had been labelled."""
        assert seen({"app": "web", "pod-template-hash": "1"}) == (["web-1-a"], False)

    @pytest.mark.parametrize("labelled", [True, False])
    @pytest.mark.parametrize(
        "selector",
        [
            {"matchLabels": {"app": "web"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]},
            {"matchLabels": {}, "matchExpressions": [{"key": "debugged", "operator": "DoesNotExist"}]},
        ],
    )
    def test_not_what_somebody_took_out_to_look_at(self, selector: Raw, labelled: bool) -> None:
        """Its labels were changed, so that no ReplicaSet selects it: waited for, it would stop everything."""
        rest = OURS if labelled else {"pod-template-hash": "1"}
        assert seen({**rest, "app": "web"}, selector=selector) == (["web-1-a"], False)
        assert seen({**rest, "app": "web-debug", "debugged": "yes"}, selector=selector) == ([], False)


class TestMore:
    """Whether pods are about to lose their owner."""

    def test_whose_replica_set_is_gone(self) -> None:
        """The garbage collector has not got to them yet."""
        assert seen(OURS, [owner("ReplicaSet", "web-gone")]) == ([], True)

    @pytest.mark.parametrize("kind", ["StatefulSet", "Job", "CloneSet"])
    def test_not_of_another_kind(self, kind: str) -> None:
        """The StatefulSet of the same name is split too, or somebody copied the labels: no affair of ours."""
        assert seen(OURS, [owner(kind, "web-spot")]) == ([], False)
