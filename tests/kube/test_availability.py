"""What is written of a source's condition, and what becomes of a right that is missing."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, observation, source
from kube.raw import deployment
from kube.server import Answer, Script, connected, json, refusal
from splitter.core.model import SourceView
from splitter.core.names import Key
from splitter.core.nodes.facts import NodeState
from splitter.core.split_status import Condition
from splitter.kube.availability import Availability
from splitter.kube.cache import Cache
from splitter.kube.client import NOT_LEADING, ApiError

SHOWN = Condition("splitter.io/Available", "True", "AsExpected", "all", NOW)
STAMP = "2026-01-05T10:00:00Z"
FORBIDDEN = refusal(403, "Forbidden", "no")


def _nothing(*_: object, **__: object) -> None:
    """Hear of a change."""


def _no_node(_: object, **__: object) -> NodeState:
    raise AssertionError("no node is known")


async def written(
    script: Script, *times_s: float, of: SourceView | None = None, shown: Condition | None = SHOWN
) -> Cache:
    """Have it written at these moments."""
    cache = Cache(_no_node, _nothing)
    async with connected(script) as client:
        availability = Availability(client, cache)
        for at_s in times_s or (0.0,):
            observed = replace(observation(of), now=NOW + timedelta(seconds=at_s))
            assert observed.source is not None
            await availability.write(observed, observed.source, shown)
    return cache


def answered(labels: Mapping[str, str]) -> Answer:
    """Answer with the source as it is now."""
    return json(deployment(labels=dict(labels)))


class TestBody:
    @pytest.mark.parametrize(
        ("kind", "more"), [("Deployment", {"lastUpdateTime": STAMP}), ("StatefulSet", {})]
    )
    async def test_of_a_condition(self, kind: str, more: Mapping[str, str]) -> None:
        """Beside all others, and onto the very object that was seen."""
        script = Script().then(answered({}))
        await written(script, of=source(key=Key(kind, "shop", "web")))
        [asked] = script.asked
        assert (asked.method, asked.path) == (
            "PATCH",
            f"/apis/apps/v1/namespaces/shop/{kind.lower()}s/web/status",
        )
        assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
        condition = {
            "type": "splitter.io/Available",
            "status": "True",
            "reason": "AsExpected",
            "message": "all",
            "lastTransitionTime": STAMP,
            **more,
        }
        assert asked.body == {
            "metadata": {"uid": "uid-web", "resourceVersion": "rv-web"},
            "status": {"conditions": [condition]},
        }

    async def test_of_its_removal(self) -> None:
        """Whatever has been written since."""
        script = Script().then(answered({}))
        await written(script, shown=None)
        gone = {"type": "splitter.io/Available", "$patch": "delete"}
        assert script.asked[0].body == {"metadata": {"uid": "uid-web"}, "status": {"conditions": [gone]}}

    @pytest.mark.parametrize(("labels", "known"), [({"splitter.io/split": "enabled"}, 1), ({}, 0)])
    async def test_the_answer_is_known(self, labels: Mapping[str, str], known: int) -> None:
        """The next reconcile sees it; of a source without the label the cache keeps nothing."""
        cache = await written(Script().then(answered(labels)))
        assert len(list(cache.sources.values())) == known


class TestRefused:
    async def test_is_said_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """And asked again after 10 s, 20 s, 40 s."""
        script = Script().then(FORBIDDEN)
        with caplog.at_level(logging.WARNING, "splitter.availability"):
            await written(script, 0, 9, 10, 29, 30, 69, 70, 149)
            assert len(script.asked) == 4
        [logged] = caplog.records
        assert (
            "on Deployments in shop: splitter may not patch their status (apply manifests/source-status"
            in logged.message
        )

    async def test_is_said_again_after_it_was_written(self, caplog: pytest.LogCaptureFixture) -> None:
        """A right that was given and taken away."""
        script = Script().then(FORBIDDEN).then(answered({})).then(FORBIDDEN)
        with caplog.at_level(logging.WARNING, "splitter.availability"):
            await written(script, 0, 10, 11)
        assert (len(script.asked), len(caplog.records)) == (3, 2)

    async def test_seldom_at_last(self) -> None:
        """After many refusals every five minutes."""
        script = Script().then(FORBIDDEN)
        await written(script, *range(0, 3600, 5))
        assert len(script.asked) == 5 + 1 + (3600 - 310) // 300

    @pytest.mark.parametrize("status", [404, 409])
    async def test_what_has_changed(self, status: int) -> None:
        """The next reconcile looks at it as it is: no failure."""
        script = Script().then(refusal(status, "Conflict", "changed"))
        await written(script, 0, 1)
        assert len(script.asked) == 2

    @pytest.mark.parametrize("status", [422, 500])
    async def test_everything_else(self, status: int) -> None:
        """Is tried again, by the board."""
        with pytest.raises(ApiError):
            await written(Script().then(refusal(status, "Internal", "no")))

    async def test_not_leading(self) -> None:
        """A process that may not write at all is no missing right."""
        with pytest.raises(ApiError, match="no"):
            await written(Script().then(refusal(503, NOT_LEADING, "no")))
