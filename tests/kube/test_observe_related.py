"""When an observer looks for what no watch tells of, and what it goes by meanwhile."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from builders import NOW, free_source, split
from splitter.core.model import RelatedObjects, SplitView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import assess
from splitter.core.stateful import StatefulView
from splitter.kube import observe
from splitter.kube.cache import Cache
from splitter.kube.client import Json
from splitter.kube.observe import Observer

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


async def test_at_rest_it_looks_every_five_minutes(around: Around) -> None:
    """No more than that: each look costs requests."""
    for _ in range(20):
        await around.known(PLACED, after_s=60.0)
    assert around.looks == 4
