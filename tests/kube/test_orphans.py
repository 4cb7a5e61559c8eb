"""Which pods are taken for orphans of a workload, and which never are."""

from dataclasses import replace
from typing import Any

import pytest

from builders import KEY
from kube.raw import deployment, owner, pod, replica_set
from splitter.core.labels_annotations import kept_name
from splitter.core.nodes.signals import assess
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.orphans import Unowned, orphans_of

OURS = {"app": "web", "splitter.io/pool": "spot", "splitter.io/source": "web", "pod-template-hash": "1"}
PLAIN = {"app": "web", "pod-template-hash": "1"}
LEFT = "2026-01-05T10:00:00Z"


def seen(
    *raws: Any,  # noqa: ANN401 (raw objects)
    selector: Any = None,  # noqa: ANN401
    gone: bool = False,
    listed: int | None = None,
) -> tuple[set[str], bool]:
    """Return the orphans of `shop/web` with these pods and ReplicaSets, and whether there will be more.

    `gone`: the ReplicaSet was seen to go. `listed`: a list of that version has none.
    """
    cache = Cache(assess, lambda *_, **__: None)
    cache.sources.upsert(deployment())
    for raw in raws:
        (cache.replica_sets if "replicas" in raw["spec"] else cache.pods).upsert(raw)
    if gone:
        cache.replica_sets.remove(replica_set(deletionTimestamp=LEFT))
    if listed is not None:
        cache.replica_sets.replace([], None, listed)
    source = parse.source(deployment(spec={"selector": selector} if selector else None)).view
    unowned = orphans_of(cache, KEY, source, ())
    return {one.name for one in unowned.pods}, unowned.leaving


def naked(name: str = "web-1-a", labels: dict[str, str] = OURS, **fields: Any) -> Any:  # noqa: ANN401
    """Return a pod without an owner."""
    raw = pod(name, labels=labels, **fields)
    raw["metadata"]["ownerReferences"] = []
    return raw


class TestLabelled:
    """Our labels say whose it is."""

    def test_without_an_owner(self) -> None:
        """It is one."""
        assert seen(naked()) == ({"web-1-a"}, False)

    def test_owner_is_gone(self) -> None:
        """The garbage collector takes the reference off in a moment: there will be one."""
        assert seen(pod(labels=OURS), gone=True) == ({"web-1-a"}, True)

    @pytest.mark.parametrize(("version", "gone"), [(7, True), (8, True), (9, False)])
    def test_owner_is_in_no_list(self, version: int, gone: bool) -> None:
        """It was there before the pod: a list that is as new as what is known of the pod would have it."""
        assert seen(pod(labels=OURS, version=version), listed=8) == ({"web-1-a"} if gone else set(), gone)

    def test_owner_is_not_seen_yet(self) -> None:
        """The watch of ReplicaSets is behind: the pod is of a new one, and nothing lets it go."""
        assert seen(pod(labels=OURS)) == (set(), False)

    @pytest.mark.parametrize("kind", ["StatefulSet", "Job", "CloneSet"])
    def test_owner_of_another_kind(self, kind: str) -> None:
        """The StatefulSet of the same name is split too, or somebody copied the labels: no affair of ours."""
        raw = pod(labels=OURS)
        raw["metadata"]["ownerReferences"] = [owner(kind, "web-spot")]
        assert seen(raw) == (set(), False)

    def test_owner_is_there(self) -> None:
        """It has its owner."""
        assert seen(pod(labels=OURS), replica_set()) == (set(), False)

    def test_owner_is_going(self) -> None:
        """A ReplicaSet of the source that was told to leave its pods: there will be some."""
        assert seen(pod(labels=OURS), replica_set(deletionTimestamp=LEFT)) == (set(), True)

    @pytest.mark.parametrize(
        "changed",
        [
            {"namespace": "bank"},
            {"deletionTimestamp": LEFT},
            {"labels": {**OURS, "splitter.io/source": "api"}},
            {"labels": {**OURS, "pod-template-hash": ""}},
        ],
    )
    def test_never(self, changed: dict[str, object]) -> None:
        """Of another namespace, on its way out, of another workload, without a hash."""
        assert seen(naked(**changed)) == (set(), False)  # type: ignore[arg-type]

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_that_has_ended(self, phase: str) -> None:
        """No ReplicaSet adopts it: it is told apart, and removed."""
        raw = naked()
        raw["status"] = {"phase": phase}
        assert seen(raw) == ({"web-1-a"}, False)


class TestMadeLast:
    """What the source's ReplicaSet made in the moment before it went has no labels of ours yet.

    The revision that was kept of that ReplicaSet says its hash.
    """

    KEPT = replica_set(kept_name("web", "1"))

    def test_by_its_name_and_hash(self) -> None:
        """It is one of its."""
        assert seen(self.KEPT, naked("web-1-z", PLAIN)) == ({"web-1-z"}, False)

    @pytest.mark.parametrize(
        ("name", "labels"),
        [
            ("debug", PLAIN),
            ("web-1-z", {"app": "web"}),
            ("web-1-z", {"app": "web", "pod-template-hash": "2"}),
            ("api-1-z", PLAIN),
        ],
    )
    def test_of_a_stranger(self, name: str, labels: dict[str, str]) -> None:
        """A naked pod that only matches the selector is nobody's."""
        assert seen(self.KEPT, naked(name, labels)) == (set(), False)

    def test_of_a_stranger_s_set(self) -> None:
        """A ReplicaSet of another Deployment says nothing of this one's pods."""
        other = replica_set(kept_name("web", "1"), ownerReferences=[owner("Deployment", "api")])
        assert seen(other, naked("web-1-z", PLAIN)) == (set(), False)


class TestTakenOut:
    """Its labels were changed, so that no ReplicaSet selects it: waited for, it would stop everything."""

    @pytest.mark.parametrize("labels", [OURS, PLAIN], ids=["labelled", "made-last"])
    @pytest.mark.parametrize(
        "selector",
        [
            {"matchLabels": {"app": "web"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]},
            {"matchLabels": {}, "matchExpressions": [{"key": "debugged", "operator": "DoesNotExist"}]},
        ],
    )
    def test_to_look_at_it(self, selector: Any, labels: dict[str, str]) -> None:  # noqa: ANN401
        """It is nobody's."""
        kept = replica_set(kept_name("web", "1"))
        there = naked("web-1-a", {**labels, "app": "web"})
        assert seen(kept, there, selector=selector) == ({"web-1-a"}, False)
        taken = naked("web-1-a", {**labels, "app": "web-debug", "debugged": "yes"})
        assert seen(kept, taken, selector=selector) == (set(), False)

    def test_by_a_selector_over_the_limit(self) -> None:
        """It is compared with nothing: the workload is refused, and a product of two sizes is seconds."""
        terms = [{"key": f"absent-{number}", "operator": "DoesNotExist"} for number in range(100)]
        within = {"matchExpressions": terms}
        assert seen(naked(), selector=within) == ({"web-1-a"}, False)
        over = {"matchLabels": {"app": "web"}, **within}
        assert seen(naked(), selector=over) == (set(), False)

    def test_by_its_hash(self) -> None:
        """`kubectl label pod web-1-a pod-template-hash=debug --overwrite`: no ReplicaSet has that hash."""
        taken = {**OURS, "pod-template-hash": "debug"}
        assert seen(naked("web-1-a", taken)) == (set(), False)
        assert seen(naked("web-debug-1-a", taken)) == (set(), False)

    def test_that_only_has_a_long_name(self) -> None:
        """The API server cuts what a pod is called after: then a ReplicaSet tells the hash."""
        assert seen(self.KEPT, naked("a-name-that-was-cutx7k2p")) == ({"a-name-that-was-cutx7k2p"}, False)

    def test_of_a_replica_set_whose_name_was_taken(self) -> None:
        """It is called by the hash and one letter more."""
        assert seen(naked("web-1a-x7k2p")) == ({"web-1a-x7k2p"}, False)

    KEPT = replica_set(kept_name("web", "1"))


def test_a_statefulset_has_none() -> None:
    """Its pods keep their owner."""
    key = replace(KEY, kind="StatefulSet")
    assert orphans_of(Cache(assess, lambda *_, **__: None), key, None, ()) == Unowned()
