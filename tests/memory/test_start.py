"""A start against objects as dense as JSON gets, with the memory that the manifests grant."""

import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import Callable
from pathlib import Path

import pytest

from kube.server import serve
from memory.dense import KINDS, PLACES, dense, grown, managers
from memory.server import DenseServer

pytestmark = pytest.mark.slow

# Of the 512 MiB that the manifests grant.
MOST_MIB = 400
_ROOT = Path(__file__).parents[2]


async def _peak_mib(server: DenseServer, changes: int) -> int:
    path = os.pathsep.join((str(_ROOT), str(_ROOT / "tests")))
    async with serve(server.answer) as address:
        command = (sys.executable, "-m", "memory.start", address, str(changes))
        child = await create_subprocess_exec(
            *command, stdout=PIPE, stderr=PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        said, errors = await child.communicate()
    assert child.returncode == 0, errors.decode()[-2000:]
    return int(said)


# The API server takes objects of 1.5 MiB of protobuf, and serves 2.5 MiB of JSON for some of these.
_EACH_BYTES = 2_500_000


async def test_pages_of_dense_objects(record_property: Callable[[str, object], None]) -> None:
    """Objects of every kind, 13 ReplicaSets among them: neither their lists nor their changes take more."""
    server = DenseServer(
        {
            of.collection: [
                dense(kind, managers, _EACH_BYTES, number)
                for number in range(13 if kind == "replicaset" else 3)
            ]
            for kind, of in KINDS.items()
        }
    )
    peak = await _peak_mib(server, len(KINDS))
    record_property("a start against dense objects: peak, MiB", peak)
    assert peak < MOST_MIB


async def test_what_is_kept(record_property: Callable[[str, object], None]) -> None:
    """One tenant has as much kept as it can: many small pods, and objects that grow in each place."""
    small = grown("pod", PLACES["pod"][0], 1)
    collections = {KINDS["pod"].collection: [small.replace(b'-0"', b'-%d"' % one) for one in range(50_000)]}
    for kind in ("pod", "replicaset", "budget", "deployment"):
        objects = [dense(kind, grow, 500_000, one) for grow in PLACES[kind] for one in range(12)]
        collections.setdefault(KINDS[kind].collection, []).extend(objects)
    peak = await _peak_mib(DenseServer(collections), len(collections))
    record_property("a start with a full namespace: peak, MiB", peak)
    assert peak < MOST_MIB
