"""The writes of the moment in which pods have no owner, as dry runs: splitter's, and the garbage collector's.

`dry_run` sends them before a take-over, and the reconciler right before pods are let go, in either direction
(`rehearse_letting_go`). So what is refused is known while the pods still have their owner. It writes nothing.
Source: H12, H18.
"""

from collections.abc import Iterable, Mapping, Sequence

import orjson

from splitter.core.actions import AdoptPods, LabelPod
from splitter.core.handover import holds_replicas
from splitter.core.labels_annotations import kept_name
from splitter.core.model import Attachment, Note, Observation, Rendered, ReplicaSetView, SourceView, TwinView
from splitter.core.replica import Pool, Replica
from splitter.kube import paths
from splitter.kube.client import Client, Json
from splitter.kube.mutations import mutations
from splitter.kube.payloads import adopting, keeping, labelling
from splitter.kube.rehearsal import DeniedError, Rehearsal, Write, mutated

_LONGEST_NAME = 253
_REPLICA_SETS = "count/replicasets.apps"
# How it is said to people whose policy forbids pods without an owner.
_FOR_A_MOMENT = (
    "When a Deployment is split or given back, the garbage collector of Kubernetes takes the owner off its"
    " running pods, and they have none for a moment."
)


async def rehearse_letting_go(
    client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]
) -> Note | None:
    """Return why pods that are about to be let go would not all have an owner again, or None.

    Of a source whose pods go to its twins, or of twins whose pods go home. At most 12 requests: the adopting
    ReplicaSets (and the twins, read and compared with what was rendered), the twins resumed and scaled or
    the source unpaused, what keeps the template, the quotas, the deletions that leave pods running, and one
    pod of each pool that loses its owner, or its labels. Raises ApiError without an answer, or if another
    client wrote in between: look again then.
    """
    source = observed.source
    if source is None:
        return None
    rehearsal = Rehearsal(client)
    homes = [rs for rs in observed.attached_as(Attachment.ATTACHED) if holds_replicas(rs) and rs.hashes]
    try:
        if homes:
            await _to_the_twins(rehearsal, observed, source, homes[0], rendered)
        else:
            await _back_home(rehearsal, observed, source)
    except DeniedError as denied:
        return denied.note
    return None


async def _to_the_twins(
    rehearsal: Rehearsal,
    observed: Observation,
    source: SourceView,
    home: ReplicaSetView,
    rendered: Mapping[Pool, Rendered],
) -> None:
    for twin in observed.twins:
        live = await rehearsal.client.get(paths.workload(source.key, twin.name))
        if twin.bears(rendered[twin.pool].hash):
            sent = orjson.loads(rendered[twin.pool].manifest_json)["spec"]
            if changed := mutations({"spec": sent}, live).changed:
                raise DeniedError(mutated(f"write {twin.name}", changed))
        await rehearsal.of(adoption(source, home, twin.pool, live))
        for replicas in (0, source.replicas):
            await rehearsal.of(_resumed(source, twin, replicas))
    await rehearsal.has_room(source.key.namespace, {_REPLICA_SETS: len(observed.twins)})
    await rehearsal.of(orphaning(source, home))
    for pod in one_of_each_pool(home.pods):
        await rehearsal.of(owner_taken_off(source, home, pod))


async def _back_home(rehearsal: Rehearsal, observed: Observation, source: SourceView) -> None:
    active = [
        next(rs for rs in twin.replica_sets if holds_replicas(rs))
        for twin in observed.twins
        if any(map(holds_replicas, twin.replica_sets))
    ]
    # Idle ones go first, which may make the room that a quota has not: what is created is asked for then.
    idle = any(not holds_replicas(rs) for twin in observed.twins for rs in twin.replica_sets)
    if active and not idle:
        await rehearsal.has_room(source.key.namespace, {_REPLICA_SETS: 1})
        await rehearsal.of(home_coming(source, active[0]))
        await rehearsal.of(keeper(source, active[0].hashes, {"metadata": {}, **_itself(source)}))
        free = {"metadata": {"uid": source.uid}, "spec": {"paused": None}}
        await rehearsal.of(Write("unpause the source", "PATCH", paths.workload(source.key), free, "merge"))
    for rs in active:
        await rehearsal.of(orphaning(source, rs))
        for pod in [pod for pod in rs.pods if pod.counts][:1]:
            await rehearsal.of(owner_taken_off(source, rs, pod))
            path, bare = paths.pods(source.key.namespace).of(pod.name), LabelPod(pod.name, pod.uid, None)
            what = f"take the labels off pod {pod.name}"
            await rehearsal.of(Write(what, "PATCH", path, labelling(source, bare), "merge"))


def _resumed(source: SourceView, twin: TwinView, replicas: int) -> Write:
    """Return a twin as it may be written when it has its pods: resumed, and scaled."""
    body = {"metadata": {"uid": twin.uid}, "spec": {"paused": None, "replicas": replicas}}
    what = f"resume {twin.name} with {replicas} replica{'' if replicas == 1 else 's'}"
    return Write(what, "PATCH", paths.workload(source.key, twin.name), body, "merge")


def _itself(source: SourceView) -> Json:
    itself: Json = orjson.loads(source.manifest_json)
    return {**itself, "spec": {**itself["spec"], "replicas": source.replicas}}


def home_coming(source: SourceView, rs: ReplicaSetView) -> Write:
    """Return the ReplicaSet of the source that adopts its pods on the way back."""
    return adoption(source, rs, None, _itself(source))


def adoption(source: SourceView, rs: ReplicaSetView, pool: Pool | None, owner: Json) -> Write:
    """Return the ReplicaSet that adopts for this owner what a ReplicaSet lets go: a twin, or the source."""
    hashes = rs.hashes or (rs.template_hash,)
    # A letter more than Kubernetes' own: one of that name may be there, and would be all that is answered.
    name = f"{owner['metadata']['name']}-{hashes[0]}a"[:_LONGEST_NAME]
    action = AdoptPods(name, pool, hashes, None)
    where = f"the {pool} twin" if pool is not None else "the source, on the way back"
    return Write(
        f"create the replicaset that adopts running pods for {where}",
        "POST",
        paths.replica_sets(source.key.namespace),
        adopting(source, action, owner, owner),
        whole=True,
    )


def keeper(source: SourceView, hashes: Sequence[str], live: Json) -> Write:
    """Return the ReplicaSet at 0 that keeps a template while its pods have no owner."""
    kept = keeping(source, kept_name(source.key.name, hashes[0]), live)
    where = paths.replica_sets(source.key.namespace)
    return Write("create a replicaset that keeps the template", "POST", where, kept, whole=True)


def orphaning(source: SourceView, rs: ReplicaSetView) -> Write:
    """Return the deletion of a ReplicaSet that leaves its pods running."""
    options = {
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": rs.uid, "resourceVersion": rs.resource_version},
        "dryRun": ["All"],  # options in a body are all that counts
    }
    path = paths.replica_sets(source.key.namespace).of(rs.name)
    return Write(f"delete replicaset {rs.name} and leave its pods running", "DELETE", path, options)


def owner_taken_off(source: SourceView, rs: ReplicaSetView, pod: Replica) -> Write:
    """Return what the garbage collector sends for each pod of a ReplicaSet that is deleted like that.

    As `GenerateDeleteOwnerRefStrategicMergeBytes` of its client makes it, with the pod's UID as precondition.
    """
    off = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": rs.uid}], "uid": pod.uid}}
    path = paths.pods(source.key.namespace).of(pod.name)
    what = f"take the owner off pod {pod.name}"
    return Write(what, "PATCH", path, off, "strategic", because=_FOR_A_MOMENT, meant={})


def one_of_each_pool(pods: Iterable[Replica]) -> list[Replica]:
    """Return one pod on spot and one on on-demand, as far as there are: a policy may tell them apart."""
    return list({pod.on_spot: pod for pod in pods if pod.counts}.values())
