"""What is seen of a workload, and when an observer looks for what no watch tells of."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from builders import NOW, free_source, split
from kube.raw import CREATED, Raw, metadata, owner, stateful_set
from splitter.assembly import rules_of
from splitter.core.labels_annotations import LABEL_POOL, LABEL_SOURCE, LABEL_SPLIT
from splitter.core.model import Attachment, RelatedObjects
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import assess
from splitter.core.replica import Pool
from splitter.core.split_status.view import SplitView
from splitter.core.stateful import StatefulView
from splitter.kube import observe, parse
from splitter.kube.cache import Cache
from splitter.kube.client import Json
from splitter.kube.observe import Observer
from splitter.settings import Settings

DB = Key(STATEFUL_SET, "shop", "db")
SOURCE = replace(
    free_source(3), key=Key(STATEFUL_SET, "shop", "db"), stateful=StatefulView(3, 3, 3, NOW), claims=()
)
MISSING = RelatedObjects(unplaceable="the policy is not there")
TWINS = split(state="Steady")
PLACED = split(state="Held", ordinals=(0, 1))


class _Nobody:
    """An API server in whose namespace nothing scales anything."""

    async def get(self, *_: object, **__: str) -> Json:
        """Return an empty list."""
        return {"items": [], "metadata": {}}


class Around:
    """An observer, and what it would find now; `looks` counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.around, self.looks, self.now = RelatedObjects(), 0, NOW
        self._observer = Observer(_Nobody(), Cache(partial(assess), lambda *_, **__: None))  # type: ignore[arg-type]

        async def looked(*_: object, **__: Mapping[str, str]) -> RelatedObjects:
            self.looks += 1
            return self.around

        async def none(*_: object, **__: object) -> tuple[()]:
            return ()

        monkeypatch.setattr(observe, "look_around", looked)
        monkeypatch.setattr(self._observer._autoscalers, "of", none)  # noqa: SLF001

    async def known(self, seen: SplitView | None, after_s: float = 1.0) -> RelatedObjects:
        """Return what a pass goes by, so long after the last one."""
        self.now += timedelta(seconds=after_s)
        return await self._observer._related(SOURCE, seen, (), self.now)  # noqa: SLF001


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Around:
    """Return an observer that has seen nothing."""
    return Around(monkeypatch)


async def test_what_is_seen_of_an_earlier_split_counts_no_longer(around: Around) -> None:
    """Split into twins before the policy was there: placed a minute later, nobody waits for five minutes."""
    around.around = MISSING
    assert await around.known(TWINS) == MISSING
    around.around = RelatedObjects()
    assert await around.known(None) == RelatedObjects()
    assert await around.known(PLACED) == RelatedObjects()


async def test_the_first_rest_looks_anew(around: Around) -> None:
    """Who aims an autoscaler at a twin while it is made is seen at once, and not five minutes later."""
    assert await around.known(None) == RelatedObjects()
    around.around = aimed = RelatedObjects(autoscaled_twin="HorizontalPodAutoscaler/web-spot")
    assert await around.known(TWINS) == aimed


async def test_what_holds_up_every_move_is_looked_at_again_soon(around: Around) -> None:
    """The policy was away for a moment, as in an upgrade: no watch tells that it is back."""
    around.around = MISSING
    assert await around.known(PLACED) == MISSING
    around.around = RelatedObjects()
    assert await around.known(PLACED, after_s=59.0) == MISSING
    assert await around.known(PLACED) == RelatedObjects()


async def test_a_roll_that_stands_still_hides_nothing(around: Around) -> None:
    """A notice may come meanwhile: nobody would be moved because of a policy that is back since long."""
    around.around = MISSING
    assert await around.known(PLACED) == MISSING
    around.around = RelatedObjects()
    assert await around.known(split(state="Rolling", ordinals=(0, 1)), after_s=60.0) == RelatedObjects()


async def test_at_rest_it_looks_every_five_minutes(around: Around) -> None:
    """No more than that: each look costs requests."""
    for _ in range(20):
        await around.known(PLACED, after_s=60.0)
    assert around.looks == 4


def nobody(key: Key, *, urgent: bool) -> None:
    """Enqueue nobody."""
    del key, urgent


class TestObservation:
    """Pods by ordinal and revision, joined with the source and its twins."""

    @staticmethod
    def cache() -> Cache:
        """Return a cache that enqueues nobody."""
        return Cache(partial(assess), nobody)

    @staticmethod
    def pod(name: str, of: str, revision: str = "one") -> Raw:
        """Return a pending pod of a StatefulSet."""
        labels = {"controller-revision-hash": revision}
        return {
            "metadata": metadata(name, ownerReferences=[owner("StatefulSet", of)], labels=labels),
            "spec": {"containers": []},
            "status": {"phase": "Pending"},
        }

    async def test_the_source_holds_its_own(self) -> None:
        """As a parked ReplicaSet would; its pods have numbers."""
        cache = self.cache()
        source = parse.source(stateful_set(labels={LABEL_SPLIT: "enabled"})).view
        for name in ("db-2", "db-0"):
            cache.pods.upsert(self.pod(name, "db"))
        [itself] = Observer(None, cache)._replica_sets(source, NOW)  # type: ignore[arg-type] # noqa: SLF001
        assert (itself.name, itself.attachment, itself.first_ordinal) == ("db", Attachment.PARKED, 0)
        assert [one.ordinal for one in itself.pods] == [0, 2]
        assert not itself.rolls

    @pytest.mark.parametrize(
        ("partition", "seen", "old"),
        [(0, True, {"one": 2}), (1, True, {"one": 1}), (0, False, {"one": 2, "two": 1})],
    )
    async def test_a_twin_by_revision(self, partition: int, seen: bool, old: dict[str, int]) -> None:
        """What a partition holds back is no roll; before its controller has looked, everything may be one."""
        cache = self.cache()
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        labels = {LABEL_SPLIT: "twin", LABEL_POOL: "spot", LABEL_SOURCE: "db"}
        owned = [owner("StatefulSet", "db")]
        cache.twins.upsert(
            stateful_set(
                "db-spot",
                spec={"ordinals": {"start": 1000}, "updateStrategy": strategy},
                status={"updateRevision": "two", "observedGeneration": int(seen)},
                labels=labels,
                ownerReferences=owned,
            )
        )
        for ordinal, revision in ((1000, "one"), (1001, "one"), (1002, "two")):
            cache.pods.upsert(self.pod(f"db-spot-{ordinal}", "db-spot", revision))
        [record] = cache.twins.find("source", DB)
        twin = Observer(None, cache)._twin(record, NOW)  # type: ignore[arg-type] # noqa: SLF001
        assert (twin.pool, twin.first_ordinal, twin.partition) == (Pool.SPOT, 1000, partition)
        assert {rs.name: rs.status_replicas for rs in twin.replica_sets[1:]} == old
        assert sum(rs.spec_replicas for rs in twin.replica_sets) == twin.spec_replicas

    def test_both_kinds_in_one_indexer(self) -> None:
        """A complete list of StatefulSets says nothing about Deployments, and its items learn their kind."""
        cache = self.cache()
        deployment = {**stateful_set("web", labels={LABEL_SPLIT: "enabled"}), "kind": "Deployment"}
        cache.sources.upsert(deployment)
        listed = {key: value for key, value in stateful_set().items() if key != "kind"}
        part = cache.sources.of_kind(STATEFUL_SET, lambda record: record.kind == STATEFUL_SET)
        part.replace([part.read(listed)], None, 9)
        assert {record.view.key.kind for record in cache.sources.values()} == {"Deployment", STATEFUL_SET}


class TestThePlaceholder:
    """What a placeholder on spot would ask an autoscaler for."""

    @staticmethod
    def split(**spec: Any) -> Raw:  # noqa: ANN401 - fields of a spec
        """Return the Split of db."""
        source = {"kind": STATEFUL_SET, "name": "db"}
        return {
            "metadata": metadata("db-sts"),
            "spec": {"source": source, "takeOver": True, **spec},
            "status": {"state": "Held"},
        }

    @pytest.mark.parametrize(("ordinals", "asks"), [([0], True), ([], True), (None, False)])
    async def test_is_known_before_there_is_one(self, ordinals: list[int] | None, asks: bool) -> None:
        """Spot nodes only, with what they have to be tolerated for; of twins there is none."""
        reservations = rules_of(Settings()).reservations
        observer = Observer(None, Cache(partial(assess), nobody), reservations)  # type: ignore[arg-type]
        source = parse.source(stateful_set(labels={LABEL_SPLIT: "enabled"})).view
        split = parse.split(self.split(**({} if ordinals is None else {"onDemandOrdinals": ordinals})))
        pod_request = observer._held_request(source, split)  # noqa: SLF001
        assert (pod_request is not None) is asks
        if pod_request is not None:
            assert pod_request.affinity
            assert {one.key for one in pod_request.tolerations} >= {"cloud.google.com/gke-spot"}

    async def test_of_more_than_a_placeholder_may_ask(self) -> None:
        """None can be made, and the plan says so: the look at the workload goes on."""
        reservations = rules_of(Settings()).reservations
        observer = Observer(None, Cache(partial(assess), nobody), reservations)  # type: ignore[arg-type]
        raw = stateful_set(labels={LABEL_SPLIT: "enabled"})
        types = {"key": "type", "operator": "In", "values": [f"m{k}" for k in range(40)]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [types]}] * 20}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
        raw["spec"]["template"]["spec"]["affinity"] = affinity
        split = parse.split(self.split(onDemandOrdinals=[0]))
        assert observer._held_request(parse.source(raw).view, split) is None  # noqa: SLF001

    @pytest.mark.parametrize(("state", "woken"), [("Held", [DB]), ("Steady", [])])
    async def test_news_of_capacity_wake_who_waits(self, state: str, woken: list[Key]) -> None:
        """Who stands where it is wanted has nothing to hear."""
        calls: list[Key] = []

        def enqueue(key: Key, *, urgent: bool) -> None:
            assert not urgent
            calls.append(key)

        cache = Cache(partial(assess), enqueue)
        raw = self.split(onDemandOrdinals=[0])
        raw["status"]["state"] = state
        cache.splits.upsert(raw)
        claim = metadata("claim", namespace="")
        cache.external_signals.claims.upsert({"metadata": claim})
        calls.clear()
        event = {"reason": "InsufficientCapacityError", "message": "no spot", "lastTimestamp": CREATED}
        about = {"kind": "NodeClaim", "name": "claim", "uid": claim["uid"]}
        cache.external_signals.refusals.upsert(
            {"metadata": metadata("refused"), "involvedObject": about, **event}
        )
        assert calls == woken

    @pytest.mark.parametrize(("ordinals", "replicas"), [([0, 1], 9), (None, 3)])
    async def test_a_saved_count_is_of_twins_only(
        self, ordinals: list[int] | None, replicas: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An old export may bring it to a StatefulSet that is placed, where N is what it asks for."""
        cache = Cache(partial(assess), nobody)
        annotations = {"splitter.io/replicas": '{"replicas":3,"left":0}'}
        labels = {LABEL_SPLIT: "enabled"}
        cache.sources.upsert(stateful_set(spec={"replicas": 9}, labels=labels, annotations=annotations))
        cache.splits.upsert(self.split(**({} if ordinals is None else {"onDemandOrdinals": ordinals})))
        observer = Observer(None, cache)  # type: ignore[arg-type]
        monkeypatch.setattr(observer, "_look_around", self.around)
        source = (await observer.observe(DB, NOW)).source
        assert source is not None
        assert source.replicas == replicas

    @staticmethod
    async def around(*_: object) -> RelatedObjects:
        """See that the policy is not there."""
        return RelatedObjects(unplaceable="the policy is not there")

    @pytest.mark.parametrize(("state", "placed", "looks"), [("Held", True, True), ("Held", False, False)])
    async def test_who_waits_for_the_policy_looks_for_it(
        self, state: str, placed: bool, looks: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is what a member in placement mode may be held for; others are looked at when they rest."""
        cache = Cache(partial(assess), nobody)
        cache.sources.upsert(stateful_set(labels={LABEL_SPLIT: "enabled"}))
        raw = self.split(**({"onDemandOrdinals": [0]} if placed else {}))
        raw["status"]["state"] = state
        cache.splits.upsert(raw)
        observer = Observer(None, cache)  # type: ignore[arg-type]
        monkeypatch.setattr(observer, "_look_around", self.around)
        assert bool((await observer.observe(DB, NOW)).related.unplaceable) is looks
