"""What the admission policy is told: one Placement a namespace, made of the Splits, written before them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from aiohttp import web

from builders import ago, free_source, observation, split
from kube.raw import metadata
from kube.server import Script, connected, refusal
from splitter.core.actions import DeleteSplit, PlaceOrdinals
from splitter.core.model import SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import assess
from splitter.core.stateful import StatefulView
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.kube.payloads import placement_split

SET = {"kind": STATEFUL_SET}
OURS = "/apis/splitter.io/v1alpha1/namespaces/shop"
PLACEMENT = f"{OURS}/placements/splitter-placement"


def stateful(name: str) -> SourceView:
    """Return a labelled StatefulSet."""
    view = StatefulView(3, 3, 3, ago(3600))
    return replace(free_source(3), key=Key(STATEFUL_SET, "shop", name), uid=f"uid-{name}", stateful=view)


def forged(owner: str, ordinal: int) -> dict[str, Any]:
    """Return a Split of `forged` that names another's UID as its owner."""
    raw = placement_split(stateful("forged"), (ordinal,))
    raw["metadata"] |= {"uid": "uid-split", "resourceVersion": "7"}
    raw["metadata"]["creationTimestamp"] = "2026-01-05T09:00:00Z"
    raw["metadata"]["ownerReferences"][0]["uid"] = owner
    return raw


class Store:
    """The splitter.io objects of one namespace, as an API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.denied = ""  # a path that may not be written
        self.dropped = ""  # a field that the kind's definition does not have
        self.restored: tuple[int, ...] = ()  # ordinals that another manager of fields has written, too
        self.version = 100

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Apply or delete an object."""
        body = orjson.loads(await request.read())
        self.version += 1
        if request.path == self.denied:
            return await refusal(500, "InternalError", "no")(request)
        asked = (body.get("metadata") or {}).get("resourceVersion")
        there = self.objects.get(request.path)
        if asked and there is not None and asked != there["metadata"]["resourceVersion"]:
            return await refusal(409, "Conflict", "the object has been modified")(request)
        self.writes.append((request.method, request.path.removeprefix(f"{OURS}/")))
        if request.method == "DELETE":
            gone = self.objects.pop(request.path)
            assert body["preconditions"]["uid"] == gone["metadata"]["uid"]
            return web.json_response({"kind": "Status"})
        uid = f"uid-of-{request.path}"
        body["metadata"] |= {"uid": uid, "resourceVersion": str(self.version)}
        body["metadata"]["creationTimestamp"] = "2026-01-05T09:00:00Z"
        body["spec"].pop(self.dropped, None)
        if there is not None and "merge-patch" in request.headers["Content-Type"]:
            body["metadata"] = {**there["metadata"], **body["metadata"]}
            body["spec"] = {**there["spec"], **body["spec"]}
            self.restored = ()
        elif "onDemandOrdinals" in body["spec"]:  # an apply leaves what is not ours alone
            body["spec"]["onDemandOrdinals"] = sorted({*body["spec"]["onDemandOrdinals"], *self.restored})
        self.objects[request.path] = body
        return web.json_response(body)

    @property
    def published(self) -> dict[str, list[tuple[int, int]]]:
        """Return the ordinals of each StatefulSet, by its name, that the policy goes by."""
        placement = self.objects.get(PLACEMENT, {"spec": {"statefulSets": {}}})
        sets = placement["spec"]["statefulSets"]
        assert all(uid == f"uid-{one['name']}" for uid, one in sets.items())
        return {
            one["name"]: [(run["first"], run["last"]) for run in one["onDemandOrdinals"]]
            for one in sets.values()
        }


class Desk:
    """A writer, its cache, and the server that it writes to."""

    def __init__(self, writer: Writer, cache: Cache, store: Store) -> None:
        self.writer = writer
        self.cache = cache
        self.store = store
        self.woken: list[Key] = []

    async def place(self, name: str, *ordinals: int) -> None:
        """Put ordinals of a StatefulSet in force."""
        key = Key(STATEFUL_SET, "shop", name)
        known = self.cache.splits.one("source", key)
        seen = observation(stateful(name), key=key, split=known.view if known is not None else None)
        await self.writer.apply(seen, (PlaceOrdinals(ordinals),))

    def node(self, name: str, **labels: str) -> dict[str, Any]:
        """Let a node be seen; returns it."""
        raw = {"metadata": {**metadata(name), "labels": labels}, "spec": {}, "status": {}}
        self.cache.nodes.upsert(raw)
        return raw

    async def end(self, name: str) -> None:
        """Give a StatefulSet back."""
        record = self.cache.splits.one("source", Key(STATEFUL_SET, "shop", name))
        assert record is not None
        seen = observation(stateful(name), split=split(uid=record.uid, ordinals=(0,)))
        await self.writer.apply(seen, (DeleteSplit(),))


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Yield a writer in front of an empty namespace."""
    store = Store()
    woken: list[Key] = []
    cache = Cache(assess, lambda key, **_: woken.append(key))
    async with connected(Script().then(store.answer)) as client:
        made = Desk(Writer(client, cache), cache, store)
        made.woken = woken
        yield made


class TestTelling:
    """Ordinals come into force."""

    async def test_before_the_split(self, desk: Desk) -> None:
        """So what a Split says has been told, wherever the process ends."""
        await desk.place("db", 0, 1, 2, 4)
        assert desk.store.writes == [("PATCH", "placements/splitter-placement"), ("PATCH", "splits/db-sts")]
        assert desk.store.published == {"db": [(0, 2), (4, 4)]}
        assert desk.cache.placements.published("shop", "uid-db") == ((0, 2), (4, 4))

    async def test_goes_with_its_statefulsets(self, desk: Desk) -> None:
        """Each owns it and none controls it, so Kubernetes collects it after the last."""
        await desk.place("db", 0)
        await desk.place("cache", 0)
        owners = desk.store.objects[PLACEMENT]["metadata"]["ownerReferences"]
        assert [(one["name"], one["uid"], one["controller"]) for one in owners] == [
            ("db", "uid-db", False),
            ("cache", "uid-cache", False),
        ]

    async def test_of_all_at_once(self, desk: Desk) -> None:
        """Whoever writes at the same moment, none is lost; an empty set is a set."""
        names = {f"db-{k}": k for k in range(8)}
        await asyncio.gather(*(desk.place(name, *range(k)) for name, k in names.items()))
        assert desk.store.published == {name: [(0, k - 1)] if k else [] for name, k in names.items()}

    async def test_together(self, desk: Desk) -> None:
        """Who waits while the policy is told something is told of in the next breath, with all who wait."""
        workers = asyncio.Semaphore(8)

        async def place(name: str) -> None:
            async with workers:
                await desk.place(name, 0, 1)

        await asyncio.gather(*(place(f"db-{k}") for k in range(40)))
        assert desk.store.writes.count(("PATCH", "placements/splitter-placement")) <= 12
        assert desk.store.published == {f"db-{k}": [(0, 1)] for k in range(40)}

    async def test_one_of_many_that_could_not_be_written(self, desk: Desk) -> None:
        """What it wanted is told until its write has failed, and then what its Split says."""
        desk.store.denied = f"{OURS}/splits/db-3-sts"
        result = await asyncio.gather(*(desk.place(f"db-{k}", 0) for k in range(5)), return_exceptions=True)
        assert [k for k, one in enumerate(result) if isinstance(one, ApiError)] == [3]
        await desk.place("db-4", 0, 1)
        assert desk.store.published == {
            "db-0": [(0, 0)],
            "db-1": [(0, 0)],
            "db-2": [(0, 0)],
            "db-4": [(0, 1)],
        }

    async def test_a_split_that_could_not_be_written(self, desk: Desk) -> None:
        """It was published too early; the next reconcile publishes the same, and others what Splits say."""
        await desk.place("db", 0)
        desk.store.denied = f"{OURS}/splits/db-sts"
        with pytest.raises(ApiError):
            await desk.place("db", 0, 1)
        assert desk.store.published == {"db": [(0, 1)]}
        desk.store.denied = ""
        await desk.place("cache", 0)
        assert desk.store.published == {"db": [(0, 0)], "cache": [(0, 0)]}
        await desk.place("db", 0, 1)
        assert desk.store.published == {"db": [(0, 1)], "cache": [(0, 0)]}

    async def test_what_is_told_already(self, desk: Desk) -> None:
        """Is not written again: it was the Split that was missing."""
        await desk.place("db", 0)
        desk.store.writes.clear()
        await desk.place("db", 0)
        assert desk.store.writes == [("PATCH", "splits/db-sts")]

    async def test_ordinals_that_another_has_written_too(self, desk: Desk) -> None:
        """Restored out of a backup, or edited: an apply would leave them for ever, and nobody be moved."""
        desk.store.restored = (3, 4)
        await desk.place("db", 0, 1, 2)
        record = desk.cache.splits.one("source", Key(STATEFUL_SET, "shop", "db"))
        assert record is not None
        assert record.spec.ordinals == (0, 1, 2)
        assert desk.store.objects[f"{OURS}/splits/db-sts"]["spec"]["takeOver"] is True
        assert desk.store.writes.count(("PATCH", "splits/db-sts")) == 2
        desk.store.writes.clear()
        await desk.place("db", 0, 1)
        assert desk.store.writes.count(("PATCH", "splits/db-sts")) == 1

    async def test_an_older_definition_without_ordinals(self, desk: Desk) -> None:
        """What it drops is not sent twice."""
        desk.store.dropped = "onDemandOrdinals"
        await desk.place("db", 0)
        assert desk.store.writes.count(("PATCH", "splits/db-sts")) == 1

    async def test_what_is_left_of_the_dead(self, desk: Desk) -> None:
        """A StatefulSet that was deleted goes with the next write: its Split was collected."""
        await desk.place("old", 0)
        await desk.place("db", 0)
        [gone] = [one for one in desk.cache.splits.values() if one.source.name == "old"]
        desk.cache.splits.forget(gone.uid)
        await desk.place("db", 0, 1)
        assert desk.store.published == {"db": [(0, 1)]}

    async def test_an_owner_that_a_split_invents(self, desk: Desk) -> None:
        """Is not named: whoever may write Splits may write any UID there. One without a label stays named."""
        await desk.place("db", 0)
        assert desk.cache.sources.get("shop", "uid-db") is None
        desk.cache.splits.upsert(forged("uid-of-another-tenants", 0))
        await desk.place("cache", 0)
        assert set(desk.store.published) == {"db", "cache"}

    async def test_another_workload_that_a_split_says_it_is_of(self, desk: Desk) -> None:
        """It says nothing of that one, though the policy knows its UID: there is one Split for each."""
        await desk.place("db", 0, 1)
        desk.cache.splits.upsert(forged("uid-db", 2))
        await desk.place("cache", 0)
        assert desk.store.published == {"db": [(0, 1)], "cache": [(0, 0)]}


KARPENTER, GKE = "karpenter.sh/capacity-type", "cloud.google.com/gke-spot"


class TestTwoLeaders:
    """One leads, and another one that led before is not quite dead."""

    async def test_who_led_before_changes_nothing(self, desk: Desk) -> None:
        """Its cache stands still, and what it sent arrives late: no ordinal that was told since is lost."""
        async with connected(Script().then(desk.store.answer)) as client:
            cache = Cache(assess, lambda key, **_: None)  # noqa: ARG005
            before = Desk(Writer(client, cache), cache, desk.store)
            await before.place("db", 0)
            desk.cache.placements.written(desk.store.objects[PLACEMENT], frozenset())
            desk.cache.splits.upsert(desk.store.objects[f"{OURS}/splits/db-sts"])
            await desk.place("db", 0, 1, 2)
            await desk.place("cache", 0)
            with pytest.raises(ApiError, match="modified"):
                await before.place("db", 0, 3)
        assert desk.store.published == {"db": [(0, 2)], "cache": [(0, 0)]}
        assert desk.store.objects[f"{OURS}/splits/db-sts"]["spec"]["onDemandOrdinals"] == [0, 1, 2]
        await desk.place("db", 0, 1)
        assert desk.store.published == {"db": [(0, 1)], "cache": [(0, 0)]}


class TestSpotLabels:
    """The policy is told by what the cluster's spot nodes are known."""

    def labels(self, desk: Desk) -> list[str]:
        """Return what it has been told."""
        result: list[str] = desk.store.objects[PLACEMENT]["spec"]["spotLabels"]
        return result

    async def test_of_the_nodes_that_were_seen(self, desk: Desk) -> None:
        """Of spot nodes, not of others; they stay when the node goes, for it may come back."""
        desk.node("a", **{KARPENTER: "spot", "team": "b"})
        desk.node("b", **{"cloud.google.com/gke-provisioning": "standard"})
        desk.cache.nodes.remove(desk.node("c", **{GKE: "true"}))
        await desk.place("db", 0)
        assert self.labels(desk) == [GKE, KARPENTER]

    async def test_none_seen(self, desk: Desk) -> None:
        """Then it is told of none, and asks for everything in the table."""
        await desk.place("db", 0)
        assert self.labels(desk) == []
        assert desk.cache.placements.knows_nodes("shop")

    async def test_a_new_kind(self, desk: Desk) -> None:
        """It wakes all that are placed, and the first of them tells; what was told stays told."""
        await desk.place("db", 0)
        await desk.place("cache", 0)
        desk.woken.clear()
        desk.node("a", **{KARPENTER: "spot"})
        assert set(desk.woken) == {Key(STATEFUL_SET, "shop", name) for name in ("db", "cache")}
        assert not desk.cache.placements.knows_nodes("shop")
        desk.store.writes.clear()
        await desk.place("db", 0)
        await desk.place("cache", 0)
        assert desk.store.writes.count(("PATCH", "placements/splitter-placement")) == 1
        assert self.labels(desk) == [KARPENTER]
        desk.woken.clear()
        desk.node("b", **{KARPENTER: "spot"})
        assert desk.woken == []

    async def test_one_more_process(self, desk: Desk) -> None:
        """What another one was told, from nodes that are gone, is not forgotten."""
        published = {"spotLabels": [GKE], "statefulSets": {"uid-db": {"name": "db", "onDemandOrdinals": []}}}
        received = {"metadata": metadata("splitter-placement", version=5), "spec": published}
        desk.cache.placements.written(received, frozenset({GKE}))
        desk.node("a", **{KARPENTER: "spot"})
        await desk.place("db", 0)
        assert self.labels(desk) == [GKE, KARPENTER]

    async def test_an_older_definition(self, desk: Desk) -> None:
        """It drops the field: told once, and not again and again."""
        desk.store.dropped = "spotLabels"
        desk.node("a", **{KARPENTER: "spot"})
        await desk.place("db", 0)
        assert desk.cache.placements.knows_nodes("shop")
        desk.store.writes.clear()
        await desk.place("db", 0)
        assert desk.store.writes == [("PATCH", "splits/db-sts")]

    async def test_taken_away_by_hand(self, desk: Desk) -> None:
        """It is told again."""
        desk.node("a", **{KARPENTER: "spot"})
        await desk.place("db", 0)
        record = desk.cache.placements.of("shop")
        assert record is not None
        edited = desk.store.objects[PLACEMENT]
        edited["metadata"]["resourceVersion"] = str(record.version + 1)
        edited["spec"]["spotLabels"] = []
        desk.woken.clear()
        desk.cache.placements.written(edited, frozenset())
        assert desk.woken == [Key(STATEFUL_SET, "shop", "db")]
        assert not desk.cache.placements.knows_nodes("shop")


class TestEnding:
    """A StatefulSet is given back."""

    async def test_told_before_the_split_goes(self, desk: Desk) -> None:
        """The others stay; with the last one the Placement goes."""
        await desk.place("db", 0)
        await desk.place("cache", 0)
        desk.store.writes.clear()
        await desk.end("db")
        assert desk.store.writes == [("PATCH", "placements/splitter-placement"), ("DELETE", "splits/db-sts")]
        assert desk.store.published == {"cache": [(0, 0)]}
        await desk.end("cache")
        assert desk.store.objects == {}

    async def test_of_twins(self, desk: Desk) -> None:
        """Who was never placed has nothing to tell the policy."""
        await desk.place("db", 0)
        desk.store.writes.clear()
        desk.store.objects[f"{OURS}/splits/web"] = {"metadata": {"uid": "uid-split"}}
        await desk.writer.apply(observation(), (DeleteSplit(),))
        assert desk.store.writes == [("DELETE", "splits/web")]


class TestForged:
    """Whoever may write a Split may write anything into it."""

    async def test_of_a_split_with_many_owners(self, desk: Desk) -> None:
        """Neither owners nor ordinals make what is told any larger: no watch shows one of these owners."""
        owners = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": f"u{n}"} for n in range(900)
        ]
        meta = metadata("cache-sts", version=1, ownerReferences=owners)
        forged = {"metadata": meta, "spec": {"onDemandOrdinals": list(range(0, 30_000, 2))}}
        record = desk.cache.splits.upsert(forged)
        assert record is not None
        await desk.place("db", 0)
        assert desk.store.published == {"db": [(0, 0)]}
        assert len(record.view.owner_uids) <= 4
        assert len(record.view.ordinals or ()) <= 1000
