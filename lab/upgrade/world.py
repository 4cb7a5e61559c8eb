"""Workloads split in every mode: what a version leaves in a cluster, and what another must not touch."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from lab.fixtures.database import Database
from lab.fixtures.placed import PLACES, Placed
from lab.fixtures.shop import JsonObject, Shop, Watched
from lab.sandbox.waiting import wait_until

REPLICAS, MEMBERS = 6, 5
# How many of them splitter promises at any time: a StatefulSet in twins has no surge.
FLOORS = {"web": REPLICAS, "twins": MEMBERS - 1, "placed": MEMBERS - 1}
DEADLINE_S = 180.0
# What splitter could have written, of each namespace.
_KINDS = (
    "/apis/apps/v1/{}/deployments",
    "/apis/apps/v1/{}/statefulsets",
    "/apis/apps/v1/{}/replicasets",
    "/apis/splitter.io/v1alpha1/{}/splits",
    "/apis/splitter.io/v1alpha1/{}/placements",
    "/api/v1/{}/services",
    "/apis/policy/v1/{}/poddisruptionbudgets",
)


@dataclass(frozen=True)
class World:
    """A Deployment `web` and a StatefulSet `db` in twins in one namespace, a placed one in another."""

    first: Shop
    second: Shop

    @property
    def database(self) -> Database:
        """The StatefulSet in twins."""
        return Database(self.first)

    @property
    def placed(self) -> Placed | None:
        """The StatefulSet that is split by placing its own pods, where this Kubernetes can."""
        return Placed(self.second) if PLACES else None

    def create(self) -> None:
        """Create the workloads, unsplit."""
        self.first.deploy(replicas=REPLICAS, annotations={"splitter.io/on-demand-base": "2"})
        self.database.deploy(MEMBERS)
        if self.placed is not None:
            self.placed.create(MEMBERS)

    def split(self) -> None:
        """Label them, and wait until all are split and at rest."""
        self.first.label()
        self.database.label()
        if self.placed is not None:
            self.placed.label()
        self.wait_split()
        # The last pod of a source may still be ending, which nobody has replaced.
        wait_until(lambda: not self.ending(), what="the sources' own pods to end", deadline_s=DEADLINE_S)

    def wait_split(self, web: tuple[int, int] = (2, 4)) -> None:
        """Wait until all stand as their policies say, and their Splits say so."""
        self.wait_standing(web)
        self.wait_steady()

    def wait_standing(self, web: tuple[int, int] = (2, 4)) -> None:
        """Wait until all pods stand as their policies say, ready, whoever looks after them."""
        self.first.wait_split(*web)
        self.database.wait_split(3, 2)
        if self.placed is not None:
            self.placed.wait_placed([0, 1, 2], [3, 4])

    def wait_steady(self) -> None:
        """Wait until the Splits say that all is steady, of the sources as they are now."""
        self.first.wait_steady()
        self.database.wait_steady()
        if self.placed is not None:
            self.placed.wait_steady()

    def give_back(self) -> None:
        """Take the labels off, and wait until nothing of splitter's is left."""
        self.first.unlabel()
        self.database.unlabel()
        self.first.wait_given_back()
        self.database.wait_given_back()
        if self.placed is not None:
            self.placed.unlabel()
            self.placed.wait_unplaced()

    def ending(self) -> list[str]:
        """Return the pods that were asked to end, and are still there."""
        return [raw["metadata"]["name"] for raw in self._pods() if "deletionTimestamp" in raw["metadata"]]

    def pods(self) -> dict[str, tuple[str, int]]:
        """Return the UID of each pod and how often its containers have restarted, by namespace and name."""
        collected = {}
        for raw in self._pods():
            metadata = raw["metadata"]
            restarts = sum(one["restartCount"] for one in raw["status"].get("containerStatuses", ()))
            collected[f"{metadata['namespace']}/{metadata['name']}"] = (metadata["uid"], restarts)
        return collected

    def _pods(self) -> Iterator[JsonObject]:
        for shop in (self.first, self.second):
            yield from shop.sandbox.api.list(f"/api/v1/namespaces/{shop.namespace}/pods")

    def states(self) -> dict[str, object]:
        """Return what the Splits say."""
        collected: dict[str, object] = {"web": self.first.status(), "twins": self.database.status()}
        return collected | ({"placed": self.placed.status()} if self.placed is not None else {})

    def write_newer_format(self) -> None:
        """Write what a newer version may write one day: a format that nobody knows yet."""
        api = self.first.sandbox.api
        apps = f"/apis/apps/v1/namespaces/{self.first.namespace}"
        for path, name in (
            (f"{apps}/deployments/web", "splitter.io/taken-over"),
            (f"{apps}/statefulsets/db", "splitter.io/replicas"),
        ):
            mark = json.loads(api.get(path)["metadata"]["annotations"][name])
            api.patch(path, {"metadata": {"annotations": {name: json.dumps({**mark, "format": 3})}}})
        if self.placed is not None:
            split = f"/apis/splitter.io/v1alpha1/namespaces/{self.second.namespace}/splits/db-sts"
            api.patch(split, {"spec": {"format": 3}})

    def reported_by_all(self, reason: str, text: str) -> None:
        """Wait until an Event about each of them says so."""
        self.first.reported(reason, text)
        self.database.reported(reason, text)
        if self.placed is not None:
            self.placed.reported(reason, text)

    def versions(self) -> dict[str, str]:
        """Return the resourceVersion of every object that splitter could have written."""
        collected = {}
        for name, shop in (("first", self.first), ("second", self.second)):
            for kind in _KINDS:
                listed = shop.sandbox.api.get(kind.format(f"namespaces/{shop.namespace}"))
                for raw in listed["items"]:
                    key = f"{name}/{listed['kind'].removesuffix('List')}/{raw['metadata']['name']}"
                    collected[key] = raw["metadata"]["resourceVersion"]
        return collected

    def wait_reported(self, since: dict[str, object]) -> None:
        """Wait until each Split says something else than before: whoever runs now has looked at all."""
        wait_until(
            lambda: all(now != since[name] for name, now in self.states().items()),
            what="all Splits to be reported anew",
            deadline_s=DEADLINE_S,
            check=self.first.check,
        )

    @contextmanager
    def watch(self) -> Iterator[dict[str, Watched]]:
        """Record the pods of all."""
        with ExitStack() as stack:
            collected = {"web": stack.enter_context(self.first.watch())}
            collected["twins"] = stack.enter_context(self.database.watch())
            if self.placed is not None:
                collected["placed"] = stack.enter_context(self.placed.watch())
            yield collected


def assert_promised(watched: dict[str, Watched]) -> None:
    """Fail when fewer pods were available at any moment than splitter promises."""
    lowest = {name: one.lowest() for name, one in watched.items()}
    assert all(lowest[name] >= FLOORS[name] for name in lowest), lowest
