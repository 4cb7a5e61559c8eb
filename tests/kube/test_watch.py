"""The reflector: a store in step with a collection, whatever happens to the list and to the watch."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from kube.raw import Raw
from kube.server import (
    Asked,
    Script,
    bookmark,
    broken,
    connected,
    error,
    event,
    open_watch,
    page,
    refusal,
    watch,
)
from kube.things import PATH, Things, thing
from splitter.kube.client import KIND_MISSING, ApiError
from splitter.kube.paths import ResourcePath
from splitter.kube.watch import _SILENCE_S, Reflector

DEADLINE_S = 20.0


class Following:
    """A running reflector, its store, and what the server was asked."""

    def __init__(self, reflector: Reflector, things: Things, script: Script) -> None:
        self.reflector = reflector
        self.things = things
        self._script = script

    @property
    def lists(self) -> list[Asked]:
        """The LIST requests so far."""
        return [asked for asked in self._script.asked if "watch" not in asked.query]

    @property
    def watches(self) -> list[Asked]:
        """The WATCH requests so far."""
        return [asked for asked in self._script.asked if "watch" in asked.query]

    async def until(self, known: dict[str, int], *, watches: int = 1) -> None:
        """Wait until just this is known and that many watches were opened."""
        await _until(lambda: self.things.known == known and len(self.watches) >= watches)

    async def until_failed(self) -> ApiError:
        """Wait until something has gone wrong."""
        await _until(lambda: self.reflector.error is not None)
        assert self.reflector.error is not None
        return self.reflector.error


async def _until(look: Callable[[], bool]) -> None:
    """Look after each turn of the event loop, until a condition holds."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE_S):
        while not look():
            turned = loop.create_future()
            loop.call_later(0.005, turned.set_result, None)
            await turned


@asynccontextmanager
async def following(
    script: Script,
    selector: str = "",
    path: ResourcePath = PATH,
    **options: Any,  # noqa: ANN401 (the reflector's)
) -> AsyncIterator[Following]:
    """Run a reflector of a scripted collection."""
    async with connected(script) as client:
        things = Things()
        reflector = Reflector(client, path, things, selector, **options)
        running = asyncio.create_task(reflector.run())
        try:
            yield Following(reflector, things, script)
            assert not running.done(), "the reflector has ended"
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


class TestPages:
    """A list of very many objects is never held as it was sent."""

    async def test_each_is_read_as_it_comes_and_all_are_heard_of_at_once(self) -> None:
        """The first page is read before the second is asked for; until the last, nobody has heard of any."""
        read: list[str] = []
        before_the_second: list[tuple[list[str], dict[str, int]]] = []

        class Reading(Things):
            def read(self, raw: Raw) -> tuple[str, int]:
                read.append(raw["metadata"]["name"])
                return super().read(raw)

        things = Reading()

        async def second(request: web.Request) -> web.StreamResponse:
            before_the_second.append((list(read), dict(things.known)))
            return await page(thing("b", 2), version=3)(request)

        script = Script().then(page(thing("a", 1), version=3, more="on"), second, open_watch())
        async with connected(script) as client:
            reflector = Reflector(client, PATH, things)
            running = asyncio.create_task(reflector.run())
            await _until(reflector.synced.is_set)
            running.cancel()
        assert before_the_second == [(["a"], {})]
        assert things.lists == [(["a", "b"], None, 3)]


class TestList:
    async def test_pages(self) -> None:
        """A long list comes in pages; the store gets all of it at once, as of the last page's version."""
        pages = [
            page(thing("a", 1), version=10, more="token 1"),
            page(thing("b", 2), version=10, more="token/2"),
            page(thing("c", 3), version=10),
        ]
        async with following(Script().then(*pages).watched(open_watch()), "app=web") as result:
            await result.until({"a": 1, "b": 2, "c": 3})
            assert result.things.lists == [(["a", "b", "c"], None, 10)]
            assert [asked.query.get("continue") for asked in result.lists] == [None, "token 1", "token/2"]
            assert {asked.query["limit"] for asked in result.lists} == {"100"}
            assert {asked.query["labelSelector"] for asked in result.lists + result.watches} == {"app=web"}
            assert result.watches[0].query["resourceVersion"] == "10"

    async def test_synced_after_the_last_page(self) -> None:
        """A half-read list is no list: an empty store at the start would look like a deleted world."""
        pages = [page(thing("a", 1), version=10, more="token"), refusal(403, "Forbidden", "no more")]
        async with following(Script().then(*pages).watched(open_watch())) as result:
            assert (await result.until_failed()).status == 403
            assert not result.reflector.synced.is_set()
            assert result.things.lists == []

    async def test_one_namespace(self) -> None:
        """A list of one namespace says so to the store, which may hold others."""
        script = Script().then(page(thing("a", 1), version=10)).watched(open_watch())
        path = ResourcePath.read("/api/v1/namespaces/shop/things")
        async with following(script, path=path) as result:
            await result.until({"a": 1})
            assert result.things.lists == [(["a"], "shop", 10)]

    async def test_refused_at_first(self) -> None:
        """A list that is refused is asked for again, until it is given."""
        script = Script().then(refusal(403, "Forbidden", "not yet"), page(thing("a", 1), version=10))
        async with following(script.watched(open_watch())) as result:
            await result.until({"a": 1})
            assert result.reflector.synced.is_set()
            assert result.reflector.error is None

    async def test_expired_in_the_middle(self) -> None:
        """A list whose next page is too old begins anew."""
        pages = [
            page(thing("a", 1), version=10, more="token"),
            refusal(410, "Expired", "the continue token is too old"),
            page(thing("b", 11), version=12),
        ]
        async with following(Script().then(*pages).watched(open_watch())) as result:
            await result.until({"b": 11})
            assert result.things.lists == [(["b"], None, 12)]
            assert result.watches[0].query["resourceVersion"] == "12"

    async def test_once(self) -> None:
        """A single look fills the store and watches nothing; what goes wrong is raised."""
        script = Script().then(page(thing("a", 1), version=10), refusal(403, "Forbidden", "no"))
        async with connected(script) as client:
            reflector = Reflector(client, PATH, things := Things())
            await reflector.list_once()
            assert things.known == {"a": 1}
            with pytest.raises(ApiError, match="no"):
                await reflector.list_once()
        assert [asked.query.get("watch") for asked in script.asked] == [None, None]


class TestWatch:
    async def test_changes(self) -> None:
        """Added, changed and deleted objects reach the store in order."""
        changes = [
            event("ADDED", thing("b", 11)),
            event("MODIFIED", thing("a", 12)),
            event("DELETED", thing("b", 13)),
        ]
        script = Script().then(page(thing("a", 1), version=10)).watched(open_watch(*changes))
        async with following(script) as result:
            await result.until({"a": 12})
            assert len(result.lists) == 1
            assert result.watches[0].query["allowWatchBookmarks"] == "true"

    async def test_ends_and_goes_on(self) -> None:
        """A watch that ends after its time goes on from the last change, without another list."""
        first = watch(event("ADDED", thing("b", 11)))
        script = Script().then(page(thing("a", 1), version=10))
        async with following(script.watched(first, open_watch(event("ADDED", thing("c", 12))))) as result:
            await result.until({"a": 1, "b": 11, "c": 12}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "11"]
            assert len(result.lists) == 1

    async def test_bookmarks(self) -> None:
        """A bookmark moves the version on and is no object; the next watch begins there."""
        first = watch(event("ADDED", thing("b", 11)), bookmark(90))
        script = Script().then(page(version=10)).watched(first, open_watch())
        async with following(script) as result:
            await result.until({"b": 11}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "90"]

    async def test_unknown_events(self) -> None:
        """An event of a kind that does not exist yet is left alone."""
        strange = event("ANNOUNCED", thing("x", 11))
        script = Script().then(page(version=10)).watched(open_watch(strange, event("ADDED", thing("b", 12))))
        async with following(script) as result:
            await result.until({"b": 12})

    async def test_deleted_and_the_version(self) -> None:
        """A deletion carries the version to go on from, too."""
        first = watch(event("DELETED", thing("a", 15)))
        script = Script().then(page(thing("a", 1), version=10)).watched(first, open_watch())
        async with following(script) as result:
            await result.until({}, watches=2)
            assert result.watches[1].query["resourceVersion"] == "15"


class TestTooOld:
    async def test_in_the_stream(self) -> None:
        """410 as an event: a new list, at once, and a watch from there; what is gone meanwhile is gone."""
        script = Script().then(page(thing("a", 1), version=10), page(thing("b", 20), version=21))
        script.watched(watch(event("ADDED", thing("c", 11)), error(410, "Expired")), open_watch())
        async with following(script) as result:
            await result.until({"b": 20}, watches=2)
            assert result.watches[1].query["resourceVersion"] == "21"
            assert result.reflector.restarts == 1
            assert result.reflector.error is None

    async def test_as_the_answer(self) -> None:
        """410 as the answer to the watch does the same."""
        script = Script().then(page(thing("a", 1), version=10), page(thing("b", 20), version=21))
        script.watched(refusal(410, "Expired", "too old resource version"), open_watch())
        async with following(script) as result:
            await result.until({"b": 20}, watches=2)
            assert result.watches[1].query["resourceVersion"] == "21"

    async def test_bookmark_spares_it(self) -> None:
        """Nothing older than the last bookmark is ever asked for."""
        script = (
            Script().then(page(version=10)).watched(watch(bookmark(50)), watch(bookmark(70)), open_watch())
        )
        async with following(script) as result:
            await result.until({}, watches=3)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "50", "70"]
            assert len(result.lists) == 1


class TestFaults:
    async def test_broken_connection(self, caplog: pytest.LogCaptureFixture) -> None:
        """After a break the watch goes on where it was, which lists nothing; the break is said once."""
        script = Script().then(page(thing("a", 1), version=10))
        script.watched(broken(event("ADDED", thing("c", 11))), open_watch(event("ADDED", thing("d", 12))))
        async with following(script) as result:
            await result.until({"a": 1, "c": 11, "d": 12}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "11"]
            assert len(result.lists) == 1
        said = [record.message for record in caplog.records if "interrupted" in record.message]
        assert len(said) == 1
        assert str(PATH) in said[0]

    async def test_broken_twice_at_the_same_place(self) -> None:
        """What is there may be what nobody can read: the collection is listed anew."""
        script = Script().then(page(thing("a", 1), version=10), page(thing("b", 20), version=21))
        script.watched(broken(), broken(), open_watch())
        async with following(script) as result:
            await result.until({"b": 20}, watches=3)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "10", "21"]

    async def test_cut_in_a_line(self) -> None:
        """Half a line at a break is no event: the next watch begins before it."""
        line = event("ADDED", thing("c", 11))
        script = Script().then(page(version=10)).watched(broken(line[: len(line) // 2]), open_watch(line))
        async with following(script) as result:
            await result.until({"c": 11}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "10"]

    async def test_a_line_that_is_no_json(self) -> None:
        """It was cut on its way, and the stream goes on: the next watch begins before it (found by chaos)."""
        line = event("ADDED", thing("c", 11))
        cut = watch(line[: len(line) // 2] + b"\n", event("ADDED", thing("d", 12)))
        script = (
            Script().then(page(version=10)).watched(cut, open_watch(line, event("ADDED", thing("d", 12))))
        )
        async with following(script) as result:
            await result.until({"c": 11, "d": 12}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "10"]

    @pytest.mark.parametrize(
        "line",
        [
            b"1",
            b"[]",
            b'"ADDED"',
            b'{"type": "ADDED"}',
            b'{"type": "ADDED", "object": 1}',
            b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "later"}}}',
            b'{"type": "ERROR", "object": {"code": "often"}}',
        ],
    )
    async def test_a_line_that_is_no_change(self, line: bytes) -> None:
        """A proxy may answer with anything: the next watch begins before it (found by the fuzzer)."""
        later = event("ADDED", thing("c", 11))
        script = Script().then(page(version=10)).watched(watch(line + b"\n"), open_watch(later))
        async with following(script) as result:
            await result.until({"c": 11}, watches=2)
            assert [asked.query["resourceVersion"] for asked in result.watches] == ["10", "10"]

    async def test_error_in_the_stream(self) -> None:
        """Any other error in the stream is a fault: the collection is listed anew."""
        script = Script().then(page(version=10), page(thing("b", 20), version=21))
        script.watched(watch(error(500, "InternalError")), open_watch())
        async with following(script) as result:
            await result.until({"b": 20}, watches=2)

    async def test_nobody_there_for_a_while(self, caplog: pytest.LogCaptureFixture) -> None:
        """While nobody answers it is tried again and again; the fault is kept for `run`, and said once."""
        down = [refusal(503, "ServiceUnavailable", "starting")] * 8  # each LIST is tried 4 times
        script = Script().then(*down, page(thing("a", 1), version=10)).watched(open_watch())
        async with following(script) as result:
            assert (await result.until_failed()).status == 503
            await result.until({"a": 1})
            assert result.reflector.error is None
            assert result.reflector.restarts == 2
        assert len([record for record in caplog.records if "interrupted" in record.message]) == 1

    async def test_silence_is_a_dead_connection(self) -> None:
        """The server is asked to end each watch before its silence would be taken for that."""
        script = Script().then(page(thing("a", 1), version=10)).watched(open_watch())
        async with following(script) as result:
            await result.until({"a": 1})
            assert int(result.watches[0].query["timeoutSeconds"]) + 15 < _SILENCE_S <= 80


class TestMissingKind:
    """The kind is not there any more: a watch that was cut off may not have told of the last objects."""

    @staticmethod
    def script() -> Script:
        """Return one that knows a thing, and then the kind no more."""
        missing = refusal(404, "NotFound", "the server could not find the requested resource")
        gone = refusal(410, "Expired", "too old")
        return Script().then(page(thing("a", 1), version=10), missing).watched(gone)

    async def test_of_ours(self) -> None:
        """Deleted with the CRD: whoever thinks that its Split is there would never report that it is not."""
        async with following(
            self.script(), path=ResourcePath.read("/apis/splitter.io/v1alpha1/splits")
        ) as result:
            assert (await result.until_failed()).reason == KIND_MISSING
            assert result.things.known == {}

    async def test_of_others(self) -> None:
        """A proxy that has lost its way says the same of nodes: none of them is taken for gone."""
        async with following(self.script()) as result:
            assert (await result.until_failed()).reason == KIND_MISSING
            assert result.things.known == {"a": 1}


class TestOptional:
    """What splitter does without: where it may not be read or does not exist."""

    @pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (404, "NotFound")])
    async def test_is_said_once(self, caplog: pytest.LogCaptureFixture, status: int, reason: str) -> None:
        """At INFO, with what is lost; nobody waits for it."""
        caplog.set_level("INFO", "splitter.watch")
        async with following(Script().then(refusal(status, reason, "no")), without="we are slower") as result:
            await result.until_failed()
            assert result.reflector.synced.is_set()
            assert result.things.lists == [([], None, 2**63)]
        [said] = [record for record in caplog.records if record.name == "splitter.watch"]
        assert said.levelname == "INFO"
        assert said.getMessage() == f"{PATH} is not there or not allowed ({status}): we are slower"

    async def test_may_go_later(self, caplog: pytest.LogCaptureFixture) -> None:
        """A right that is taken away: what was known is forgotten, since nobody would say that it changed."""
        caplog.set_level("INFO", "splitter.watch")
        script = Script().then(page(thing("a", 1), version=10)).watched(refusal(403, "Forbidden", "no"))
        async with following(script, without="we are slower") as result:
            assert (await result.until_failed()).status == 403
            assert result.things.known == {}

    async def test_a_server_that_has_just_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It refuses everything until it has read its roles: what was followed is kept."""
        monkeypatch.setattr("splitter.kube.watch._OFF_FIRST_WAIT_S", 0.01)
        script = Script().then(page(thing("a", 1), version=10), refusal(403, "Forbidden", "no"))
        script.then(page(thing("a", 1), thing("b", 2), version=11))
        script.watched(watch(error(410, "Expired")), open_watch())
        async with following(script, without="we are slower") as result:
            await result.until({"a": 1, "b": 2})
            assert [len(listed) for listed, *_ in result.things.lists] == [1, 2]

    async def test_refused_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then the right is gone, and what was known with it."""
        monkeypatch.setattr("splitter.kube.watch._OFF_FIRST_WAIT_S", 0.01)
        script = Script().then(page(thing("a", 1), version=10), refusal(403, "Forbidden", "no"))
        script.watched(watch(error(410, "Expired")))
        async with following(script, without="we are slower") as result:
            assert (await result.until_failed()).status == 403
            assert result.things.known == {}

    async def test_other_faults_are_faults(self, caplog: pytest.LogCaptureFixture) -> None:
        """An API server that does not answer is asked again soon, and that is a warning."""
        down = [refusal(503, "ServiceUnavailable", "starting")] * 4
        script = Script().then(*down, page(thing("a", 1), version=10)).watched(open_watch())
        async with following(script, without="we are slower") as result:
            await result.until({"a": 1})
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    async def test_an_expired_token_is_no_missing_right(self, caplog: pytest.LogCaptureFixture) -> None:
        """What was known is kept, and asked for again soon: a token is renewed within seconds."""
        script = Script().then(page(thing("a", 1), version=10), refusal(401, "Unauthorized", "expired"))
        script.then(page(thing("b", 2), version=11))
        script.watched(refusal(410, "Expired", "too old"), open_watch())
        async with following(script, without="we are slower") as result:
            await result.until({"b": 2})
            assert [names for names, _, _ in result.things.lists] == [["a"], ["b"]]
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    async def test_selects_by_field(self) -> None:
        """List and watch alike."""
        script = Script().then(page(thing("a", 1), version=10)).watched(open_watch())
        async with following(script, fields="involvedObject.kind=Node") as result:
            await result.until({"a": 1})
            asked = {one.query["fieldSelector"] for one in result.lists + result.watches}
            assert asked == {"involvedObject.kind=Node"}

    async def test_once(self) -> None:
        """A single look does without it too."""
        async with connected(Script().then(refusal(403, "Forbidden", "no"))) as client:
            await Reflector(client, PATH, Things(), without="we are slower").list_once()
