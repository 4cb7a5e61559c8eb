"""Whom the cache wakes: everybody whom a change concerns, and nobody for what no reconcile looks at."""

from typing import Any

import pytest

from kube.raw import condition, deployment, metadata, owner, pod, replica_set
from splitter.core.names import DEPLOYMENT, Key
from splitter.core.nodes.signals import assess
from splitter.kube.cache import Cache
from splitter.kube.store import Indexer

Raw = dict[str, Any]
WEB = Key(DEPLOYMENT, "shop", "web")
COUNTS = {"replicas": 3, "availableReplicas": 3}
STATUS: Raw = {"state": "Steady", "ready": 3}


class World:
    """A cache with one workload, and who was woken."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        self.cache = Cache(assess, self._enqueue)
        self.cache.sources.upsert(deployment(status=COUNTS))
        self.cache.twins.upsert(twin(COUNTS))
        self.cache.replica_sets.upsert(replica_set(status=COUNTS))
        self.cache.pods.upsert(pod(status={"conditions": [condition("Ready")]}))
        self.cache.splits.upsert(split({"state": "Steady"}))
        assert WEB in self.woken
        self.woken.clear()

    def _enqueue(self, key: Key, *, urgent: bool) -> None:
        assert not urgent
        self.woken.append(key)

    def indexer(self, kind: str) -> Indexer[Any]:
        """Return the indexer of a kind."""
        result: Indexer[Any] = getattr(self.cache, kind)
        return result

    def hears(self, kind: str, raw: Raw) -> bool:
        """Take a change that the watch tells, and return whether the workload was woken."""
        self.woken.clear()
        kept = self.indexer(kind).upsert(raw)
        assert kept is not None
        assert kept.version == int(raw["metadata"]["resourceVersion"])
        return self.woken == [WEB]


def twin(status: Raw, version: int = 1) -> Raw:
    """Return the spot twin of the source."""
    labels = {"splitter.io/split": "twin", "splitter.io/pool": "spot"}
    owners = [owner("Deployment", "web")]
    return deployment("web-spot", status=status, version=version, labels=labels, ownerReferences=owners)


def split(status: Raw, version: int = 1, generation: int = 1) -> Raw:
    """Return the Split of the source."""
    return {
        "metadata": metadata("web", uid="uid-split", version=version, generation=generation),
        "spec": {"source": {"kind": "Deployment", "name": "web"}, "takeOver": True},
        "status": status,
    }


@pytest.fixture
def world() -> World:
    """Return a world of one workload."""
    return World()


class TestNeedsNoReconcile:
    """A change that no reconcile can see enqueues nobody, and the record has the version of today."""

    def test_a_status_that_counts_what_nobody_counts(self, world: World) -> None:
        """How many pods are ready, and when a condition was last looked at, is in no decision."""
        more = {**COUNTS, "readyReplicas": 3, "conditions": [condition("Progressing", lastUpdateTime="x")]}
        assert not world.hears("sources", deployment(status=more, version=2))
        assert not world.hears("twins", twin(more, version=2))
        assert not world.hears("replica_sets", replica_set(status=more, version=2))

    def test_a_pod_with_an_annotation(self, world: World) -> None:
        """Whatever other controllers write onto pods."""
        status = {"conditions": [condition("Ready")], "podIP": "10.0.0.1"}
        assert not world.hears("pods", pod(status=status, version=2, annotations={"seen": "yes"}))

    @pytest.mark.parametrize(
        ("kind", "raw"),
        [
            ("sources", deployment(spec={"replicas": 5}, status=COUNTS, version=2)),
            ("sources", deployment(status=COUNTS, version=2, annotations={"team": "a"})),
            ("twins", twin({**COUNTS, "availableReplicas": 2}, version=2)),
            ("replica_sets", replica_set(status={**COUNTS, "replicas": 2}, version=2)),
            ("replica_sets", replica_set(spec={"replicas": 2}, status=COUNTS, version=2)),
            ("pods", pod(status={"conditions": [condition("Ready", "False")]}, version=2)),
        ],
    )
    def test_news(self, world: World, kind: str, raw: Raw) -> None:
        """Whatever a reconcile may decide by wakes the workload."""
        assert world.hears(kind, raw)

    @pytest.mark.parametrize("kind", ["sources", "twins", "replica_sets", "pods", "splits"])
    def test_what_goes_and_comes_is_news(self, world: World, kind: str) -> None:
        """An object that is no longer there, and one of its name that is there anew."""
        [record] = world.indexer(kind).values()
        raw = {
            "sources": deployment(version=2),
            "twins": twin({}, version=2),
            "replica_sets": replica_set(version=2),
            "pods": pod(version=2),
            "splits": split({}, version=2),
        }[kind]
        assert raw["metadata"]["uid"] == record.uid
        world.indexer(kind).remove(raw)
        assert world.woken == [WEB]
        raw["metadata"]["resourceVersion"] = "3"
        assert world.hears(kind, raw)


class TestOwnStatuses:
    """The statuses that we write come back: by the answer, and by the watch, whichever is first."""

    def test_as_it_was_decided(self, world: World) -> None:
        """A reconcile knew it before it was written."""
        world.cache.statuses.decided("uid-split", STATUS)
        assert not world.hears("splits", split(STATUS, version=2))

    def test_somebody_else_wrote_it(self, world: World) -> None:
        """A status that we have not decided is put right, before and after our own."""
        assert world.hears("splits", split(STATUS, version=2))
        world.cache.statuses.decided("uid-split", STATUS)
        assert world.hears("splits", split({**STATUS, "ready": 4}, version=3))

    def test_another_state(self, world: World) -> None:
        """What is looked up only at rest is looked up when it is at rest."""
        moving = {**STATUS, "state": "Moving"}
        world.cache.statuses.decided("uid-split", moving)
        assert world.hears("splits", split(moving, version=2))

    def test_more_than_a_status(self, world: World) -> None:
        """Whoever writes the spec, as an autoscaler does, or takes the owner away, is heard."""
        world.cache.statuses.decided("uid-split", STATUS)
        assert world.hears("splits", split(STATUS, version=2, generation=2))
        orphaned = split(STATUS, version=3, generation=2)
        orphaned["metadata"]["ownerReferences"] = [owner("Deployment", "web")]
        assert world.hears("splits", orphaned)

    def test_forgotten_with_the_split(self, world: World) -> None:
        """One that is made anew has nothing of ours."""
        world.cache.statuses.decided("uid-split", STATUS)
        world.cache.splits.forget("uid-split")
        anew = split({"state": "Steady"}, version=5)
        anew["metadata"]["uid"] = "uid-anew"
        assert world.hears("splits", anew)
        later = split(STATUS, version=6)
        later["metadata"]["uid"] = "uid-anew"
        assert world.hears("splits", later)
