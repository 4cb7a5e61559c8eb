"""The board: statuses that are decided are known at once, and written seldom."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from aiohttp import web

from builders import KEY, NOW, ago, observation, source, split
from kube.raw import deployment
from kube.server import Answer, Script, connected, json, refusal
from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.nodes.facts import NodeState
from splitter.core.split_status import Condition, Memory, SplitStatus
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.reconciler.queue import WorkQueue
from splitter.reconciler.status_writer import StatusWriter, pause_s

PATH = "/apis/splitter.io/v1alpha1/namespaces/shop/splits/web/status"


def status(state: str = "Moving", **fields: Any) -> SplitStatus:  # noqa: ANN401 (fields of a status)
    """Return a status."""
    return SplitStatus.from_json({"state": state, **fields})


def stored(version: int = 7) -> Answer:
    """Answer a write of the status with the Split as it is stored now."""

    async def answer(request: web.Request) -> web.Response:
        sent = orjson.loads(await request.read())
        return web.json_response(as_stored(version, sent["status"]))

    return answer


def as_stored(version: int, values: dict[str, Any]) -> dict[str, Any]:
    """Return the Split as the API server has it."""
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": "uid-split",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-05T09:00:00Z",
    }
    return {"metadata": metadata, "spec": {"takeOver": True}, "status": values}


class Desk:
    """A board that writes to a scripted server, and what arrives there."""

    def __init__(
        self, writer: StatusWriter, cache: Cache, script: Script, again: list[tuple[Key, float]]
    ) -> None:
        self.writer = writer
        self.cache = cache
        self.script = script
        self.again = again
        """The reconciles that were asked for, with seconds to wait."""

    def written(self) -> list[str]:
        """Return the states written so far."""
        return [asked.body["status"]["state"] for asked in self.script.asked]  # type: ignore[index]


def _nothing(*_: object, **__: object) -> None:
    """Hear of a change."""


def _no_node(_: object, **__: object) -> NodeState:
    raise AssertionError("no node is known")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Yield a board whose writes succeed unless a test says otherwise."""
    script = Script().then(stored())
    cache = Cache(_no_node, _nothing)
    cache.splits.upsert(as_stored(5, {"state": "TakingOver"}))
    async with connected(script) as client:
        again: list[tuple[Key, float]] = []
        writer = StatusWriter(
            Writer(client, cache), WorkQueue().calm, lambda key, delay_s: again.append((key, delay_s))
        )
        yield Desk(writer, cache, script, again)


class TestOverlay:
    async def test_nothing_posted(self, desk: Desk) -> None:
        """Without a decision on its way the observation is what was observed."""
        observed = observation()
        assert desk.writer.overlay(observed) is observed

    async def test_next_pass_sees_it(self, desk: Desk) -> None:
        """What was decided counts in the next reconcile, although nothing is written yet."""
        written = {
            "conflict": True,
            "memory": {"rebalance": {"lost": True}, "policyAnnotations": {"splitter.io/soak": "5m"}},
            "writeConflicts": ["2026-01-05T09:59:00Z"],
        }
        decided = status("Moving", **written)
        desk.writer.post(observation(), decided)
        seen = desk.writer.overlay(observation()).reported
        assert (seen.state, seen.conflict, seen.write_conflicts) == ("Moving", True, (ago(60),))
        assert (seen.memory.rebalance.lost, seen.memory.good_annotations) == (
            True,
            {"splitter.io/soak": "5m"},
        )
        assert seen == decided
        assert desk.script.asked == []

    async def test_what_a_status_may_lack(self, desk: Desk) -> None:
        """A status without write conflicts, conflict and annotations is one of a quiet life."""
        desk.writer.post(observation(), status("Steady"))
        seen = desk.writer.overlay(observation(split=split(conflict=True, write_conflicts=(NOW,)))).reported
        assert (seen.conflict, seen.write_conflicts, seen.memory) == (False, (), Memory())

    async def test_the_rest_stays_observed(self, desk: Desk) -> None:
        """Only the Split is overlaid."""
        desk.writer.post(observation(), status())
        observed = observation(now=ago(-5))
        assert replace(desk.writer.overlay(observed), split=observed.split) == observed

    @pytest.mark.parametrize(
        "observed",
        [
            observation(split=split(uid="uid-another")),
            observation(split=None),
            observation(key=replace(KEY, name="other")),
        ],
        ids=["re-created", "gone", "another workload"],
    )
    async def test_not_for_another(self, desk: Desk, observed: Observation) -> None:
        """A decision about one Split says nothing about another, were it of the same name."""
        desk.writer.post(observation(), status())
        assert desk.writer.overlay(observed) is observed

    async def test_until_it_is_written(self, desk: Desk) -> None:
        """Once written it is in the cache, and observed from there."""
        desk.writer.post(observation(), status("Moving"))
        await desk.writer.flush()
        observed = observation()
        assert desk.writer.overlay(observed) is observed
        [record] = desk.cache.splits.values()
        assert (record.state, record.version) == ("Moving", 7)


class TestWriting:
    async def test_one_write(self, desk: Desk) -> None:
        """A status is written whole, by server-side apply, to the status subresource."""
        desk.writer.post(observation(), status("Moving", ready=3))
        await desk.writer.flush()
        [asked] = desk.script.asked
        assert (asked.method, asked.path) == ("PATCH", PATH)
        assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
        assert asked.query == {"fieldManager": "splitter", "force": "true"}
        assert asked.body["kind"] == "Split"  # type: ignore[index]
        assert asked.body["metadata"]["name"] == "web"  # type: ignore[index]
        assert asked.body["status"] == status("Moving", ready=3).to_json()  # type: ignore[index]
        assert asked.body["status"]["ready"] == 3  # type: ignore[index]

    async def test_only_onto_its_own_split(self, desk: Desk) -> None:
        """The Split may be another one of the same name by now: what we know of it is the precondition."""
        desk.writer.post(observation(), status("Conflict", conflict=True))
        await desk.writer.flush()
        [asked] = desk.script.asked
        assert asked.body["metadata"]["resourceVersion"] == "5"  # type: ignore[index]

    async def test_not_when_its_split_is_gone(self, desk: Desk) -> None:
        """A Split that was deleted meanwhile takes its status with it."""
        desk.writer.post(observation(), status("Moving"))
        desk.cache.splits.forget("uid-split")
        await desk.writer.flush()
        assert desk.script.asked == []

    async def test_coalesced(self, desk: Desk) -> None:
        """Of several decisions in a row only the last is written, once."""
        for state in ("Moving", "Rolling", "Steady"):
            desk.writer.post(desk.writer.overlay(observation()), status(state))
        await desk.writer.flush()
        await desk.writer.flush()
        assert desk.written() == ["Steady"]

    async def test_unchanged(self, desk: Desk) -> None:
        """What is known already is not written."""
        desk.writer.post(
            observation(split=split(status=status("Steady", ready=3))), status("Steady", ready=3)
        )
        await desk.writer.flush()
        assert desk.written() == []

    async def test_unchanged_since_posted(self, desk: Desk) -> None:
        """Decided the same again while it waits, it is written once."""
        for _ in range(3):
            desk.writer.post(desk.writer.overlay(observation()), status("Moving"))
        await desk.writer.flush()
        assert desk.written() == ["Moving"]

    async def test_without_split(self, desk: Desk) -> None:
        """Without a Split there is nowhere to write."""
        desk.writer.post(observation(split=None), status())
        await desk.writer.flush()
        assert desk.written() == []

    async def test_each_workload(self, desk: Desk) -> None:
        """Every workload's status is written."""
        for name in ("web", "cart"):
            desk.writer.post(observation(key=replace(KEY, name=name)), status())
        await desk.writer.flush()
        assert {asked.path.split("/")[-2] for asked in desk.script.asked} == {"web", "cart"}

    async def test_posted_while_writing(self, desk: Desk) -> None:
        """What is decided while the last decision is on its way is not lost."""
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await go_on.wait()
            return await stored()(request)

        desk.script.answers.appendleft(slow)
        desk.writer.post(observation(), status("Moving"))
        flushing = asyncio.create_task(desk.writer.flush())
        await arrived.wait()
        desk.writer.post(desk.writer.overlay(observation()), status("Steady"))
        go_on.set()
        await flushing
        assert desk.writer.overlay(observation()).reported.state == "Steady"
        await desk.writer.flush()
        assert desk.written() == ["Moving", "Steady"]

    async def test_by_itself(self, desk: Desk) -> None:
        """While it runs, a posted status is written without being asked."""
        arrived = asyncio.Event()

        async def note(request: web.Request) -> web.StreamResponse:
            arrived.set()
            return await stored()(request)

        desk.script.answers[0] = note
        running = asyncio.create_task(desk.writer.run())
        desk.writer.post(observation(), status())
        async with asyncio.timeout(20):
            await arrived.wait()
        running.cancel()
        await asyncio.wait([running])
        assert desk.written() == ["Moving"]


class TestPost:
    """The condition of the source goes with the status of its Split."""

    SHOWN = Condition("splitter.io/Available", "True", "AsExpected", "all", NOW)
    SOURCE = "/apis/apps/v1/namespaces/shop/deployments/web/status"

    async def test_a_condition_and_a_status(self, desk: Desk) -> None:
        """The status first; of many that were posted only the last is written."""
        desk.script.then(json(deployment()))
        for state in ("Moving", "Rolling"):
            desk.writer.post(observation(), status(state), self.SHOWN)
        await desk.writer.flush()
        assert [asked.path for asked in desk.script.asked] == [PATH, self.SOURCE]

    async def test_a_condition_alone(self, desk: Desk) -> None:
        """The Split's status is as it is written: it is not written again."""
        desk.script.answers.clear()
        desk.script.then(json(deployment()))
        desk.writer.post(observation(), observation().reported, self.SHOWN)
        await desk.writer.flush()
        assert [asked.path for asked in desk.script.asked] == [self.SOURCE]

    async def test_what_is_there(self, desk: Desk) -> None:
        """Neither is written; nor where nothing is to be shown."""
        seen = observation(source(available=self.SHOWN))
        desk.writer.post(seen, seen.reported, self.SHOWN)
        desk.writer.post(seen, seen.reported)
        await desk.writer.flush()
        assert desk.script.asked == []

    async def test_a_failure(self, desk: Desk) -> None:
        """A reconcile posts it again."""
        desk.script.answers.clear()
        desk.script.then(refusal(500, "Internal", "no"))
        desk.writer.post(observation(), observation().reported, self.SHOWN)
        await desk.writer.flush()
        assert [key for key, _ in desk.again] == [KEY]


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "loud"),
        [
            (refusal(409, "Conflict", "modified"), False),
            (refusal(403, "Forbidden", "you may not"), True),
            (refusal(500, "InternalError", "etcd"), True),
        ],
    )
    async def test_is_remembered(
        self, desk: Desk, caplog: pytest.LogCaptureFixture, answer: Answer, loud: bool
    ) -> None:
        """What cannot be written counts in the next reconcile, which posts it again. A race is not told."""
        desk.script.answers.appendleft(answer)
        with caplog.at_level(logging.WARNING, logger="splitter.status"):
            desk.writer.post(observation(), status("Moving", memory={"rebalance": {"lost": True}}))
            await desk.writer.flush()
        assert bool(caplog.records) is loud
        observed = desk.writer.overlay(observation())
        assert observed.rebalance.lost
        await desk.writer.flush()
        assert desk.written() == ["Moving"]
        desk.writer.post(observed, status("Moving", memory={"rebalance": {"lost": True}}))
        await desk.writer.flush()
        assert desk.written() == ["Moving", "Moving"]
        assert desk.writer.overlay(observation()) == observation()

    async def test_a_pass_is_asked_for(self, desk: Desk) -> None:
        """No event need come that makes a reconcile: what stands in the status would stay for minutes."""
        for answer in (
            refusal(409, "Conflict", "modified"),
            refusal(401, "Unauthorized", "expired"),
            refusal(500, "InternalError", "etcd"),
        ):
            desk.script.answers.appendleft(answer)
            desk.writer.post(observation(), status())
            await desk.writer.flush()
        assert desk.again == [(KEY, 2.0), (KEY, 4.0), (KEY, 8.0)]
        desk.writer.post(observation(), status())
        await desk.writer.flush()
        desk.script.answers.appendleft(refusal(403, "Forbidden", "you may not"))
        desk.writer.post(observation(), status())
        await desk.writer.flush()
        assert desk.again[3:] == [(KEY, 2.0)]

    async def test_not_of_a_split_that_is_gone(self, desk: Desk) -> None:
        """Nobody reads it, and nothing is remembered of it."""
        desk.script.answers.appendleft(refusal(404, "NotFound", "the Split is gone"))
        desk.writer.post(observation(), status())
        await desk.writer.flush()
        assert desk.again == []
        observed = observation()
        assert desk.writer.overlay(observed) is observed

    async def test_one_of_many(self, desk: Desk) -> None:
        """One that fails keeps no other from being written."""
        desk.script.answers.appendleft(refusal(403, "Forbidden", "not this one"))
        for name in "abcdef":
            desk.writer.post(observation(key=replace(KEY, name=name)), status())
        await desk.writer.flush()
        assert len(desk.script.asked) == 6
        assert len({asked.path for asked in desk.script.asked}) == 6


class TestPause:
    """How long what was written last is left as it is."""

    @pytest.mark.parametrize(("took_s", "paused_s"), [(0.0, 1.0), (0.1, 1.0), (0.5, 4.5), (60.0, 30.0)])
    def test_is_in_proportion(self, took_s: float, paused_s: float) -> None:
        """One status is written a second later; a hundred leave nine tenths of the time to what they tell."""
        assert pause_s(took_s) == paused_s


class TestBefore:
    """What must be known before something is done."""

    async def test_as_it_was_seen(self, desk: Desk) -> None:
        """Who decided by an older Split is told so, and what it decided is forgotten."""
        desk.script.answers.appendleft(refusal(409, "Conflict", "the object has been modified"))
        seen = replace(observation(), split=split(resource_version="4"))
        with pytest.raises(ApiError, match="modified"):
            await desk.writer.write(seen, status("Held"))
        assert desk.script.asked[-1].body["metadata"]["resourceVersion"] == "4"  # type: ignore[index]
        assert desk.writer.overlay(seen) == seen

    async def test_that_cannot_be_written(self, desk: Desk) -> None:
        """It is kept in mind: somebody's webhook on Splits is no reason to leave a doomed member."""
        desk.script.answers.appendleft(refusal(500, "InternalError", "failed calling webhook"))
        await desk.writer.write(observation(), status("Held"))
        assert desk.writer.overlay(observation()).reported.state == "Held"
