"""Which watches are current: as much stands still as needs one that is not, and the others go on."""

import asyncio
import logging
from dataclasses import dataclass, field

import pytest

from splitter.kube.client import ApiError
from splitter.kube.views import ALL, Views
from splitter.kube.watch import Reflector


@dataclass(eq=False)
class Followed:
    """A watch as `Views` looks at it."""

    path: str
    namespace: str = ALL
    awaited: bool = True
    failing: bool = False
    follows: bool = True
    error: str = ""
    denied: int = 0
    lists: int = 0
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def list_once(self) -> None:
        """List what others have written."""
        self.lists += 1
        if self.denied:
            self.denied -= 1
            raise ApiError(403, "Forbidden", f"may not list {self.path}")

    def seen(self) -> "Followed":
        """Return the same with its first list."""
        self.synced.set()
        self.answered.set()
        return self


def of(*followed: Followed, written: tuple[Followed, ...] = (), **given: object) -> Views:
    """Return the views of these."""
    return Views(followed, written, **given)  # type: ignore[arg-type] # stand-ins, as far as they are looked at


def same(one: Reflector | None, other: Followed | None) -> bool:
    """Whether a watch is this stand-in."""
    return one is other  # type: ignore[comparison-overlap]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have all waits pass at once, and return how long they would have been."""
    waited: list[float] = []

    async def passed(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", passed)
    return waited


class TestFailing:
    def test_of_a_namespace_stops_that_one_alone(self) -> None:
        """What all need stops all."""
        nodes, shop = Followed("nodes"), Followed("pods of shop", "shop")
        views = of(nodes, shop, Followed("pods of bank", "bank"))
        assert views.namespaces == ["shop", "bank"]
        assert views.failing() == []
        shop.failing = True
        assert same(views.failing_for("shop"), shop)
        assert views.failing_for("bank") is None
        nodes.failing = True
        assert same(views.failing_for("bank"), nodes)
        assert len(views.failing()) == 2

    def test_of_what_nobody_needs_stops_nobody(self) -> None:
        """Something works less well without it, and says so itself."""
        views = of(Followed("events", awaited=False, failing=True))
        assert views.failing() == []
        assert views.failing_for("shop") is None


class TestFilled:
    async def test_waits_for_what_all_need(self) -> None:
        """And names what did not come."""
        nodes = Followed("nodes")
        late = await of(nodes, Followed("pods").seen()).filled(0.01)
        assert [str(one.path) for one in late] == ["nodes"]
        nodes.seen()
        assert await of(nodes).filled(0.01) == []

    async def test_a_namespace_that_is_refused_blocks_nobody(self) -> None:
        """Another one is there; where all are refused there is nothing to look after."""
        shop, bank = Followed("shop", "shop"), Followed("bank", "bank").seen()
        shop.answered.set()
        assert await of(Followed("nodes").seen(), shop, bank).filled(0.01) == []
        bank.synced.clear()
        late = await of(Followed("nodes").seen(), shop, bank).filled(0.01)
        assert [str(one.path) for one in late] == ["shop", "bank"]

    async def test_of_nothing(self) -> None:
        """Nothing is followed."""
        assert await Views().filled(0.01) == []


class TestCatchUp:
    def test_who_leads_from_now_on_knows_nothing_yet(self) -> None:
        """Others have written until now."""
        views = of(Followed("nodes"), Followed("shop", "shop"))
        assert views.is_current("shop")
        assert views.waiting_s == 0.0
        views.begin()
        assert not views.is_current("shop")
        assert views.waiting_s > 0.0

    def test_of_which_not_all_is_kept(self) -> None:
        """Nothing is decided in a namespace that is over its share of memory; the others go on."""
        views = Views(crowded=lambda namespace: namespace == "evil")
        assert views.is_current("shop")
        assert not views.is_current("evil")

    async def test_lists_what_others_have_written_before_it_goes_on(self, waits: list[float]) -> None:
        """Of the namespace alone; where nobody else may have led nothing is listed."""
        splits, other = Followed("splits", "shop"), Followed("splits of bank", "bank")
        views = of(Followed("nodes"), splits, other, written=(splits, other))
        views.begin()
        await views.catch_up(after_others=False)
        assert not views.is_current("shop"), "its own is not seen yet"
        await views.catch_up("shop", after_others=True)
        assert views.is_current("shop")
        assert not views.is_current("bank")
        assert (splits.lists, other.lists, waits) == (1, 0, [])

    async def test_tries_until_it_can_be_seen(
        self, waits: list[float], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Ever less often; it is said once what is in the way, and that it is over."""
        caplog.set_level(logging.INFO)
        splits = Followed("splits", "shop", denied=3)
        views = of(splits, written=(splits,))
        views.begin()
        await views.catch_up(after_others=False)
        await views.catch_up("shop", after_others=True)
        assert views.is_current("shop")
        assert waits == sorted(waits)
        assert len(waits) == 3
        assert [record.getMessage() for record in caplog.records] == [
            "nothing is done in namespace shop until it can be seen: 403 Forbidden: may not list splits",
            "namespace shop is looked after from now on",
        ]

    async def test_a_watch_that_does_not_follow_is_looked_at_again_soon(
        self, waits: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It mends itself: nobody is asked."""
        nodes = Followed("nodes", follows=False)

        async def passed(seconds: float) -> None:
            waits.append(seconds)
            nodes.follows = len(waits) == 3

        monkeypatch.setattr(asyncio, "sleep", passed)
        views = of(nodes)
        views.begin()
        await views.catch_up(after_others=True)
        assert waits == [0.2, 0.2, 0.2]

    async def test_rights_that_are_missing_are_asked_for_once_a_minute(self, waits: list[float]) -> None:
        """Each time is some forty questions; nothing is listed before."""
        answers = ["may not list pods", "may not list pods", ""]
        asked: list[str] = []

        async def missing(namespace: str) -> str:
            asked.append(namespace)
            return answers[len(asked) - 1]

        splits = Followed("splits", "shop")
        views = of(splits, written=(splits,), missing_rights=missing)
        views.forbid(["shop"])
        views.begin()
        await views.catch_up("shop", after_others=True)
        assert (asked, waits, splits.lists) == (["shop"] * 3, [60.0, 60.0], 1)
        await views.catch_up("shop", after_others=False)
        assert asked == ["shop"] * 3, "what was granted is not asked for again"
