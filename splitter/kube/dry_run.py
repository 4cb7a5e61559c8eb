"""Sends every kind of write to come as a server-side dry run, before the first real one.

The reconciler calls it as the last step of eligibility, and `splitter plan` for the same answer. Policies
such as "no bare ReplicaSets", quotas on replicasets, webhooks and missing rights answer now, with their own
words, instead of after the pause; so does what changes a write on its way.
It writes nothing. Source: H12, H17.
"""

from collections.abc import Mapping

import orjson

from splitter.core.actions import ApplyTwin, LabelPod, Park, SaveReplicas
from splitter.core.handover import holds_replicas
from splitter.core.model import Attachment, Note, Observation, Rendered, ReplicaSetView, SourceView
from splitter.core.replica import Pool
from splitter.kube import paths
from splitter.kube.client import Client, Json
from splitter.kube.letting_go import (
    adoption,
    home_coming,
    keeper,
    one_of_each_pool,
    orphaning,
    owner_taken_off,
)
from splitter.kube.payloads import labelling, parking, saved_replicas, twin
from splitter.kube.rehearsal import DeniedError, Rehearsal, Rehearsed, Write


async def dry_run(client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]) -> Rehearsed:
    """Return why the API server would refuse one of the writes to come, or would change it, if it would.

    At most 20 requests. Raises ApiError when it does not answer, or if another client wrote in between: look
    again then.
    """
    source, rehearsal = observed.source, Rehearsal(client)
    if source is None:
        return Rehearsed()
    try:
        if source.stateful is not None:
            await _stateful(rehearsal, source, rendered)
        else:
            await _deployment(rehearsal, observed, source, rendered)
    except DeniedError as denied:
        return Rehearsed(denied.note)
    return Rehearsed(added=tuple(dict.fromkeys(rehearsal.added)))


async def dry_run_roll(
    client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]
) -> Note | None:
    """Return why the API server would refuse one of the twins as rendered now, or None. Two requests.

    Asked before the first twin is rolled: a template that only the second one's write would show to be
    wrong leaves two templates running. Raises ApiError as `dry_run` does.
    """
    source, rehearsal = observed.source, Rehearsal(client)
    if source is None:
        return None
    try:
        for pool in Pool:
            there = observed.twin(pool)
            replicas = there.spec_replicas if there is not None else source.replicas
            await rehearsal.of(_twin(source, pool, rendered[pool], replicas))
    except DeniedError as denied:
        return denied.note
    return None


def _twin(source: SourceView, pool: Pool, made: Rendered, replicas: int, *, paused: bool = False) -> Write:
    action = ApplyTwin(pool, made.manifest_json, made.hash, replicas, 1, 0, None, paused=paused)
    body = twin(action)
    path = paths.workload(source.key, body["metadata"]["name"])
    what = f"write the {pool} twin with {replicas} replica{'' if replicas == 1 else 's'}"
    return Write(what, "PATCH", path, body, "apply", made.template_set)


async def _stateful(rehearsal: Rehearsal, source: SourceView, rendered: Mapping[Pool, Rendered]) -> None:
    """Send what takes a StatefulSet over: its twins grow from 0, and it is scaled down to 0."""
    for pool in Pool:
        for replicas in sorted({0, source.replicas}):
            await rehearsal.of(_twin(source, pool, rendered[pool], replicas))
    saved = saved_replicas(SaveReplicas(source.replicas, source.replicas, source.resource_version))
    saved["metadata"]["uid"] = source.uid
    path = paths.workload(source.key)
    await rehearsal.of(Write("save the replicas on the source", "PATCH", path, saved, "merge"))
    to_zero = {**saved, "spec": {"replicas": 0}}
    await rehearsal.of(Write("scale the source to 0", "PATCH", path, to_zero, "merge"))
    await rehearsal.has_room(source.key.namespace, {"count/statefulsets.apps": len(Pool)})


async def _deployment(
    rehearsal: Rehearsal, observed: Observation, source: SourceView, rendered: Mapping[Pool, Rendered]
) -> None:
    """Send what takes a Deployment over and gives it back, with the numbers that it will have."""
    attached = observed.attached_as(Attachment.ATTACHED)
    home = next((rs for rs in attached if holds_replicas(rs) and rs.hashes), None)
    spot = sum(pod.counts and pod.on_spot for pod in home.pods) if home is not None else 0
    sizes = {Pool.ON_DEMAND: source.replicas - spot, Pool.SPOT: spot}
    twins = {
        pool: await _sized(rehearsal, source, pool, rendered[pool], size) for pool, size in sizes.items()
    }
    await rehearsal.of(_pause(source))
    # One for all: who refuses one of them refuses any, and there may be hundreds.
    for rs in sorted(attached, key=lambda rs: (rs.template_hash == source.template_hash, rs.created))[-1:]:
        path = paths.replica_sets(source.key.namespace).of(rs.name)
        release = parking(Park(rs.name, rs.resource_version, source.selector_keys), source)
        await rehearsal.of(Write(f"park replicaset {rs.name}", "PATCH", path, release, "strategic"))
    if home is not None:
        await _change_of_owner(rehearsal, source, home, twins)
    twins_needed = len(Pool) - len(observed.twins)
    # On the way back there are most of them: two that keep a template, the twins', and the source's again.
    await rehearsal.has_room(
        source.key.namespace,
        {
            "count/deployments.apps": twins_needed,
            "count/replicasets.apps": len(Pool) + (2 if home is not None else 0),
        },
    )


async def _sized(rehearsal: Rehearsal, source: SourceView, pool: Pool, made: Rendered, group: int) -> Json:
    """Send a twin as it is created, paused with the size of its group, and then with none and all replicas.

    Returns the first answer: a twin as the API server would have it.
    """
    created = await rehearsal.of(_twin(source, pool, made, group, paused=True))
    for replicas in sorted({0, source.replicas}):
        await rehearsal.of(_twin(source, pool, made, replicas))
    return created


def _pause(source: SourceView) -> Write:
    """Return the pause; a policy that changes the source's template with it would have it rolled."""
    body = {"metadata": {"uid": source.uid}, "spec": {"paused": True}}
    template = orjson.loads(source.manifest_json).get("spec", {}).get("template", {})
    meant = {"spec": {"paused": True, "template": template}}
    path = paths.workload(source.key)
    return Write("pause the source", "PATCH", path, body, "merge", meant=meant, whole=True)


async def _change_of_owner(
    rehearsal: Rehearsal,
    source: SourceView,
    home: ReplicaSetView,
    twins: Mapping[Pool, Json],
) -> None:
    """Send the writes by which running pods change their owner: of one ReplicaSet, and a pod of each pool."""
    replica_sets = paths.replica_sets(source.key.namespace)
    live = await rehearsal.client.get(replica_sets.of(home.name))
    await rehearsal.of(keeper(source, home.hashes, live))
    for pool, created in twins.items():
        await rehearsal.of(adoption(source, home, pool, created))
    await rehearsal.of(home_coming(source, home))
    await rehearsal.of(orphaning(source, home))
    for pod in one_of_each_pool(home.pods):
        labels = labelling(source, LabelPod(pod.name, pod.uid, Pool.SPOT if pod.on_spot else Pool.ON_DEMAND))
        where = paths.pods(source.key.namespace).of(pod.name)
        await rehearsal.of(Write(f"label pod {pod.name}", "PATCH", where, labels, "merge"))
        await rehearsal.of(owner_taken_off(source, home, pod))
