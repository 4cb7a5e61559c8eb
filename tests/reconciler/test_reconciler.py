"""Events follow the answers to the writes: what was not written is not told, what was is."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import pytest

from builders import KEY, ago, observation, pod, pods, source, twin
from splitter.assembly import renderer_of
from splitter.core.actions import Action, Scale
from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.plan import Rules
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.reconciler import Reconciler
from splitter.reconciler.queue import WorkQueue
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

if TYPE_CHECKING:
    from splitter.kube.apply import Writer
    from splitter.kube.observe import Observer

SPOT = tuple(pod(f"spot-{number}", on_spot=True, ready_since=ago(50_000)) for number in range(5))
SCALED_IN = observation(
    source(4, annotations={"splitter.io/on-demand-base": "2"}),
    on_demand=twin(Pool.ON_DEMAND, pods(5)),
    spot=twin(Pool.SPOT, SPOT),
)


class _Cluster:
    """Shows one observation, and takes so many writes before somebody else was faster."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.tried: list[Action] = []
        self.events: list[str] = []
        self.reconciles = asyncio.Semaphore(0)

    async def observe(self, key: Key, now: datetime, reserved: int) -> Observation:
        """Return what there is to see."""
        del key, reserved
        self.reconciles.release()
        return replace(SCALED_IN, now=now)

    def with_pools(self, observed: Observation, _: object) -> Observation:
        """Return it as it is: each pool takes its replicas."""
        return observed

    async def apply(self, observed: Observation, actions: tuple[Action, ...], written: list[Action]) -> None:
        """Answer some writes."""
        del observed
        self.tried += actions
        written += actions[: self.takes]
        if len(actions) > self.takes:
            raise ApiError(HTTPStatus.CONFLICT, "Conflict", "the object has been modified")

    async def post_event(self, namespace: str, body: dict[str, Any]) -> None:
        """Take an Event."""
        del namespace
        self.events.append(body["note"])

    async def repeat_event(self, namespace: str, name: str, series: dict[str, Any]) -> None:
        """Take an Event that is said again."""

    async def write_status(self, observed: Observation, status: dict[str, Any]) -> None:
        """Take a status."""


@pytest.mark.parametrize(
    ("takes", "reported"),
    [
        (0, []),
        (1, ["scale on-demand 5 -> 2 (-3)"]),
        (2, ["scale on-demand 5 -> 2 (-3)", "scale spot 5 -> 2 (-3)"]),
    ],
)
async def test_a_lost_race_is_no_news(takes: int, reported: list[str]) -> None:
    """Two twins are lowered in one batch: so many Events of moves as there were answers."""
    cluster, queue = _Cluster(takes), WorkQueue()
    reconciler = Reconciler(
        queue,
        cast("Observer", cluster),
        cast("Writer", cluster),
        BoundedRenderer(renderer_of(Settings())),
        rules=Rules(),
        resync_s=5,
    )
    queue.serve(served=True)
    queue.add(KEY)
    running = asyncio.create_task(reconciler.run(1, 0))
    async with asyncio.timeout(20):
        await cluster.reconciles.acquire()
        await cluster.reconciles.acquire()  # the first reconcile is through
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert [type(one) for one in cluster.tried[:2]] == [Scale, Scale]
    assert [event.partition(":")[0] for event in cluster.events if event.startswith("scale")] == reported
