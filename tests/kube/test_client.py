"""The client: what is sent, what is tried again, and in which words a failure comes back."""

import time
from collections import Counter
from contextlib import suppress
from typing import ClassVar

import pytest
from aiohttp import web

from kube.server import (
    TOKEN,
    Answer,
    Script,
    broken,
    client_of,
    connected,
    event,
    hang_up,
    json,
    open_watch,
    page,
    refusal,
    serve,
    silence,
    text,
    watch,
)
from splitter.kube.client import KIND_MISSING, TOO_LARGE, WRONG_ANSWER, ApiError
from splitter.kube.paths import ResourcePath

PATH = ResourcePath.read("/apis/apps/v1/namespaces/shop/deployments/web")
PODS = ResourcePath.read("/api/v1/pods")


class TestRequests:
    async def test_get(self) -> None:
        """A GET carries the credentials and its query, and returns the parsed object."""
        script = Script().then(json({"kind": "Deployment"}))
        async with connected(script) as client:
            assert await client.get(PATH, limit="500", labelSelector="a=b,c in (d)") == {"kind": "Deployment"}
        [asked] = script.asked
        assert (asked.method, asked.path) == ("GET", str(PATH))
        assert asked.query == {"limit": "500", "labelSelector": "a=b,c in (d)"}
        assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
        assert asked.headers["User-Agent"].startswith("splitter/")

    @pytest.mark.parametrize(
        ("patch", "content_type"),
        [
            ("merge", "application/merge-patch+json"),
            ("strategic", "application/strategic-merge-patch+json"),
            ("apply", "application/apply-patch+yaml"),
        ],
    )
    async def test_patch(self, patch: str, content_type: str) -> None:
        """Each kind of patch has its own content type; a null in the body is sent as null."""
        script = Script().then(json({}))
        body = {"metadata": {"annotations": {"splitter.io/taken-over": None}}}
        async with connected(script) as client:
            await client.send("PATCH", PATH, body, patch=patch, query={"fieldManager": "splitter"})
        [asked] = script.asked
        assert (asked.method, asked.query, asked.body) == ("PATCH", {"fieldManager": "splitter"}, body)
        assert asked.headers["Content-Type"] == content_type

    async def test_delete_with_preconditions(self) -> None:
        """A DELETE may carry a body; an answer without one is an empty object."""
        script = Script().then(text(""))
        async with connected(script) as client:
            assert await client.send("DELETE", PATH, {"preconditions": {"uid": "u"}}) == {}
        assert script.asked[0].body == {"preconditions": {"uid": "u"}}


class TestAnswered:
    """Each request is told to whoever counts them, by verb and status."""

    PLAN: ClassVar = [
        ("GET", json({}), ("get", 200)),
        ("POST", json({}, 201), ("create", 201)),
        ("PUT", refusal(409, "Conflict", "modified"), ("update", 409)),
        ("PATCH", refusal(403, "Forbidden", "no"), ("patch", 403)),
        ("DELETE", json({}), ("delete", 200)),
        ("PATCH", hang_up(), ("patch", 0)),
    ]

    @pytest.mark.parametrize(("method", "answer", "expected"), PLAN)
    async def test_told(self, method: str, answer: Answer, expected: tuple[str, int]) -> None:
        """What was asked, what came of it, and that it took time."""
        reported: list[tuple[str, int, float]] = []
        async with connected(Script().then(answer), answered=lambda *one: reported.append(one)) as client:
            began_s = time.perf_counter()
            with suppress(ApiError):
                await client.send(method, PATH)
            over_s = time.perf_counter()
        [(verb, status, took_s)] = reported
        assert (verb, status) == expected
        assert 0 < took_s <= over_s - began_s

    async def test_watch(self) -> None:
        """A watch is a verb of its own, told when it begins."""
        reported: list[tuple[str, int, float]] = []
        script = Script().watched(open_watch(event("ADDED", {})))
        async with (
            connected(script, answered=lambda *one: reported.append(one)) as client,
            client.stream(PATH, {"watch": "true"}, 5) as lines,
        ):
            assert await anext(lines)
            assert [one[:2] for one in reported] == [("watch", 200)]

    async def test_each_try(self) -> None:
        """Each try of a read counts."""
        reported: list[tuple[str, int, float]] = []
        script = Script().then(refusal(503, "ServiceUnavailable", "wait"), json({}))
        async with connected(script, answered=lambda *one: reported.append(one)) as client:
            await client.get(PATH)
        assert [one[:2] for one in reported] == [("get", 503), ("get", 200)]


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (refusal(404, "NotFound", 'deployments "web" not found'), (404, "NotFound", "not found")),
            (refusal(409, "Conflict", "the object has been modified"), (409, "Conflict", "been modified")),
            (refusal(403, "Forbidden", "cannot patch"), (403, "Forbidden", "cannot patch")),
            (refusal(422, "Invalid", "may not be changed"), (422, "Invalid", "may not be changed")),
            (text("upstream says no", 418), (418, "", "upstream says no")),
            (json(["a list"], 400), (400, "", "a list")),
            (text("", 404), (404, "", "")),
        ],
    )
    async def test_refused(self, answer: Answer, expected: tuple[int, str, str]) -> None:
        """A refusal keeps Kubernetes' own words, and a proxy's text where there are none."""
        async with connected(Script().then(answer)) as client:
            with pytest.raises(ApiError) as caught:
                await client.send("PATCH", PATH, {})
        status, reason, words = expected
        assert (caught.value.status, caught.value.reason) == (status, reason)
        assert words in caught.value.message

    @pytest.mark.parametrize(
        "answer",
        [
            text("404 page not found\n", 404),
            refusal(404, "NotFound", "the server could not find the requested resource"),
        ],
        ids=["no group", "no kind"],
    )
    async def test_our_own_kind_is_missing(self, answer: Answer) -> None:
        """A CRD that somebody deletes is told from an object that is not there, with what to do."""
        path = ResourcePath.read("/apis/splitter.io/v1alpha1/namespaces/shop/splits/web")
        async with connected(Script().then(answer)) as client:
            with pytest.raises(ApiError, match=r"apply manifests/crd\.yaml") as caught:
                await client.send("PATCH", path, {})
        assert (caught.value.status, caught.value.reason) == (404, KIND_MISSING)

    async def test_another_kind_is_missing(self) -> None:
        """An older server that lacks a kind is told from an object that is not there."""
        unknown = refusal(404, "NotFound", "the server could not find the requested resource")
        path = ResourcePath.read(
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/splitter-placement"
        )
        async with connected(Script().then(unknown)) as client:
            with pytest.raises(ApiError) as caught:
                await client.get(path)
        assert (caught.value.reason, caught.value.message) == (
            KIND_MISSING,
            "the server could not find the requested resource",
        )

    async def test_long_answers_are_cut(self) -> None:
        """A page of HTML does not end up in a log line."""
        async with connected(Script().then(text("x" * 5000, 404))) as client:
            with pytest.raises(ApiError) as caught:
                await client.get(PATH)
        assert len(caught.value.message) == 300

    async def test_half_an_answer(self) -> None:
        """What is no JSON was cut off on its way: nobody knows what came of the request."""
        async with connected(Script().then(text('{"kind": "Pod", "metad', 200))) as client:
            with pytest.raises(ApiError) as caught:
                await client.send("PATCH", PATH, {})
        assert (caught.value.status, caught.value.reason) == (0, "NoAnswer")

    async def test_no_answer(self) -> None:
        """A connection that breaks is status 0."""
        async with connected(Script().then(hang_up())) as client:
            with pytest.raises(ApiError) as caught:
                await client.send("PATCH", PATH, {})
        assert (caught.value.status, caught.value.reason) == (0, "NoAnswer")

    async def test_too_slow(self) -> None:
        """A server that keeps silent is status 0 after the time-out."""
        async with connected(Script().then(silence()), timeout_s=0.2) as client:
            with pytest.raises(ApiError) as caught:
                await client.send("GET", PATH)
        assert caught.value.status == 0
        assert "Timeout" in caught.value.message

    async def test_nobody_listens(self) -> None:
        """A refused connection is status 0."""
        async with serve(Script().answer) as address:
            pass
        async with client_of(address) as client:
            with pytest.raises(ApiError) as caught:
                await client.send("GET", PATH)
        assert caught.value.status == 0


class TestTryingAgain:
    @pytest.mark.parametrize(
        "first",
        [
            refusal(429, "TooManyRequests", "slow down"),
            refusal(500, "InternalError", "etcd"),
            refusal(503, "ServiceUnavailable", "starting"),
            text("bad gateway", 502),
            hang_up(),
        ],
    )
    async def test_reads_are_repeated(self, first: Answer) -> None:
        """A read that may succeed the next time is asked again."""
        script = Script().then(first, json({"kind": "Deployment"}))
        async with connected(script) as client:
            assert await client.get(PATH) == {"kind": "Deployment"}
        assert len(script.asked) == 2

    async def test_reads_are_given_up(self) -> None:
        """A read that goes on failing ends with the server's own words."""
        script = Script().then(refusal(503, "ServiceUnavailable", "still starting"))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="still starting"):
                await client.get(PATH)
        assert len(script.asked) == 4

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
    async def test_answers_are_answers(self, status: int) -> None:
        """A refusal that would be the same again is not asked twice."""
        script = Script().then(refusal(status, "Because", "so it is"))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="so it is"):
                await client.get(PATH)
        assert len(script.asked) == 1

    async def test_writes_are_never_repeated(self) -> None:
        """Whether a failed write was done is unknown: the next reconcile looks, nobody repeats it."""
        script = Script().then(refusal(503, "ServiceUnavailable", "starting"), json({}))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="starting"):
                await client.send("PATCH", PATH, {"spec": {"replicas": 3}})
        assert len(script.asked) == 1


class TestStreams:
    async def lines(self, *answers: Answer, silence_s: float = 5.0) -> list[bytes]:
        """Return all lines of a watch that ends."""
        collected: list[bytes] = []
        async with (
            connected(Script().then(*answers)) as client,
            client.stream(ResourcePath.read("/api/v1/pods"), {"watch": "true"}, silence_s) as lines,
        ):
            collected.extend([line async for line in lines])
        return collected

    async def test_lines(self) -> None:
        """Each document is one line, however the network cuts it."""
        whole = event("ADDED", {"name": "ä"}) + event("DELETED", {"name": "b"})
        pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
        assert await self.lines(watch(*pieces)) == whole.splitlines()

    async def test_long_lines(self) -> None:
        """A line of two megabytes is one line."""
        long = event("ADDED", {"annotation": "x" * 2_000_000})
        assert await self.lines(watch(long, b"\n", event("ADDED", {}))) == [
            long.strip(),
            event("ADDED", {}).strip(),
        ]

    async def test_refused(self) -> None:
        """A watch that is refused says why."""
        with pytest.raises(ApiError, match="too old") as caught:
            await self.lines(refusal(410, "Expired", "too old resource version"))
        assert (caught.value.status, caught.value.reason) == (410, "Expired")

    async def test_broken(self) -> None:
        """A watch whose connection breaks is no proper end."""
        with pytest.raises(ApiError) as caught:
            await self.lines(broken(event("ADDED", {})))
        assert caught.value.status == 0

    async def test_silent(self) -> None:
        """A watch without a word, not even a bookmark, is given up."""
        with pytest.raises(ApiError) as caught:
            await self.lines(open_watch(event("ADDED", {})), silence_s=0.2)
        assert caught.value.status == 0


class TestAnswers:
    """An answer is about what was asked for, and no larger than an object or a page may be."""

    @pytest.mark.parametrize(
        "answer",
        [
            {"metadata": {"name": "db", "namespace": "shop"}},
            {"metadata": {"name": "web", "namespace": "evil"}},
            {"items": [{"metadata": {"name": "web"}}], "metadata": {"resourceVersion": "9"}},
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    async def test_about_something_else(self, method: str, answer: dict[str, object]) -> None:
        """What is no answer to the question is none: it is neither believed nor cached."""
        async with connected(Script().then(json(answer))) as client:
            with pytest.raises(ApiError, match="what came back is not") as caught:
                await client.send(method, PATH)
        assert (caught.value.status, caught.value.reason) == (0, WRONG_ANSWER)

    async def test_too_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is given up where the limit is reached, once, and not read to its end."""
        monkeypatch.setattr("splitter.kube.client.MAX_ANSWER_BYTES", 1024**2)
        script = Script().then(text("x" * (2 * 1024**2)))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="is larger than 1 MiB") as caught:
                await client.get(PATH)
        assert caught.value.reason == TOO_LARGE
        assert len(script.asked) == 1

    async def test_smaller_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A page of large objects is asked for again with fewer of them, and none is left out."""
        monkeypatch.setattr("splitter.kube.client.MAX_PAGE_BYTES", 1000)
        big = {"metadata": {"name": "a", "namespace": "shop"}, "data": "x" * 600}
        script = Script().then(
            page(big, version=1, more="1"),
            page(big, big, version=1),
            page(big, version=1, more="2"),
            page(big, version=1),
        )
        pods = ResourcePath.read("/api/v1/namespaces/shop/pods")
        async with connected(script) as client:
            collected = [len(one["items"]) async for one in client.pages(pods, 100, labelSelector="a=b")]
        assert collected == [1, 1, 1]
        assert [asked.query.get("limit") for asked in script.asked] == ["100", "100", "25", "25"]
        assert [asked.query.get("continue") for asked in script.asked] == [None, "1", "1", "2"]
        assert {asked.query["labelSelector"] for asked in script.asked} == {"a=b"}

    async def test_larger_pages_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where small objects follow, pages grow again, to what was asked for and no further."""
        monkeypatch.setattr("splitter.kube.client.MAX_PAGE_BYTES", 1000)
        big, small = page({"data": "x" * 2000}, version=1, more="1"), page({}, version=1, more="1")
        script = Script().then(big, *[small] * 40, page({}, version=1))
        async with connected(script) as client:
            pages = [one async for one in client.pages(PODS, 20)]
        assert len(pages) == 41
        limits = Counter(asked.query["limit"] for asked in script.asked)
        assert limits == {"20": 1 + 25, "5": 8, "10": 8}

    async def test_one_page_at_a_time(self) -> None:
        """A page that has been read is emptied: it takes far more memory than its bytes."""
        script = Script().then(page({}, version=1, more="1"), page({}, version=1))
        async with connected(script) as client:
            pages = [one async for one in client.pages(PODS, 20)]
        assert pages == [{}, {}]

    async def test_one_large_object(self) -> None:
        """The API server makes 8 MiB of JSON of some that etcd takes: such a one is read by itself."""
        name = "<" * 1_400_000
        raw = json({"metadata": {"resourceVersion": "1"}, "items": [{"data": name}]})

        async def escaped(request: web.Request) -> web.StreamResponse:
            answer = await raw(request)
            assert isinstance(answer, web.Response)
            assert isinstance(answer.body, bytes)
            return web.Response(body=answer.body.replace(b"<", b"\\u003c"))

        script = Script().then(escaped)
        async with connected(script) as client:
            read = [raw["data"] async for one in client.pages(PODS, 20) for raw in one["items"]]
        assert read == [name]
        assert [asked.query["limit"] for asked in script.asked] == ["20", "5", "1"]

    async def test_one_that_is_too_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of one object there are no smaller pages: then it is said."""
        monkeypatch.setattr("splitter.kube.client.MAX_PAGE_BYTES", 100)
        monkeypatch.setattr("splitter.kube.client.MAX_ANSWER_BYTES", 100)
        script = Script().then(page({"data": "x" * 600}, version=1))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="is larger than"):
                _ = [one async for one in client.pages(ResourcePath.read("/api/v1/pods"), 100)]
        assert [asked.query["limit"] for asked in script.asked] == ["100", "25", "6", "1"]
