"""What stands beside a workload and no watch tells us of: looked up live, before it is taken over.

`observe` asks when nothing of ours is there yet, and now and then while a workload is split and at rest
(a workload may become one that we would refuse). Rights that are not given and kinds that the cluster
does not know are no answer and no error: only autoscalers of the cluster itself are always asked about.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus

from splitter.core.model import Key, Neighbours, Pool, SourceView
from splitter.core.surface import LABEL_POOL, twin_name
from splitter.kube.client import ApiError, Client
from splitter.kube.parse.fields import Raw

_ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
_NO_ANSWER = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})


async def look_around(client: Client, source: SourceView) -> Neighbours:
    """Return what may stand in the way of a split. Raises ApiError when the API server does not answer."""
    key = source.key
    autoscalers = await _autoscalers(client, key.namespace)
    twins = {twin_name(key.name, pool) for pool in Pool}
    return Neighbours(
        taken_names=await _taken_names(client, key),
        autoscaled_twin=next((who for who, aim, _ in autoscalers if aim in twins), ""),
        untolerant_autoscaler=next(
            (who for who, aim, raw in autoscalers if aim == key.name and not _tolerates(raw)), ""
        ),
        one_node_claim=await _one_node_claim(client, key.namespace, source),
    )


async def _taken_names(client: Client, key: Key) -> tuple[str, ...]:
    """Return the twins' names that an object which is not ours has already."""
    taken = []
    for pool in Pool:
        name = twin_name(key.name, pool)
        found = await _maybe(client, f"/apis/apps/v1/namespaces/{key.namespace}/deployments/{name}")
        if found is not None and LABEL_POOL not in found["metadata"].get("labels", {}):
            taken.append(name)
    return tuple(taken)


async def _autoscalers(client: Client, namespace: str) -> list[tuple[str, str, Raw]]:
    """Return (kind/name, name of the Deployment it is aimed at, itself) of each autoscaler."""
    hpas = await client.get(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
    keda = await _maybe(client, f"/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects")
    return [
        *_aimed("HorizontalPodAutoscaler", hpas["items"]),
        *_aimed("ScaledObject", keda["items"] if keda else ()),
    ]


def _aimed(kind: str, items: Iterable[Raw]) -> Iterator[tuple[str, str, Raw]]:
    for raw in items:
        aim = raw.get("spec", {}).get("scaleTargetRef", {})
        if aim.get("kind", "Deployment") == "Deployment" and aim.get("name"):
            yield f"{kind}/{raw['metadata']['name']}", aim["name"], raw


def _tolerates(autoscaler: Raw) -> bool:
    """Whether an HPA shrugs off a small difference, which it cannot for External or Object averages.

    It divides those by `status.replicas` of the source, which is 0 while split: no 10 % tolerance.
    """
    spec = autoscaler["spec"]
    window = spec.get("behavior", {}).get("scaleUp", {}).get("stabilizationWindowSeconds")
    targets = (
        metric.get(kind, {}).get("target", {})
        for metric in spec.get("metrics") or ()
        for kind in ("external", "object")
    )
    return bool(window) or not any("averageValue" in target for target in targets)


async def _one_node_claim(client: Client, namespace: str, source: SourceView) -> str:
    """Return a claim of the pod template that only one node may mount, and the pods of both twins need."""
    for name in source.claims:
        found = await _maybe(client, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        modes = set(found["spec"].get("accessModes") or ()) if found else set()
        if modes and modes <= _ONE_NODE:
            return name
    return ""


async def _maybe(client: Client, path: str) -> Raw | None:
    try:
        return await client.get(path)
    except ApiError as error:
        if error.status in _NO_ANSWER:
            return None
        raise
