"""Who goes first: by the priority of pods, then by rank, then who came first."""

import asyncio
from dataclasses import replace

import pytest

from builders import observation, pods, source, twin
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation
from splitter.core.names import Key
from splitter.core.replica import Pool
from splitter.reconciler.queue import WorkQueue
from splitter.reconciler.ranking import Ranking


def seen(namespace: str, name: str, priority: int = 0) -> Observation:
    """Return what is seen of a workload whose pods have a priority."""
    on_spot = [replace(pod, priority=priority) for pod in pods(2)]
    made = observation(on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT, on_spot))
    return replace(made, key=Key("Deployment", namespace, name))


def queue_of(*workloads: tuple[str, str, int, int]) -> tuple[WorkQueue, list[Key]]:
    """Return a queue that has seen workloads: namespace, name, priority, rank."""
    queue = WorkQueue()
    keys = []
    for namespace, name, priority, rank in workloads:
        observed = seen(namespace, name, priority)
        queue.ranking.saw(observed, Policy(rank=rank))
        keys.append(observed.key)
    return queue, keys


async def taken(queue: WorkQueue) -> list[str]:
    """Take everything that waits."""
    names = []
    while len(queue):
        async with asyncio.timeout(1):
            key = await queue.take()
        names.append(key.name)
        queue.done(key)
    return names


async def test_an_emergency_goes_by_rank_in_a_namespace() -> None:
    """The on-demand capacity that is there goes to whom the user has put first."""
    queue, keys = queue_of(
        ("shop", "a", 0, 500), ("shop", "b", 0, 20), ("shop", "c", 0, 3), ("shop", "d", 0, 20)
    )
    for key in keys:
        queue.add(key, urgent=True)
    assert await taken(queue) == ["c", "b", "d", "a"]


async def test_ranks_say_nothing_between_namespaces() -> None:
    """A tenant who ranks all its workloads first does not go before others."""
    queue, keys = queue_of(
        ("evil", "e1", 0, 0), ("evil", "e2", 0, 0), ("shop", "a", 0, 900), ("shop", "b", 0, 900)
    )
    for key in keys:
        queue.add(key, urgent=True)
    assert await taken(queue) == ["e1", "a", "e2", "b"]


async def test_priorities_do() -> None:
    """They come before ranks, and decide about every second workload."""
    queue, keys = queue_of(
        ("dev", "a", 0, 0), ("dev", "b", -10, 0), ("shop", "c", 1000, 500), ("shop", "d", 2000, 900)
    )
    for key in keys:
        queue.add(key, urgent=True)
    assert await taken(queue) == ["d", "a", "c", "b"]


async def test_priorities_starve_no_other_namespace() -> None:
    """Not even several namespaces, which may hold all the workers between them, with keys that come again."""
    evil = [(f"evil-{name}", name, 2_000_000_000, 0) for name in "abcd"]
    queue, keys = queue_of(*evil, ("shop", "w", 0, 0))
    for key in keys:
        queue.add(key, urgent=True)
    names: list[str] = []
    while len(names) < 10:
        key = await queue.take()
        names.append(key.name)
        queue.done(key)
        queue.add(key, urgent=True)
    assert names[0] == "a"
    assert names.count("w") == 1


async def test_what_is_no_emergency_keeps_its_turn() -> None:
    """Ordinary reconciles come as they came."""
    queue, keys = queue_of(("shop", "a", 0, 500), ("shop", "b", 0, 0))
    for key in keys:
        queue.add(key)
    assert await taken(queue) == ["a", "b"]


@pytest.mark.parametrize("gone", [False, True])
def test_remembers_no_more_than_it_has_to(gone: bool) -> None:
    """A workload that is like most, or gone, costs no memory."""
    ranking = Ranking()
    observed = seen("shop", "a", priority=7)
    ranking.saw(observed, Policy(rank=1))
    assert ranking.of(observed.key) == (-7, 1)
    if gone:
        ranking.saw(replace(observed, source=None), Policy(rank=1))
    else:
        ranking.saw(seen("shop", "a"), Policy())
    assert ranking.of(observed.key) == (0, 500)
    assert len(ranking) == 0


def test_of_its_own_pods_before_it_is_taken_over() -> None:
    """The pods of the source count until the twins have some."""
    own = replace(observation(), source=source())
    ranking = Ranking()
    ranking.saw(own, Policy())
    assert ranking.of(own.key) == (0, 500)
