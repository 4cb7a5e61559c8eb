"""Fields of twins that another client removes leave no trace but that they are ours no more."""

from datetime import UTC, datetime, timedelta

from kube.managed import INTO_IT, in_container, ours, twin, writes
from kube.raw import Raw
from splitter.core.keyed import Removed
from splitter.core.nodes.facts import NodeFacts, NodeState
from splitter.kube.cache import Cache
from splitter.kube.mutations import NONE, Mutations


class TestRemoved:
    """Known since our last write; what was removed before we came is not."""

    NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)

    def removed(self, cache: Cache, seconds: int = 0) -> Removed | None:
        """Return what is known to be removed from the one twin."""
        (record,) = cache.twins.values()
        return cache.applied.removed(record, self.NOW + timedelta(seconds=seconds))

    def cache(self) -> Cache:
        """Return an empty cache that enqueues nobody."""
        return Cache(no_node, lambda *_, **__: None)

    def test_after_a_removal(self) -> None:
        """It is over with our next write."""
        cache = self.cache()
        whole, less = ours(image={}, livenessProbe={}), ours(image={})
        cache.twin_applied(twin(whole))
        assert self.removed(cache) is None
        cache.twins.upsert(newer(twin(less), 2))
        health_check = (*INTO_IT, "livenessProbe")
        assert self.removed(cache) == Removed((health_check,), self.NOW)
        assert self.removed(cache, seconds=9) == Removed((health_check,), self.NOW)
        cache.twin_applied(newer(twin(whole), 3))
        assert self.removed(cache) is None

    def test_another_value_is_no_removal(self) -> None:
        """`kubectl set image` takes the field from us, and it is there."""
        cache = self.cache()
        cache.twin_applied(twin(ours(image={}, livenessProbe={})))
        edited = writes("kubectl-set", in_container(image={}))
        cache.twins.upsert(newer(twin(ours(livenessProbe={}), edited), 2))
        assert self.removed(cache) is None

    def test_what_a_policy_made_of_it(self) -> None:
        """Known until the next write of ours, and forgotten with the twin."""
        cache, raw = self.cache(), twin(ours(image={}))
        cache.twin_applied(raw, Mutations(changed=("spec.replicas",)))
        (record,) = cache.twins.values()
        assert cache.applied.mutated(record) == Mutations(changed=("spec.replicas",))
        cache.twin_applied(newer(raw, 3))
        assert cache.applied.mutated(record) == NONE

    def test_before_our_first_write(self) -> None:
        """A controller that has just started takes twins as they are."""
        cache = self.cache()
        cache.twins.upsert(twin(ours(image={})))
        assert self.removed(cache) is None


def newer(raw: Raw, version: int) -> Raw:
    """Return the object as it is somewhat later."""
    raw["metadata"]["resourceVersion"] = str(version)
    return raw


def no_node(facts: NodeFacts, *, now: datetime | None = None) -> NodeState:
    """Judge no node: there is none."""
    raise AssertionError((facts, now))
