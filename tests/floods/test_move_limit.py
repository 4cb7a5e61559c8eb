"""Many workloads that wait for their turn to be taken over: they are woken, and ask nothing meanwhile.

`FLOOD_WAITING=1000` has so many of them.
"""

import os
from collections import Counter

import pytest

from bench.offline import deployment_status, pod_on, replica_set_of, source_deployment
from floods.figures import reported
from floods.process import lead, now, standing_by
from leaping import passing
from world.api import Api
from world.kinds import DEPLOYMENTS, SPLITS

pytestmark = pytest.mark.slow

WAITING, NAMESPACES, REPLICAS = int(os.environ.get("FLOOD_WAITING", "400")), 50, 2
REHEARSAL = 20  # requests at most before a take-over (H12)
LIMIT = 2  # fewer than the default: whoever has its turn is looked at each second, and takes the CPU


def label(api: Api, number: int) -> None:
    """Have one of the Deployments there, labelled: its ReplicaSet shows a pod more than it wants."""
    namespace, name = f"ns-{number % NAMESPACES}", f"web-{number}"
    source = source_deployment(namespace, name, REPLICAS)
    del source["metadata"]["annotations"], source["metadata"]["managedFields"], source["spec"]["paused"]
    source["status"] = deployment_status(REPLICAS)
    template = source["spec"]["template"]
    owned = replica_set_of(namespace, source, template, REPLICAS)
    owned["status"]["replicas"] += 1
    api.put(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", source)
    api.put(f"/apis/apps/v1/namespaces/{namespace}/replicasets/{owned['metadata']['name']}", owned)
    for index in range(REPLICAS):
        pod = pod_on(namespace, f"{name}-{index}", owned, template, "node-1")
        api.put(f"/api/v1/namespaces/{namespace}/pods/{name}-{index}", pod)


def reasons(api: Api) -> Counter[str]:
    """Count the reasons that the Splits tell."""
    return Counter(raw["status"]["reason"] for raw in api.objects.all(SPLITS))


def taken(api: Api) -> set[str]:
    """Return the paths of the Splits of those who have had their turn."""
    return {path for path, raw in api.objects.items() if "/splits/" in path and raw["spec"]["takeOver"]}


async def test_hundreds_wait() -> None:
    """Two are being taken over and do not get on. All together ask for less than one request a second."""
    api = Api()
    for number in range(WAITING):
        label(api, number)
    async with standing_by(api, moves=LIMIT) as operator:
        await lead(operator)
        await passing(30.0)
        assert reasons(api)["WaitingForTurn"] == WAITING - LIMIT
        began_s = now()
        await passing(240.0)
        reported(api, began_s, 240.0)
        assert sum(api.rates(began_s).values()) < 240.0

        # Whoever does not get on has its turn for five minutes: the next ones are of a namespace each.
        before = taken(api)
        await passing(60.0)
        assert reasons(api)["WaitingForTurn"] == WAITING - 2 * LIMIT
        assert len({path.split("/")[5] for path in taken(api) - before}) == LIMIT
        began_s = now()
        await passing(300.0)
        reported(api, began_s, 300.0)
        assert reasons(api)["WaitingForTurn"] == WAITING - 3 * LIMIT
        # The rehearsals of the two that begin meanwhile are not of those that wait.
        assert sum(api.rates(began_s).values()) < 300.0 + LIMIT * REHEARSAL


async def test_a_new_leader_knows_whose_turn_it_is() -> None:
    """What the last one began counts from the first moment: no others begin beside it."""
    api = Api()
    for number in range(4 * LIMIT):
        label(api, number)
    async with standing_by(api, moves=LIMIT) as operator:
        await lead(operator)
        before = taken(api)
        assert len(before) == LIMIT
    await passing(60.0)  # the lease of who stopped without a word runs out
    there = api.objects.by_kind[DEPLOYMENTS]
    api.objects.by_kind[DEPLOYMENTS] = dict(reversed(there.items()))  # those that wait are looked at first
    async with standing_by(api, moves=LIMIT) as operator:
        await lead(operator)
        assert taken(api) == before
        assert reasons(api)["WaitingForTurn"] == 3 * LIMIT
