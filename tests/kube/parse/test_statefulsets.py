"""Reading StatefulSets: who writes their count, what is rolled, and the objects as one Observation."""

import json
from functools import partial
from typing import Any

import pytest

from kube.raw import CREATED, Raw, metadata, owner
from splitter.assembly import rules_of
from splitter.core.actions import SaveReplicas
from splitter.core.labels_annotations import LABEL_POOL, LABEL_SOURCE, LABEL_SPLIT
from splitter.core.model import Attachment, Pool, RelatedObjects
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import assess
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.observe import Observer
from splitter.kube.parse.fields import instant
from splitter.kube.payloads import released, saved_replicas, template_of_revision
from splitter.settings import Settings

NOW = instant("2026-01-05T10:00:00Z")
DB = Key(STATEFUL_SET, "shop", "db")


def stateful_set(
    name: str = "db",
    *,
    spec: Raw | None = None,
    status: Raw | None = None,
    **fields: Any,  # noqa: ANN401 (fields of metadata)
) -> Raw:
    """Return a StatefulSet of 3 pods, all of revision `one`."""
    return {
        "kind": "StatefulSet",
        "metadata": metadata(name, **fields),
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **(spec or {}),
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 3,
            "availableReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": "one",
            "updateRevision": "one",
            **(status or {}),
        },
    }


def nobody(key: Key, *, urgent: bool) -> None:
    """Enqueue nobody."""
    del key, urgent


def written(manager: str, operation: str = "Update", time: str = CREATED) -> Raw:
    """Return an entry of managedFields that owns spec.replicas."""
    fields: Raw = {"f:spec": {"f:replicas": {}}}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}


class TestSources:
    def test_untouched(self) -> None:
        """N is what it asks for; there may be one member beside the others, and one may be missing."""
        view = parse.source(stateful_set()).view
        assert view.key == DB
        assert (view.replicas, view.max_surge, view.max_unavailable) == (3, 1, 1)
        assert view.rollout_complete
        assert view.selector == "app=db"
        assert view.stateful is not None
        assert (view.stateful.saved, view.stateful.service) == (None, "db")

    @pytest.mark.parametrize(
        ("written", "at_once"),
        [(None, 1), (2, 2), ("40%", 2), ("1%", 1), ("0%", 1), (0, 1), ("9" * 5000 + "%", 1), ("x", 1)],
    )
    def test_how_many_its_update_takes_at_a_time(self, written: object, at_once: int) -> None:
        """`rollingUpdate.maxUnavailable`, a share rounded up; what cannot be read is the default."""
        rolling = {} if written is None else {"maxUnavailable": written}
        spec = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}, "minReadySeconds": 30}
        result = parse.source(stateful_set(spec=spec)).view.stateful
        assert result is not None
        assert (result.update_at_once, result.min_ready_s) == (at_once, 30.0)

    def test_split(self) -> None:
        """At 0, N is what was saved."""
        saved = {"splitter.io/replicas": '{"replicas":5,"left":0}'}
        view = parse.source(stateful_set(spec={"replicas": 0}, annotations=saved)).view
        assert view.replicas == 5
        assert view.stateful is not None
        assert (view.stateful.spec_replicas, view.stateful.saved, view.stateful.left) == (0, 5, 0)

    def test_a_roll(self) -> None:
        """Two revisions are a rollout in progress."""
        assert not parse.source(stateful_set(status={"updateRevision": "two"})).view.rollout_complete

    @pytest.mark.parametrize(
        ("entries", "applied", "declared_by"),
        [
            ([], None, ""),
            ([written("kubectl-client-side-apply")], {"replicas": 3}, ""),
            ([written("kubectl", "Apply")], None, ""),
            ([written("argocd-controller", "Apply")], None, "argocd-controller"),
            ([written("argocd-controller")], {"replicas": 3}, "argocd-controller"),
            ([written("argocd-controller")], {}, ""),  # the line was taken out of the manifest since
            ([written("kustomize-controller", "Apply")], None, "kustomize-controller"),
            ([written("splitter")], None, ""),
        ],
    )
    def test_who_declares_replicas(self, entries: list[Raw], applied: Raw | None, declared_by: str) -> None:
        """A GitOps manager that applies them again and again; a person who did once is none."""
        last = "kubectl.kubernetes.io/last-applied-configuration"
        annotations = {} if applied is None else {last: json.dumps({"spec": applied})}
        view = parse.source(stateful_set(managedFields=entries, annotations=annotations)).view
        assert view.stateful is not None
        assert view.stateful.declared_by == declared_by

    def test_who_wrote_last(self) -> None:
        """The newest of others; our own write is nobody's."""
        entries = [
            written("helm", time="2026-01-05T09:00:00Z"),
            written("kubectl", time="2026-01-05T09:10:00Z"),
            written("splitter", time="2026-01-05T09:20:00Z"),
        ]
        view = parse.source(stateful_set(managedFields=entries)).view
        assert view.stateful is not None
        assert view.stateful.writer == "kubectl"


class TestBodies:
    def test_saving_is_guarded(self) -> None:
        """It fails when somebody has written since."""
        assert saved_replicas(SaveReplicas(5, 5, "7"))["metadata"]["resourceVersion"] == "7"

    @pytest.mark.parametrize(
        ("entries", "kept"),
        [([written("splitter"), written("kubectl")], [written("kubectl")]), ([written("splitter")], [{}])],
    )
    def test_release(self, entries: list[Raw], kept: list[Raw]) -> None:
        """Our name goes from the writers, too: left there, an apply of its user would be a conflict."""
        body = released(stateful_set(managedFields=entries))["metadata"]
        assert body["managedFields"] == kept
        assert body["annotations"] == {"splitter.io/taken-over": None, "splitter.io/replicas": None}

    def test_template_of_a_revision(self) -> None:
        """Without the directive that makes it a patch."""
        data = {"spec": {"template": {"$patch": "replace", "spec": {}, "metadata": {}}}}
        assert template_of_revision({"data": data}) == {"spec": {}, "metadata": {}}


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
        calls.clear()
        event = {"reason": "InsufficientCapacityError", "message": "no spot", "lastTimestamp": CREATED}
        about = {"kind": "NodeClaim", "name": "claim", "uid": "uid-claim"}
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
