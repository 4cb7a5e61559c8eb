"""The probes: live unless only a new process helps, ready with full caches, and a body that says why."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from clock import Clock
from splitter.core.names import Key
from splitter.kube.client import ApiError
from splitter.reconciler.health_checks import checks
from splitter.reconciler.queue import WorkQueue

WEB = Key("Deployment", "shop", "web")


@dataclass
class Watch:
    """What the checks see of a reflector."""

    label: str = "/api/v1/pods"
    namespace: str = ""
    optional: bool = False
    stuck: bool = False
    silent_s: float = 5.0
    error: ApiError | None = None
    synced: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Be listed."""
        self.synced.set()


@dataclass
class Leadership:
    """What the checks see of an election."""

    answered: bool = True
    leading: bool = False
    leader: str = "other-pod_1"


class Reconciles:
    """What the checks see of the queue."""

    def __init__(self, waits: int = 0, stuck_s: float = 0.0, longest_s: float = 0.0) -> None:
        self.served = True
        self._waits, self._stuck_s, self._longest_s = waits, stuck_s, longest_s

    def __len__(self) -> int:
        """Return how many wait."""
        return self._waits

    def stuck_s(self) -> float:
        """Return for how long nothing has ended."""
        return self._stuck_s

    def longest_reconcile_s(self) -> float:
        """Return for how long a reconcile has lasted."""
        return self._longest_s


look: Any = checks  # which takes the real ones


def verdict(
    *watches: Watch,
    reconciles: Reconciles | None = None,
    election: Leadership | None = None,
    stopping: bool = False,
) -> tuple[bool, bool, str]:
    """Return live, ready, and all messages."""
    results = look(
        watches or (Watch(),), Reconciles() if reconciles is None else reconciles, election, stopping=stopping
    )
    reported = "; ".join(f"{one.name} {one.message}" for one in results)
    return all(one.live for one in results), all(one.ready for one in results), reported


class TestWatches:
    def test_follows(self) -> None:
        """A watch that hears something now and then is fine."""
        assert verdict()[:2] == (True, True)

    def test_not_listed(self) -> None:
        """Until the caches are full it is live and not ready."""
        assert verdict(Watch(synced=asyncio.Event()), Watch())[:2] == (True, True)
        empty = Watch()
        empty.synced.clear()
        live, ready, reported = verdict(empty, Watch())
        assert (live, ready) == (True, False)
        assert "/api/v1/pods is not listed yet" in reported

    def test_one_namespace_of_several(self) -> None:
        """It is said, and whoever looks after the others is ready; with none to look after it is not."""
        gone, there = Watch(label="/b/pods", namespace="b"), Watch(label="/a/pods", namespace="a")
        gone.synced.clear()
        assert verdict(Watch(), gone, there)[1]
        assert "nothing is done in b" in verdict(Watch(), gone, there)[2]
        there.synced.clear()
        assert not verdict(Watch(), gone, there)[1]

    def test_a_leader_that_sees_nothing(self) -> None:
        """It does not say that it stands by, and soon it is not ready."""
        for waited_s, ready in ((10.0, True), (60.0, False)):
            results = look(
                (Watch(),), Reconciles(), Leadership(leading=True), stopping=False, waiting_s=waited_s
            )
            [reconciles] = [one for one in results if one.name == "passes"]
            assert (reconciles.ready, reconciles.live) == (ready, True)
            assert f"{waited_s:.0f} s to see" in reconciles.message

    def test_api_server_away(self) -> None:
        """An API server that is away is said, and no reason to restart: that would not bring it back."""
        away = Watch(error=ApiError(0, "NoAnswer", "refused"), silent_s=900)
        live, ready, reported = verdict(away)
        assert (live, ready) == (True, True)
        assert "is interrupted: 0 NoAnswer: refused" in reported

    def test_stuck(self) -> None:
        """A watch in which nothing happens, not even a failure, is mended by a new process only."""
        live, _, reported = verdict(Watch(stuck=True))
        assert not live
        assert "is stuck" in reported

    def test_optional(self) -> None:
        """What splitter does without is neither."""
        assert verdict(Watch(), Watch(optional=True, stuck=True))[:2] == (True, True)


class TestReconciles:
    def test_stuck(self) -> None:
        """Keys that wait while no reconcile ends for five minutes: not live."""
        assert verdict(reconciles=Reconciles(5, 299))[0]
        live, _, reported = verdict(reconciles=Reconciles(5, 301))
        assert not live
        assert "5 workloads wait, no reconcile has ended for 301 s" in reported

    def test_one_pass(self) -> None:
        """One pass that lasts longer than all its requests may: not live, however the others do."""
        assert not verdict(reconciles=Reconciles(0, 1, 601))[0]

    def test_api_server_away(self) -> None:
        """While no watch hears anything, passes that do not end are the API server's."""
        live, _, reported = verdict(Watch(silent_s=200), reconciles=Reconciles(5, 1000))
        assert live
        assert "a restart would not help" in reported

    def test_standby(self) -> None:
        """Who does not lead has no reconciles to be stuck with."""
        reconciles = Reconciles(5, 1000)
        reconciles.served = False
        assert verdict(reconciles=reconciles, election=Leadership())[:2] == (True, True)


class TestLeadership:
    @pytest.mark.parametrize(
        ("election", "ready", "reported"),
        [
            (None, True, "leader this process, without an election"),
            (Leadership(answered=False), False, "leader not known yet"),
            (Leadership(leading=True), True, "leader this process"),
            (Leadership(), True, "which stands by; last seen: other-pod_1"),
            (Leadership(leader=""), True, "which stands by; last seen: nobody"),
        ],
    )
    def test_ready(self, election: Leadership | None, ready: bool, reported: str) -> None:
        """Leading or standing by, a replica is ready."""
        assert verdict(election=election)[1] is ready
        assert reported in verdict(election=election)[2]

    def test_leaving(self) -> None:
        """Who is told to leave is not ready any more, and live to the end."""
        assert verdict(stopping=True)[:2] == (True, False)


class TestQueue:
    async def test_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Time counts from the first key that waits, and from each reconcile that ends."""
        clock = Clock()
        monkeypatch.setattr("splitter.reconciler.queue.time.monotonic", clock)
        queue = WorkQueue()
        queue.serve(served=True)
        clock.now_s += 100
        assert queue.stuck_s() == queue.longest_reconcile_s() == 0
        queue.add(WEB)
        clock.now_s += 7
        assert (queue.stuck_s(), queue.longest_reconcile_s()) == (7, 0)
        assert await queue.take() == WEB
        clock.now_s += 5
        assert (queue.stuck_s(), queue.longest_reconcile_s()) == (12, 5)
        queue.done(WEB)
        assert queue.stuck_s() == queue.longest_reconcile_s() == 0
