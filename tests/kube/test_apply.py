"""The writer where it has to look before it writes: pods whose node is gone."""

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web

from builders import NOW, observation, replica_set, source, twin
from kube.raw import deployment, metadata
from kube.raw import replica_set as raw_replica_set
from kube.server import Answer, Asked, Script, connected, json, refusal
from splitter.core.actions import (
    Action,
    DeleteVanishedPod,
    HolderKind,
    KeepRevision,
    RestoreTemplate,
    RetryPods,
    Scale,
    SetBudget,
)
from splitter.core.desired.compare import template_hash
from splitter.core.nodes.signals import assess
from splitter.core.replica import Pool
from splitter.kube import parse
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError

POD = {"kind": "Pod", "metadata": {"name": "db-0", "uid": "uid-db-0"}}
GONE = refusal(404, "NotFound", 'nodes "spot-a" not found')
PLAIN = {"preconditions": {"uid": "uid-db-0"}}
RAISED = SetBudget("web-guard", 10, "uid-guard", raised=True)
SCALED = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 3, 5, None)
WRITTEN = json({"metadata": metadata("web-guard"), "spec": {"minAvailable": 10}})
LOWERED = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 6, 5, "rv-6")
SCALED_TO_5 = json(deployment("web-on-demand", labels={"splitter.io/pool": "on-demand"}))


def node(uid: str) -> Answer:
    """Answer with the node of the name."""
    return json({"metadata": {"name": "spot-a", "uid": uid}})


async def sent(there: Answer, *, at_once: bool, successor: str = "") -> list[object]:
    """Return the bodies of the deletions that are sent, with this answer to the look-up of the node."""
    script = Script().then(there, json({"kind": "Status"}))
    action = DeleteVanishedPod("db-0", "uid-db-0", "spot-a", successor, at_once)
    async with connected(script) as client:
        await Writer(client, Cache(assess, lambda *_, **__: None)).apply(observation(), (action,))
    return [asked.body for asked in script.asked if asked.method == "DELETE"]


class TestVanished:
    """What is deleted is deleted by its UID, and by force only where no kubelet can be left to end it."""

    @pytest.mark.parametrize(
        ("at_once", "body"), [(False, PLAIN), (True, {**PLAIN, "gracePeriodSeconds": 0})]
    )
    async def test_no_node_of_that_name(self, at_once: bool, body: object) -> None:
        """A ReplicaSet has replaced it by then; a StatefulSet waits for it to go, so it goes at once."""
        assert await sent(GONE, at_once=at_once) == [body]

    async def test_another_node_bears_the_name(self) -> None:
        """Its kubelet may be the old one, registered anew: two pods of one identity must never run."""
        assert await sent(node("uid-later"), at_once=True, successor="uid-later") == [PLAIN]

    async def test_the_node_is_there(self) -> None:
        """Our view was wrong: nothing is deleted."""
        assert await sent(node("uid-it"), at_once=True) == []
        assert await sent(node("uid-it"), at_once=False, successor="uid-later") == []


class TestLostRace:
    """A batch ends at the first write that fails, and what was answered until then is known."""

    async def test_what_was_written(self) -> None:
        """Of a raise and a lowering that loses a race, the raise."""
        seen = observation(on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT))
        raised = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 3, 5, None)
        lowered = Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 1, "9")
        answer = json(deployment("web-on-demand", labels={"splitter.io/pool": "on-demand"}))
        script = Script().then(answer, refusal(409, "Conflict", "the object has been modified"))
        written: list[Action] = []
        async with connected(script) as client:
            writer = Writer(client, Cache(assess, lambda *_, **__: None))
            with pytest.raises(ApiError, match="has been modified"):
                await writer.apply(seen, (raised, lowered), written)
        assert written == [raised]


class TestScaling:
    """What is scaled is what was seen: a stranger's object under the same name is not."""

    @pytest.mark.parametrize(
        ("action", "metadata"),
        [
            (Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 5, None), {"uid": "uid-web-spot"}),
            (
                Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 1, "9"),
                {"uid": "uid-web-spot", "resourceVersion": "9"},
            ),
            (Scale(HolderKind.REPLICA_SET, "web-1", 3, 1, "9"), {"uid": "uid-web-1", "resourceVersion": "9"}),
        ],
    )
    async def test_by_uid(self, action: Scale, metadata: dict[str, str]) -> None:
        """A raise too, which names no version so that it never loses a race."""
        script = Script().then(refusal(409, "Conflict", "Precondition failed: UID in precondition"))
        seen = observation(spot=twin(Pool.SPOT), replica_sets=(replica_set("web-1"),))
        async with connected(script) as client:
            with pytest.raises(ApiError, match="UID in precondition"):
                await Writer(client, Cache(assess, lambda *_, **__: None)).apply(seen, (action,))
        [asked] = script.asked
        assert asked.body == {"metadata": metadata, "spec": {"replicas": action.replicas}}

    async def test_a_try_of_what_is_refused(self) -> None:
        """The time is written onto that very ReplicaSet, and nothing of it is changed."""
        raw = raw_replica_set()
        raw["metadata"] |= {"name": "web-spot-1", "namespace": "shop"}
        script = Script().then(json(raw))
        action = RetryPods("web-spot-1", "uid-1", NOW)
        async with connected(script) as client:
            await Writer(client, Cache(assess, lambda *_, **__: None)).apply(observation(), (action,))
        [asked] = script.asked
        annotations = {"splitter.io/retried": "2026-01-05T10:00:00+00:00"}
        assert asked.body == {"metadata": {"uid": "uid-1", "annotations": annotations}}
        assert asked.path.endswith("/replicasets/web-spot-1")

    async def test_a_raise_does_not_wait_for_a_template_that_is_refused(self) -> None:
        """The last good image may not be allowed any more; what is missing is asked for all the same."""
        old = {"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}}
        refused = refusal(403, "Forbidden", "image v1 is not allowed any more")
        script = Script().then(
            json(old), json(deployment("web-on-demand")), refused, refusal(500, "", "down")
        )
        seen = observation(on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT))
        actions = (
            RestoreTemplate("web-on-demand", "web-on-demand-1", "9"),
            Scale(HolderKind.DEPLOYMENT, "web-on-demand", 3, 10, None),
            Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 1, "9"),
            Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 4, None),
        )
        async with connected(script) as client:
            with pytest.raises(ApiError, match="not allowed any more"):
                await Writer(client, Cache(assess, lambda *_, **__: None)).apply(seen, actions)
        written = [(asked.method, asked.body) for asked in script.asked if asked.method == "PATCH"]
        assert [body["spec"]["replicas"] for _, body in written] == [10, 4]  # type: ignore[index]

    async def test_a_raise_after_a_lost_answer_names_its_version(self) -> None:
        """The raise to 10 may be done: one to 6, decided from what was seen before it, would lower."""
        lost, moved = refusal(504, "Timeout", "no answer"), refusal(409, "Conflict", "modified")
        script = Script().then(
            lost, moved, json(deployment("web-on-demand")), json(deployment("web-on-demand"))
        )
        seen = observation(on_demand=twin(Pool.ON_DEMAND))
        async with connected(script) as client:
            writer = Writer(client, Cache(assess, lambda *_, **__: None))
            for replicas in (10, 6, 6, 7):
                with suppress(ApiError):
                    raised = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 4, replicas, None)
                    await writer.apply(seen, (raised,))
        versions = [asked.body["metadata"].get("resourceVersion") for asked in script.asked]  # type: ignore[index]
        assert versions == [None, "rv-web-on-demand", "rv-web-on-demand", None]


class TestKeeping:
    """The template of pods is kept before they are let go."""

    async def test_of_the_source_as_it_was_seen(self) -> None:
        """Not as it is by now: whether an image was set meanwhile is told by the difference."""
        raw = deployment(spec={"minReadySeconds": 5})
        seen = parse.source(raw).view
        script = Script().then(json(raw_replica_set("web-splith1", {"replicas": 0})))
        async with connected(script) as client:
            writer = Writer(client, Cache(assess, lambda *_, **__: None))
            await writer.apply(observation(seen), (KeepRevision("web-splith1", None),))
        [asked] = script.asked
        assert asked.method == "POST"
        assert isinstance(asked.body, dict)
        spec = asked.body["spec"]
        assert template_hash(spec["template"]) == seen.template_hash
        assert spec["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": "splith1"}
        assert spec["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": "splith1"}
        assert (spec["replicas"], spec["minReadySeconds"]) == (0, 5)


class TestGuard:
    """The budget goes out with the raise, and neither a slow nor a refused one holds it up."""

    async def apply(
        self, budget: Answer, scale: Answer, then: Action = SCALED
    ) -> tuple[list[Asked], list[Action]]:
        """Write a budget and a scale; return what was asked, and what counts as written."""

        async def either(
            request: web.Request,
        ) -> web.StreamResponse:  # both are on their way: any comes first
            return await (budget if request.path.endswith("web-guard") else scale)(request)

        script = Script().then(either, either)
        manifest = '{"spec": {"selector": {"matchLabels": {"app": "web"}}}}'
        seen = observation(source(manifest_json=manifest), on_demand=twin(Pool.ON_DEMAND))
        written: list[Action] = []
        async with connected(script) as client:
            writer = Writer(client, Cache(assess, lambda *_, **__: None))
            await writer.apply(seen, (RAISED, then), written)
        return script.asked, written

    async def test_together(self) -> None:
        """Neither waits for the other: here each is answered only when both were asked for."""
        both = asyncio.Barrier(2)

        async def budget(request: web.Request) -> web.StreamResponse:
            await both.wait()
            return await WRITTEN(request)

        async def scale(request: web.Request) -> web.StreamResponse:
            await both.wait()
            return await SCALED_TO_5(request)

        async with asyncio.timeout(4):
            asked, written = await self.apply(budget, scale)
        assert {one.path.rpartition("/")[2] for one in asked} == {"web-guard", "web-on-demand"}
        assert written == [SCALED]

    async def test_a_slow_one(self) -> None:
        """As behind a webhook that hangs: here it is answered only after the raise."""
        scaled = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            await scaled.wait()
            return await WRITTEN(request)

        async def fast(request: web.Request) -> web.StreamResponse:
            scaled.set()
            return await SCALED_TO_5(request)

        async with asyncio.timeout(4):
            asked, written = await self.apply(slow, fast)
        assert len(asked) == 2
        assert written == [SCALED]

    async def test_before_a_lowering(self) -> None:
        """Nobody hurries: what lets pods go is sent when it is known what evictions have to leave."""
        lowered = asyncio.Event()
        answered_before: list[bool] = []

        async def slow(request: web.Request) -> web.StreamResponse:
            with suppress(TimeoutError):
                await asyncio.wait_for(lowered.wait(), 0.05)
            answered_before.append(not lowered.is_set())
            return await WRITTEN(request)

        async def lowering(request: web.Request) -> web.StreamResponse:
            lowered.set()
            return await SCALED_TO_5(request)

        _, written = await self.apply(slow, lowering, LOWERED)
        assert (answered_before, written) == ([True], [RAISED, LOWERED])

    @pytest.mark.parametrize("status", [403, 409, 500])
    async def test_a_refused_one(self, status: int) -> None:
        """It stops nothing."""
        asked, written = await self.apply(refusal(status, "", "no"), SCALED_TO_5)
        assert [one.method for one in asked] == ["PATCH", "PATCH"]
        assert SCALED in written
