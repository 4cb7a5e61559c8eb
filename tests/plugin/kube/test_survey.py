"""One look at all workloads without the label: what it reads, what it tells meanwhile, and how it fails."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.core.start_times import cover_s, learned
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.kube.connect import connect
from splitter.plugin.kube.survey import Survey, survey
from unlabelled import World
from world.kinds import REPLICA_SETS
from world.server import serving

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def world() -> World:
    """Return a cluster with one namespace."""
    result = World()
    result.add_namespace("shop")
    result.add_nodes(on_demand=1, spot=2)
    return result


async def looked(
    result: World, folder: Path, *namespaces: str, reported: list[tuple[str, float | None]] | None = None
) -> Survey:
    """Look at a cluster, or at some namespaces of it."""
    collected = reported if reported is not None else []
    with serving(result.api, folder / "kubeconfig"):
        client = await connect(folder / "kubeconfig", None, 5.0, connections=8)
        try:
            cache = Cache(partial(assess), _enqueue)
            return await survey(
                client,
                cache,
                namespaces,
                wanted=lambda _: True,
                now=NOW,
                tell=lambda *one: collected.append(one),
            )
        finally:
            await client.close()


def _enqueue(key: Key, *, urgent: bool) -> None:
    del key, urgent


async def test_a_candidate_has_what_was_seen_beside_it(tmp_path: Path) -> None:
    """Requests of one replica, starts of its Ready pods, its pods with their nodes."""
    result = world()
    result.add_deployment("web", 3, start_s=12, on_spot=1)
    result.add_deployment("api", 2, start_s=None)
    seen = await looked(result, tmp_path, "shop")
    (api, _), (web, source) = seen.candidates
    assert (source.key.name, source.replicas) == ("web", 3)
    assert (web.cpu_m, web.memory_bytes) == (500, 1024**3)
    assert cover_s(learned(web.observed)) == 12
    assert cover_s(learned(api.observed)) is None
    pods = [pod for rs in web.observed.replica_sets for pod in rs.pods]
    assert sorted(pod.on_spot for pod in pods) == [False, False, True]
    assert (seen.ages_s, seen.sight.notice_s, seen.unseen) == ((10_800.0, 10_800.0), 30.0, ())


async def test_old_replica_sets_of_another_of_the_name_say_nothing(tmp_path: Path) -> None:
    """A Deployment that was created anew is not as slow as the one before it."""
    text = world()
    text.add_deployment("web", 1, start_s=100)
    text.api.objects.all(REPLICA_SETS)[0]["metadata"]["ownerReferences"][0]["uid"] = "another"
    seen = await looked(text, tmp_path, "shop")
    assert [cover_s(learned(candidate.observed)) for candidate, _ in seen.candidates] == [None]


async def test_it_tells_what_it_reads(tmp_path: Path) -> None:
    """Kind and number, and how many workloads it has looked at."""
    collected, reported = world(), list[tuple[str, float | None]]()
    collected.add_deployment("web", 3)
    await looked(collected, tmp_path, "shop", reported=reported)
    assert ("reading pods: 3", None) in reported
    assert reported[-1] == ("looking at 1 of 1 workloads", 0.0)


async def test_it_reads_claims_only_for_who_mounts_some(tmp_path: Path) -> None:
    """No right is asked for that nothing needs."""
    result = world()
    result.add_deployment("web", 1)
    await looked(result, tmp_path, "shop")
    assert not [path for _, _, path in result.api.asked if "persistentvolume" in path]


@pytest.mark.parametrize(
    ("forbidden", "namespace", "status", "words"),
    [
        ("", "nowhere", 404, '"nowhere" not found'),
        ("deployments", "shop", 403, "these credentials may not list Deployments in namespace shop"),
    ],
)
async def test_it_fails_in_words(
    tmp_path: Path, forbidden: str, namespace: str, status: int, words: str
) -> None:
    """Where there is nothing to show at all."""
    result = world()
    result.api.forbidden = {forbidden} - {""}
    with pytest.raises(ApiError, match=words) as raised:
        await looked(result, tmp_path, namespace)
    assert raised.value.status == status
