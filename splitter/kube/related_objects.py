"""Looks up related objects that are not watched, before a workload is taken over.

`observe` asks when nothing of ours is there yet, and now and then while a workload is split and at rest
(a workload may become one that we would refuse). Rights that are not given and kinds that the cluster
does not know are no answer and no error. Of the autoscalers `workload_autoscalers` keeps a
list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from http import HTTPStatus

from splitter.admission.placement import NAME as POLICY
from splitter.core.labels_annotations import ANNOTATION_MODE, LABEL_POOL, twin_name
from splitter.core.model import RelatedObjects, SourceView
from splitter.core.names import Key, is_name
from splitter.core.nodes.facts import NodeState
from splitter.core.placeable import OneNodeClaim
from splitter.core.replica import Pool
from splitter.kube import paths
from splitter.kube.client import KIND_MISSING, ApiError
from splitter.kube.listed import Reader
from splitter.kube.volumes import reach_of, shared_reach, taken_claims
from splitter.kube.workload_autoscalers import Autoscaler

_ONE_POD = "ReadWriteOncePod"
_ONE_NODE = frozenset({"ReadWriteOnce", _ONE_POD})


async def look_around(
    client: Reader,
    source: SourceView,
    autoscalers: Iterable[Autoscaler],
    nodes: Sequence[NodeState] = (),
    twins_seen: Collection[str] = (),
    *,
    annotations: Mapping[str, str] | None = None,
) -> RelatedObjects:
    """Return what may prevent a split. Raises ApiError when the API server does not answer.

    `nodes` are all that there are: where its volumes can be attached depends on them.
    `twins_seen` are the names of its twins that a watch has brought: those are ours, and not asked for.
    `annotations` are its namespace's.
    """
    key = source.key
    aimed = [one for one in autoscalers if one.kind == key.kind]
    twins = {twin_name(key.name, pool) for pool in Pool}
    return RelatedObjects(
        taken_names=await _taken_names(client, key, sorted(twins.difference(twins_seen))),
        taken_claims=await taken_claims(
            client, source, {**(annotations or {}), **source.annotations}, are_twins=bool(twins_seen)
        ),
        autoscaled_twin=next((one.who for one in aimed if one.aim in twins and not one.resizes), ""),
        untolerant_autoscaler=next((one.who for one in aimed if one.aim == key.name and not one.tolerant), "")
        if source.stateful is None
        else "",
        # It stands at 0, where who scales it stops or acts on nothing.
        scaled_by=next((one.who for one in aimed if one.aim == key.name), "")
        if source.stateful is not None
        else "",
        unplaceable=await _unplaceable(client, key.namespace) if source.stateful is not None else "",
        reach=await reach_of(client, source, nodes),
        shared_reach=await shared_reach(client, source, nodes),
        one_node_claim=await _one_node_claim(client, key.namespace, source),
    )


async def _unplaceable(client: Reader, namespace: str) -> str:
    """Return why the API server would not place a StatefulSet's pods; empty when it would."""
    twins = f"or split it into twins, whose pods get other names: annotate {ANNOTATION_MODE}=twins"
    try:
        await client.get(paths.POLICIES.of(POLICY))
        await client.get(paths.BINDINGS.of(POLICY))
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return (
                f"splitter may not see whether policy {POLICY} is there; apply manifests/rbac.yaml, {twins}"
            )
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        if error.reason == KIND_MISSING:
            return (
                "this API server has no MutatingAdmissionPolicy (admissionregistration.k8s.io/v1: Kubernetes"
                f" 1.36), which places the pods; upgrade it, {twins}"
            )
        return (
            f"the policy {POLICY}, or its binding, is not there, so nothing would place the pods; apply"
            f" manifests/admission/placement.yaml, {twins}"
        )
    try:
        await client.get(paths.placements(namespace), limit="1")
    except ApiError as error:
        if error.reason == KIND_MISSING:
            return f"{error.message}, {twins}"
        if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}:
            raise
    return ""


async def _taken_names(client: Reader, key: Key, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that an object which is not ours has already."""
    taken = []
    for name in filter(is_name, names):  # of a name that is nearly too long a twin's is
        raw = await client.find(paths.workload(key, name))
        if raw is not None and LABEL_POOL not in raw["metadata"].get("labels", {}):
            taken.append(name)
    return tuple(taken)


async def _one_node_claim(client: Reader, namespace: str, source: SourceView) -> OneNodeClaim | None:
    """Return a claim of the pod template that only one node may mount, and the pods of both twins need."""
    for name in filter(is_name, source.claims):  # no claim is called otherwise, and nobody may ask for more
        raw = await client.find(paths.claims(namespace).of(name))
        modes = set(raw["spec"].get("accessModes") or ()) if raw else set()
        if modes and modes <= _ONE_NODE:
            return OneNodeClaim(name, one_pod=modes == {_ONE_POD})
    return None
