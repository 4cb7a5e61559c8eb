"""the EventRecorder: what is said again is counted on in its Event, and whatever fails holds up nobody."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from builders import NOW, source
from kube.server import Answer, Script, connected, hang_up, json, refusal
from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.nodes.facts import NodeState
from splitter.core.reasons import Reason
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.reconciler import events
from splitter.reconciler.events import EventRecorder
from splitter.reconciler.queue import WorkQueue

EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
LOST = Note(Reason.SPOT_LOST, "3 of 7 spot replicas are gone", warning=True)


class Town:
    """A herald, and the server to which it runs."""

    def __init__(self, crier: EventRecorder, script: Script) -> None:
        self.events = crier
        self.script = script

    async def say(self, after_s: float, *notes: Note) -> None:
        """Tell what was done so many seconds after NOW, and let the EventRecorder run."""
        self.events.tell(source(), NOW + timedelta(seconds=after_s), notes)
        await self.events.flush()

    def posted(self) -> list[tuple[str, str]]:
        """Return method and path of what arrived, names of Events left out."""
        return [
            (one.method, EVENTS if one.path.startswith(EVENTS) else one.path) for one in self.script.asked
        ]

    def body(self, number: int) -> dict[str, Any]:
        """Return what arrived with one request."""
        result = self.script.asked[number].body
        assert isinstance(result, dict)
        return result

    def name(self, number: int) -> str:
        """Return the name of the Event that a request is about."""
        asked = self.script.asked[number]
        return (
            str(self.body(number)["metadata"]["name"])
            if asked.method == "POST"
            else asked.path.split("/")[-1]
        )


def _no_node(_: object, **__: object) -> NodeState:
    raise AssertionError("no node is known")


def outcomes(name: str) -> float:
    """Return how many Events ended like this so far."""
    return REGISTRY.get_sample_value("splitter_events_total", {"outcome": name}) or 0.0


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    """Yield a herald whose server takes whatever comes."""
    script = Script().then(json({}))
    cache = Cache(_no_node, lambda *_, **__: None)
    async with connected(script) as client:
        yield Town(EventRecorder(Writer(client, cache), WorkQueue().calm), script)


class TestSeries:
    async def test_first(self, town: Town) -> None:
        """What is said for the first time is an Event without a series."""
        await town.say(0, LOST)
        assert town.posted() == [("POST", EVENTS)]
        assert "series" not in town.body(0)
        assert town.body(0)["note"] == LOST.message

    async def test_again(self, town: Town) -> None:
        """Said again, it is counted on in the same Event; nothing else of it changes."""
        for after_s in (0, 60, 120):
            await town.say(after_s, LOST)
        assert [method for method, _ in town.posted()] == ["POST", "PATCH", "PATCH"]
        assert town.name(0) == town.name(1) == town.name(2)
        assert town.body(2) == {"series": {"count": 3, "lastObservedTime": "2026-01-05T10:02:00.000000Z"}}
        assert town.script.asked[2].headers["Content-Type"] == "application/merge-patch+json"

    async def test_too_soon(self, town: Town) -> None:
        """Within a minute it is the same news, and neither said nor counted."""
        for after_s in (0, 1, 59):
            await town.say(after_s, LOST)
        assert town.posted() == [("POST", EVENTS)]

    async def test_other_words(self, town: Town) -> None:
        """Other numbers are another Event: what an Event says can never be changed."""
        await town.say(0, LOST)
        await town.say(60, Note(LOST.reason, "4 of 7 spot replicas are gone", warning=True))
        assert [method for method, _ in town.posted()] == ["POST", "POST"]

    async def test_another_object(self, town: Town) -> None:
        """A workload created anew under the same name has Events of its own."""
        await town.say(0, LOST)
        town.events.tell(source(uid="uid-another"), NOW + timedelta(seconds=60), [LOST])
        await town.events.flush()
        assert [method for method, _ in town.posted()] == ["POST", "POST"]
        assert town.body(1)["regarding"]["uid"] == "uid-another"

    async def test_while_it_waits(self, town: Town) -> None:
        """Said again before it could be posted at all, it is one Event that says so."""
        for after_s in (0, 60):
            town.events.tell(source(), NOW + timedelta(seconds=after_s), [LOST])
        await town.events.flush()
        assert town.posted() == [("POST", EVENTS)]
        assert town.body(0)["series"]["count"] == 2

    @pytest.mark.parametrize(
        "answer",
        [refusal(404, "NotFound", "not found"), refusal(403, "Forbidden", "cannot patch events")],
        ids=["forgotten", "no right to patch"],
    )
    async def test_cannot_be_counted_on(self, town: Town, answer: Answer) -> None:
        """An Event that is gone, or that we may not patch, is followed by a new one with its own series."""
        await town.say(0, LOST)
        town.script.answers.appendleft(answer)
        await town.say(60, LOST)
        await town.say(120, LOST)
        assert [method for method, _ in town.posted()] == ["POST", "PATCH", "POST", "PATCH"]
        assert "series" not in town.body(2)
        assert town.body(2)["eventTime"] == "2026-01-05T10:01:00.000000Z"
        assert town.name(2) != town.name(0)
        assert (town.name(3), town.body(3)["series"]["count"]) == (town.name(2), 2)


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "loud"),
        [
            (refusal(403, "Forbidden", "namespace shop is being terminated"), False),
            (refusal(403, "Forbidden", "you may not"), True),
            (refusal(500, "InternalError", "etcd"), True),
            (hang_up(), True),
        ],
    )
    async def test_dropped(
        self, town: Town, caplog: pytest.LogCaptureFixture, answer: Answer, loud: bool
    ) -> None:
        """What cannot be written is dropped and counted, and the next one begins anew."""
        before = outcomes("refused")
        town.script.answers.appendleft(answer)
        with caplog.at_level(logging.WARNING, logger="splitter.events"):
            await town.say(0, LOST)
        assert bool(caplog.records) is loud
        assert outcomes("refused") == before + 1
        await town.say(60, LOST)
        assert [method for method, _ in town.posted()] == ["POST", "POST"]
        assert "series" not in town.body(1)

    async def test_bounded(self, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
        """When more wait than are kept, the oldest are dropped, and counted as such."""
        monkeypatch.setattr(events, "_WAITING", 3)
        before = outcomes("dropped")
        notes = [Note(Reason.SCALED, f"scale {number}") for number in range(5)]
        await town.say(0, *notes)
        assert [body["note"] for body in map(town.body, range(3))] == ["scale 2", "scale 3", "scale 4"]
        assert outcomes("dropped") == before + 2

    async def test_shares(self, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who says very much loses words of its own, and nobody else's."""
        monkeypatch.setattr(events, "_WAITING", 3)
        town.events.tell(source(), NOW, [LOST])
        loud = replace(source(), key=Key("Deployment", "evil", "web"), uid="uid-evil")
        town.events.tell(loud, NOW, [Note(Reason.SCALED, f"scale {number}") for number in range(5)])
        await town.events.flush()
        assert [body["note"] for body in map(town.body, range(3))] == [LOST.message, "scale 3", "scale 4"]

    async def test_memory_is_bounded(self, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
        """An Event that was said too long ago to be remembered is not counted on."""
        monkeypatch.setattr(events, "_REMEMBERED", 1)
        await town.say(0, LOST, Note(Reason.SCALED, "scale 1"))
        await town.say(60, LOST)
        assert [method for method, _ in town.posted()] == ["POST", "POST", "POST"]

    async def test_leaves_time_to_others(self, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
        """After an Event nothing is posted for as long as it took, several times over."""
        paused = asyncio.Event()

        def pause_s(_took_s: float) -> float:
            paused.set()
            return 3600.0

        monkeypatch.setattr(events, "pause_s", pause_s)
        town.events.tell(source(), NOW, [LOST, Note(Reason.SCALED, "scale 1")])
        running = asyncio.create_task(town.events.run())
        async with asyncio.timeout(20):
            await paused.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running, 0.1)
        assert len(town.script.asked) == 1
        await town.events.flush()
        assert len(town.script.asked) == 2

    async def test_telling_waits_for_nobody(self, town: Town) -> None:
        """Telling is done before anything is sent: a reconcile never waits for an Event."""
        town.events.tell(source(), NOW, [LOST])
        assert town.script.asked == []
        with suppress(ApiError):
            await town.events.flush()
        assert len(town.script.asked) == 1


class TestEmergencies:
    async def test_go_first(self) -> None:
        """While somebody waits to be raised nothing is posted; afterwards all of it is."""
        script, queue = Script().then(json({})), WorkQueue()
        queue.add(source().key, urgent=True)
        async with connected(script) as client:
            town = Town(
                EventRecorder(Writer(client, Cache(_no_node, lambda *_, **__: None)), queue.calm), script
            )
            posting = asyncio.create_task(town.events.run())
            town.events.tell(source(), NOW, [LOST])
            await asyncio.wait([posting], timeout=0.05)
            assert town.posted() == []
            queue.done(await queue.take())
            while not town.posted() and not posting.done():
                await asyncio.wait([posting], timeout=0.01)
            posting.cancel()
        assert town.posted() == [("POST", EVENTS)]
