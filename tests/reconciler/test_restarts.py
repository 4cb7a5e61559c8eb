"""The count of a member's restarts: kept when no answer comes, and while the Split cannot be written."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest

from builders import free_source, observation, pod, replica_set, split
from splitter.assembly import renderer_of, rules_of
from splitter.core.actions import Action, EvictPod
from splitter.core.model import Observation, Standing, StatefulView, Tie
from splitter.core.names import STATEFUL_SET, Key
from splitter.kube.client import ApiError
from splitter.reconciler import Reconciler
from splitter.reconciler.queue import WorkQueue
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

KEY = Key(STATEFUL_SET, "shop", "db")
MANIFEST = {"spec": {"template": {"spec": {"containers": [{"name": "db"}]}}}}


class Doomed:
    """An observer: `db-4` stands on a spot node that goes, again and again, and the Split never changes."""

    async def observe(self, key: Key, now: datetime, promised: int = 0) -> Observation:
        """Return what is seen."""
        del promised
        source = replace(
            free_source(5),
            key=key,
            uid="uid-db",
            manifest_json=json.dumps(MANIFEST),
            stateful=StatefulView(5, 5, 5, now),
        )
        members = [pod(f"db-{k}", ordinal=k) for k in range(4)]
        doomed = pod("db-4", Standing.DOOMED, uid=f"uid-{now}", ordinal=4, on_spot=True)
        itself = replace(replica_set("db", of=(*members, doomed), tie=Tie.PARKED), first_ordinal=0)
        ours = split(owner_uids=("uid-db",), ordinals=(0, 1, 2, 4))
        seen = observation(source, [itself], key=key, now=now, split=ours)
        return replace(seen, told=((0, 2), (4, 4)))


class Answering:
    """A writer that counts the evictions, and fails as it is told."""

    def __init__(self, error: ApiError | None) -> None:
        self.evictions = 0
        self._error = error

    async def apply(self, observed: Observation, actions: tuple[Action, ...], written: list[Action]) -> int:
        """Count, and answer."""
        del observed, written
        self.evictions += sum(isinstance(one, EvictPod) for one in actions)
        if self._error is not None:
            raise self._error
        return len(actions)


@pytest.fixture
def renderer() -> Iterator[BoundedRenderer]:
    """Yield what renders twins."""
    found = BoundedRenderer(renderer_of(Settings()))
    yield found
    found.close()


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (None, 4),
        (ApiError(0, "Timeout", "no answer"), 4),
        (ApiError(503, "ServiceUnavailable", "overloaded"), 4),
        (ApiError(403, "Forbidden", "no right"), 12),
    ],
    ids=["the Split is never written", "no answer", "overloaded", "surely not done"],
)
def test_it_is_kept(renderer: BoundedRenderer, error: ApiError | None, asked: int) -> None:
    """What may have ended a pod counts; what surely has not, does not."""
    writer = Answering(error)

    async def passes() -> None:
        queue = WorkQueue()
        reconciler = Reconciler(
            queue,
            Doomed(),  # type: ignore[arg-type]
            writer,  # type: ignore[arg-type]
            renderer,
            rules=rules_of(Settings()),
            resync_s=300.0,
        )
        for _ in range(12):
            try:
                await reconciler._pass(KEY)  # noqa: SLF001 - what a worker does
            except ApiError as raised:
                assert raised is error  # noqa: PT017 - it is the writer's own
            reconciler._board._posted.clear()  # noqa: SLF001 - as when the status cannot be written

    asyncio.run(passes())
    assert writer.evictions == asked
