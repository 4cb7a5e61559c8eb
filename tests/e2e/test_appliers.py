"""A GitOps tool applies the manifest of the source again and again; `kubectl edit` and `replace` write it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from e2e.support.appliers import (
    REPLICAS,
    SURGE,
    generations,
    rolled_once,
    server_side,
    wanted,
)
from lab.fixtures.shop import JsonObject, Shop

pytestmark = pytest.mark.e2e

# A GitOps tool writes every few minutes; this is several times within each step of a hand-over.
AT_LEAST, EVERY_S = 5, 0.2

Apply = Callable[[Shop, JsonObject], None]


class Loop:
    """A tool that applies what is wanted over and over, from a thread of its own."""

    def __init__(self, shop: Shop, apply: Apply, wanted: JsonObject) -> None:
        self.wanted = wanted
        self.times = 0
        self._shop = shop
        self._apply = apply
        self._ending = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="applier", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """End. Raises what ended it before."""
        self._ending.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def often(self) -> None:
        """Wait until it has applied what is wanted now, several times."""
        before = self.times
        self._shop.until(lambda: self._fault or self.times > before + AT_LEAST, "the tool to apply again")

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._apply(self._shop, self.wanted)
                self.times += 1
                self._ending.wait(EVERY_S)
        except Exception as fault:  # noqa: BLE001 - told by whoever waits
            self._fault = fault


@contextmanager
def applied_over_and_over(shop: Shop, apply: Apply, wanted: JsonObject) -> Iterator[Loop]:
    """Have a tool apply a manifest from now on."""
    loop = Loop(shop, apply, wanted)
    loop.start()
    try:
        yield loop
    finally:
        loop.end()


class TestLoop:
    def test_a_whole_life(self, shop: Shop) -> None:
        """Applied over and over it is taken over, rolled and given back as ever: no pause undone, no dip."""
        server_side(shop, wanted())
        shop.wait_rolled_out()
        with applied_over_and_over(shop, server_side, wanted()) as loop, shop.watch() as watched:
            loop.often()
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            before = generations(shop)
            loop.often()
            assert generations(shop) == before
            loop.wanted = wanted(image="web:2")
            shop.until(lambda: shop.images() == {"web:2": REPLICAS}, "web:2 everywhere")
            shop.wait_split(on_demand=1, spot=3)
            loop.often()
            assert generations(shop) == {pool: count + 1 for pool, count in before.items()}
            shop.unlabel()
            shop.wait_given_back()
            loop.often()
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE
        assert shop.deployments() == {"web"}
        shop.wait_posted()
        assert not shop.events("ForeignWrite")


class TestByHand:
    """The verbs of kubectl that change a Deployment, on the source."""

    @pytest.fixture
    def shop(self, shop: Shop) -> Shop:
        """Return a namespace with `web` split into 1 + 3."""
        shop.apply(wanted())
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        return shop

    def test_edit_and_replace(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """`kubectl edit`, and `kubectl replace` of what was got and changed, roll both twins once each."""
        monkeypatch.setenv("KUBE_EDITOR", "sed -i s/web:1/web:2/")
        with rolled_once(shop):
            shop.kubectl("edit", "deployment", "web")
            shop.until(lambda: shop.images() == {"web:2": REPLICAS}, "web:2 everywhere")
        with rolled_once(shop):
            got = shop.kubectl("get", "deployment", "web", "-o", "json")
            shop.kubectl("replace", "-f", "-", stdin=got.replace("web:2", "web:3"))
            shop.until(lambda: shop.images() == {"web:3": REPLICAS}, "web:3 everywhere")
