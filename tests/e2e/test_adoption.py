"""Labelling restarts nobody, and neither does giving back: the same pods run, and no Service loses one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lab.demo.watching import Watch
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox import Instant

pytestmark = pytest.mark.e2e

N = 8
# Half of the pods may stay on each side, whatever the scheduler has chosen.
FROZEN = {"splitter.io/freeze": "true"}
SERVICE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


class Addresses:
    """The ready addresses of a Service, at every change of its EndpointSlices."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slices: dict[str, frozenset[str]] = {}
        self._all: list[frozenset[str]] = []

    def changed(self, at: Instant, raw: JsonObject, deleted: bool) -> None:
        """Take note of a slice as it is now."""
        del at
        endpoints = [] if deleted else raw.get("endpoints") or []
        ready = [one for one in endpoints if one.get("conditions", {}).get("ready", True)]
        with self._lock:
            result = frozenset(address for one in ready for address in one["addresses"])
            self._slices[raw["metadata"]["name"]] = result
            self._all.append(frozenset().union(*self._slices.values()))

    @property
    def now(self) -> frozenset[str]:
        """Return those of this moment."""
        with self._lock:
            return self._all[-1] if self._all else frozenset()

    @property
    def lost(self) -> frozenset[str]:
        """Return those that were ready once and were not at a later change."""
        with self._lock:
            ever: frozenset[str] = frozenset()
            lost: frozenset[str] = frozenset()
            for ready in self._all:
                lost |= ever - ready
                ever |= ready
            return lost


class Windows:
    """How long each pod had no owner, every time."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self.seconds: list[float] = []

    def changed(self, at: Instant, raw: JsonObject, deleted: bool) -> None:
        """Take note of a pod as it is now."""
        uid = raw["metadata"]["uid"]
        if not deleted and not raw["metadata"].get("ownerReferences"):
            self._since.setdefault(uid, at.monotonic_s)
        elif uid in self._since:
            self.seconds.append(at.monotonic_s - self._since.pop(uid))


@contextmanager
def owned(shop: Shop) -> Iterator[Windows]:
    """Follow the owners of all pods."""
    windows = Windows()
    with Watch(shop.sandbox.api, f"/api/v1/namespaces/{shop.namespace}/pods", windows.changed):
        yield windows


@contextmanager
def served(shop: Shop) -> Iterator[Addresses]:
    """Follow the Service of `web` once all of its pods are behind it."""
    shop.apply(SERVICE)
    addresses = Addresses()
    path = f"/apis/discovery.k8s.io/v1/namespaces/{shop.namespace}/endpointslices"
    with Watch(shop.sandbox.api, path, addresses.changed):
        shop.until(lambda: len(addresses.now) == N, f"{N} addresses behind the Service")
        yield addresses


def by_pool(shop: Shop) -> dict[str, set[str]]:
    """Return the UIDs of the pods by the twin that owns them."""
    values: dict[str, set[str]] = {"on-demand": set(), "spot": set()}
    for pod in shop.pods():
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        values["spot" if owner.startswith("web-spot-") else "on-demand"].add(pod["metadata"]["uid"])
    return values


def by_node(shop: Shop) -> dict[str, set[str]]:
    """Return the UIDs of the pods by the kind of the node that they are on."""
    values: dict[str, set[str]] = {"on-demand": set(), "spot": set()}
    for pod in shop.pods():
        kind = "spot" if pod["spec"]["nodeName"].startswith("spot") else "on-demand"
        values[kind].add(pod["metadata"]["uid"])
    return values


class TestPods:
    def test_go_to_the_twin_of_their_node_and_back(
        self, shop: Shop, record_property: Callable[[str, object], None]
    ) -> None:
        """All of them run on, the Service loses none, and no label of ours is left."""
        shop.deploy(replicas=N, annotations=FROZEN)
        before = by_node(shop)
        assert all(before.values()), "the scheduler has spread them"
        with served(shop) as addresses, owned(shop) as windows, shop.watch() as watched:
            began = Instant.now().monotonic_s
            shop.label()
            shop.says("Frozen")
            record_property(f"{N} pods taken over; after, s", Instant.now().monotonic_s - began)
            assert by_pool(shop) == before
            began = Instant.now().monotonic_s
            shop.unlabel()
            shop.wait_given_back()
            record_property(f"{N} pods given back; after, s", Instant.now().monotonic_s - began)
            assert watched.lowest() == watched.highest() == N
            assert addresses.lost == frozenset()
            shop.until(lambda: len(windows.seconds) >= 2 * N, "both changes of each pod's owner to be seen")
        assert len(windows.seconds) == 2 * N
        for seconds in windows.seconds:
            record_property(f"a pod of {N} has no owner, s", seconds)
        assert shop.pod_uids() == before["on-demand"] | before["spot"]
        assert all("splitter.io/pool" not in pod["metadata"]["labels"] for pod in shop.pods())
