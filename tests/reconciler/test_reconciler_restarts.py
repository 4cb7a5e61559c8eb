"""The count of a member's restarts: kept when no answer comes, and while the Split cannot be written."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from builders import free_source, observation, pod, replica_set, split
from splitter.assembly import renderer_of, rules_of
from splitter.core.actions import Action, EvictPod
from splitter.core.hot_nodes import HotNodes, LeavingReplica
from splitter.core.model import Attachment, Observation
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.replica import NodeStatus
from splitter.core.split_status import SplitStatus
from splitter.core.stateful import StatefulView
from splitter.kube.client import ApiError
from splitter.reconciler import Reconciler
from splitter.reconciler.hot_nodes import Unwatched
from splitter.reconciler.queue import WorkQueue
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

KEY = Key(STATEFUL_SET, "shop", "db")
MANIFEST = {"spec": {"template": {"spec": {"containers": [{"name": "db"}]}}}}


class Doomed:
    """An observer: `db-4` stands on a spot node that goes, again and again, and the Split never changes."""

    async def observe(self, key: Key, now: datetime, reserved: int = 0) -> Observation:
        """Return what is seen."""
        del reserved
        source = replace(
            free_source(5),
            key=key,
            uid="uid-db",
            manifest_json=json.dumps(MANIFEST),
            stateful=StatefulView(5, 5, 5, now),
        )
        members = [pod(f"db-{k}", ordinal=k) for k in range(4)]
        doomed = pod("db-4", NodeStatus.DOOMED, uid=f"uid-{now}", ordinal=4, on_spot=True, created=now)
        itself = replace(
            replica_set("db", of=(*members, doomed), attachment=Attachment.PARKED), first_ordinal=0
        )
        ours = split(owner_uids=("uid-db",), ordinals=(0, 1, 2, 4))
        seen = observation(source, [itself], key=key, now=now, split=ours)
        return replace(seen, published=((0, 2), (4, 4)))

    def with_pools(self, observed: Observation, _: object) -> Observation:
        """Return it as it is: each pool takes its replicas."""
        return observed


class Answering:
    """A writer that counts the evictions, and fails as it is told."""

    def __init__(self, error: ApiError | None) -> None:
        self.evictions = 0
        self._error = error

    async def write_status(
        self, observed: Observation, status: SplitStatus, *, as_seen: bool = False
    ) -> None:
        """Have no right to."""
        del observed, status, as_seen
        raise ApiError(403, "Forbidden", "no right")

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
    result = BoundedRenderer(renderer_of(Settings()))
    yield result
    result.close()


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

    async def reconciles() -> None:
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
                await reconciler._reconcile(KEY)  # noqa: SLF001 - what a worker does
            except ApiError as raised:
                assert raised is error  # noqa: PT017 - it is the writer's own
            reconciler._status_writer._posted.clear()  # noqa: SLF001 - as when the status cannot be written

    asyncio.run(reconciles())
    assert writer.evictions == asked


class Shared(Doomed):
    """The Split as the API server has it, and the members, for whoever leads; one status a version."""

    def __init__(self) -> None:
        self.status = SplitStatus()
        self.ends = self.written = 0
        self.made: datetime | None = None  # the member's pod, if it is to be the same in every reconcile
        self.taken_over = False  # another leader writes between what this one sees and what it writes
        self.answer: ApiError | None = None  # to an eviction, which is done all the same

    async def observe(self, key: Key, now: datetime, reserved: int = 0) -> Observation:
        """Return what is seen, with the Split as it was written last."""
        seen = await Doomed().observe(key, now, reserved)
        if self.made is not None:
            [itself] = seen.replica_sets
            same = replace(itself.pods[-1], created=self.made, uid="uid-same")
            seen = replace(seen, replica_sets=(replace(itself, pods=(*itself.pods[:-1], same)),))
        assert seen.split is not None
        return replace(seen, split=replace(seen.split, status=self.status))

    async def write_status(
        self, observed: Observation, status: SplitStatus, *, as_seen: bool = False
    ) -> None:
        """Take a status that is made of the last one."""
        del observed
        self.written += 1
        if as_seen and self.taken_over:
            raise ApiError(409, "Conflict", "the object has been modified")
        self.status = status

    async def apply(self, observed: Observation, actions: tuple[Action, ...], written: list[Action]) -> None:
        """End what is to end."""
        del observed
        written.extend(actions)
        ends = sum(isinstance(one, EvictPod) for one in actions)
        self.ends += ends
        if ends and self.answer is not None:
            raise self.answer


def led(
    renderer: BoundedRenderer,
    shared: Shared,
    reconciles: int = 1,
    *,
    flushes: bool = False,
    relief: Unwatched | None = None,
) -> None:
    """Lead for some reconciles, and stop: without a word, so that what is not written by then is lost."""

    async def term() -> None:
        reconciler = Reconciler(
            WorkQueue(),
            shared,  # type: ignore[arg-type]
            shared,  # type: ignore[arg-type]
            renderer,
            rules=rules_of(Settings()),
            resync_s=300.0,
            relief=relief,
        )
        for _ in range(reconciles):
            with suppress(ApiError):
                await reconciler._reconcile(KEY)  # noqa: SLF001 - what a worker does
        if flushes:
            await reconciler._status_writer.flush()  # noqa: SLF001 - as at the end of a term

    asyncio.run(term())


NO_ANSWER = ApiError(0, "NoAnswer", "the connection was lost")


@pytest.mark.parametrize("answer", [None, NO_ANSWER], ids=["answered", "no answer"])
def test_every_leader_knows_of_all_ends(renderer: BoundedRenderer, answer: ApiError | None) -> None:
    """Each is killed right after it has ended the member: together they end it four times an hour."""
    shared = Shared()
    shared.answer = answer
    for _ in range(12):
        led(renderer, shared)
    assert shared.ends == 4


def test_who_was_overtaken_ends_nobody(renderer: BoundedRenderer) -> None:
    """One who decides by a Split that another has written since: paused, say, and woken too late."""
    shared = Shared()
    shared.taken_over = True
    led(renderer, shared, reconciles=3)
    assert shared.ends == 0
    shared.taken_over = False
    led(renderer, shared)
    assert shared.ends == 1


def test_a_refused_end_is_not_counted(renderer: BoundedRenderer) -> None:
    """A budget says no, again and again: what was counted before it was asked is taken back."""
    shared = Shared()
    shared.answer = ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the budget")
    for _ in range(6):
        led(renderer, shared, flushes=True)
    assert shared.ends == 6
    assert shared.status.memory.rebalance.restarts == ()


def test_one_pod_is_counted_once(renderer: BoundedRenderer) -> None:
    """Killed after each of their writes, the next leader asks without counting again."""
    shared = Shared()
    shared.made = datetime(2026, 1, 5, tzinfo=UTC)
    led(renderer, shared)
    led(renderer, shared)
    assert (shared.written, shared.ends) == (1, 2)
    assert len(shared.status.memory.rebalance.restarts) == 1


class HotNode(Shared):
    """Five members at rest, of which two stand on a hot node; which of them is to leave changes."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []
        self.deaf = False  # no status can be written

    async def observe(self, key: Key, now: datetime, reserved: int = 0) -> Observation:
        """Return what is seen, with the Split as it was written last."""
        seen = await Doomed().observe(key, now, reserved)
        [itself] = seen.replica_sets
        spot = {"on_spot": True, "node": "hot-1", "node_uid": "uid-hot-1"}
        asleep = tuple(pod(f"db-{k}", ordinal=k, **(spot if k > 2 else {})) for k in range(5))  # type: ignore[arg-type]
        assert seen.split is not None
        assert seen.source is not None
        return replace(
            seen,
            source=replace(seen.source, annotations={"splitter.io/relief": "cpu=85,restarts"}),
            split=replace(seen.split, status=self.status, ordinals=(0, 1, 2)),
            published=((0, 2),),
            replica_sets=(replace(itself, pods=asleep),),
        )

    async def write_status(
        self, observed: Observation, status: SplitStatus, *, as_seen: bool = False
    ) -> None:
        """Take a status, or none."""
        if self.deaf:
            raise ApiError(500, "InternalError", "no storage")
        await super().write_status(observed, status, as_seen=as_seen)

    async def apply(self, observed: Observation, actions: tuple[Action, ...], written: list[Action]) -> None:
        """End what is to end."""
        self.ended += [one.pod for one in actions if isinstance(one, EvictPod)]
        await super().apply(observed, actions, written)


class Hot(Unwatched):
    """What is known of hot nodes: this member is to leave one."""

    def __init__(self, uid: str) -> None:
        self._uid = uid

    def view(self, key: Key) -> HotNodes:
        """Return it."""
        del key
        leaves = LeavingReplica(self._uid, "hot-1 is hot")
        return HotNodes(known=True, hot=("hot-1",), avoid=frozenset({"hot-1"}), leaves=leaves)


@pytest.mark.parametrize("answer", [None, NO_ANSWER], ids=["answered", "no answer"])
def test_a_crash_after_a_restart_for_relief_restarts_nobody(
    renderer: BoundedRenderer, answer: ApiError | None
) -> None:
    """Each leader is killed right after its eviction; all of them together restart one member."""
    shared = HotNode()
    shared.answer = answer
    for number in range(6):
        led(renderer, shared, relief=Hot(f"uid-db-{3 + number % 2}"))
    assert shared.ended == ["db-3"]
    assert [one.ordinal for one in shared.status.memory.rebalance.restarts] == [3]
    assert [one.pod for one in shared.status.relief.moves] == ["db-3"]


def test_none_is_restarted_for_relief_that_nobody_could_remember(renderer: BoundedRenderer) -> None:
    """A loss is answered all the same; what is done by choice waits until the Split can be written."""
    shared = HotNode()
    shared.deaf = True
    led(renderer, shared, reconciles=3, relief=Hot("uid-db-3"))
    assert shared.ended == []
    shared.deaf = False
    led(renderer, shared, relief=Hot("uid-db-3"))
    assert shared.ended == ["db-3"]


def test_a_restart_for_relief_that_a_budget_refuses_is_none(renderer: BoundedRenderer) -> None:
    """Neither the restart nor the move is remembered, and it is not asked again at once."""
    shared = HotNode()
    shared.answer = ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the budget")
    led(renderer, shared, reconciles=4, flushes=True, relief=Hot("uid-db-3"))
    assert shared.ended == ["db-3"]
    assert shared.status.memory.rebalance.restarts == ()
    assert shared.status.relief.moves == ()
