"""Sends every kind of write to come as a server-side dry run, before the first real one.

The reconciler calls it as the last step of eligibility, and `splitter plan` for the same answer. Policies
such as "no bare ReplicaSets", quotas on replicasets, webhooks and missing rights answer now, with their own
words, instead of after the pause.
It writes nothing. Source: H12.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from splitter.core.actions import ApplyTwin, LabelPod, Park, SaveReplicas
from splitter.core.labels_annotations import kept_name
from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Attachment, Note, Observation, Pool, Rendered, SourceView
from splitter.core.reasons import Reason, VerdictCause
from splitter.kube import paths
from splitter.kube.client import FORCED, OURS, ApiError, Client, Json
from splitter.kube.payloads import keeping, labelling, parking, saved_replicas, twin

_DRY = {"dryRun": "All"}
_MALFORMED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_REFUSALS = _MALFORMED | {HTTPStatus.FORBIDDEN}
_ALREADY_EXISTS = "AlreadyExists"
# What no Deployment can hold (an unknown field, a quantity such as "lots") is answered with 500 when applied.
_UNREADABLE = ("failed to create typed patch object", "failed to convert new object")
# By another source of that name, or a changed template set: Service, claims and selector are set at creation.
_FOR_LIFE = "updates to statefulset spec for fields other than"
# Policies and webhooks choose their own codes, 422 by default.
_BY_POLICY = ("denied request", "denied the request")


@dataclass(frozen=True, slots=True)
class _Write:
    """One write to try in a dry run."""

    what: str  # in words
    method: str
    path: paths.ResourcePath
    body: Json
    patch: str = ""  # the kind of patch
    template_set: str = ""  # that rendered the body


async def dry_run(client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]) -> Note | None:
    """Return why the API server would refuse one of the writes to come, or None.

    Raises ApiError when it does not answer, or when somebody wrote in between: look again then.
    """
    return await _refusal(client, [*_writes(observed, rendered), *await _adoption(client, observed)])


async def dry_run_roll(
    client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]
) -> Note | None:
    """Return why the API server would refuse one of the twins as rendered now, or None.

    Asked before the first twin is rolled: a template that only the second one's write would show to be
    wrong leaves two templates running. Raises ApiError as `dry_run` does.
    """
    source = observed.source
    return await _refusal(client, _twins(source, rendered)) if source is not None else None


async def _refusal(client: Client, writes: Sequence[_Write]) -> Note | None:
    for write in writes:
        query = (FORCED if write.patch == "apply" else OURS) | _DRY
        try:
            await client.send(write.method, write.path, write.body, patch=write.patch, query=query)
        except ApiError as error:
            if write.method == "POST" and error.reason == _ALREADY_EXISTS:
                # An earlier split has made it, of the same template. Who forbids things was asked first.
                continue
            if (note := refused(error, write.what, write.template_set)) is None:
                raise
            return note
    return None


def refused(error: ApiError, what: str, template_set: str) -> Note | None:
    """Return whose fault it is that a write was refused, or None when nobody has to mend anything.

    That is so without an answer, and in a namespace that is going. What no Deployment may be is the fault
    of the template set: its source is one that the API server has taken.
    """
    unreadable = any(words in error.message for words in _UNREADABLE)
    if (error.status not in _REFUSALS and not unreadable) or "being terminated" in error.message:
        return None
    by_policy = any(words in error.message for words in _BY_POLICY)
    text = error.message or str(error)
    why = text if text.endswith(".") else f"{text}."
    if _FOR_LIFE in error.message and not by_policy:
        message = (
            f"the API server would refuse to {what}: {why} Twins have their Service, claims and selector for"
            " life, and the source was created anew with others, or the template set has changed them; their"
            " pod template stays as it is until the label is removed and set again, and they are made anew"
        )
        return Note(Reason.WRITE_DENIED, message, warning=True, cause=VerdictCause.ANOTHER_OBJECT)
    if template_set and (error.status in _MALFORMED or unreadable) and not by_policy:
        message = (
            f"the API server would refuse to {what} as the template set {quoted(template_set)} renders it:"
            f" {why} Nothing was changed; mend the set, and it is tried again"
        )
        return Note(Reason.TEMPLATE_INVALID, message, warning=True)
    message = (
        f"the API server would refuse to {what}: {why} Nothing was changed;"
        " mend the policy, the quota or the right, and it is tried again"
    )
    return Note(Reason.WRITE_DENIED, message, warning=True, cause=VerdictCause.ANOTHER_OBJECT)


def lacks_rights(denied: Note) -> bool:
    """Whether who asked was refused, not what was asked: a preview runs with a user's own rights."""
    return 'User "' in denied.message and " cannot " in denied.message


def _twins(source: SourceView, rendered: Mapping[Pool, Rendered]) -> list[_Write]:
    writes: list[_Write] = []
    for pool in Pool:
        made = rendered[pool]
        body = twin(ApplyTwin(pool, made.manifest_json, made.hash, source.replicas, 1, 0, None))
        path = paths.workload(source.key, body["metadata"]["name"])
        writes.append(_Write(f"write the {pool} twin", "PATCH", path, body, "apply", made.template_set))
    return writes


def _writes(observed: Observation, rendered: Mapping[Pool, Rendered]) -> list[_Write]:
    source = observed.source
    if source is None:
        return []
    replica_sets = paths.replica_sets(source.key.namespace)
    writes = _twins(source, rendered)
    if source.stateful is not None:
        saved = saved_replicas(SaveReplicas(source.replicas, source.replicas, source.resource_version))
        saved["metadata"]["uid"] = source.uid
        to_zero = {**saved, "spec": {"replicas": 0}}
        path = paths.workload(source.key)
        return [
            *writes,
            _Write("save the replicas on the source", "PATCH", path, saved, "merge"),
            _Write("scale the source to 0", "PATCH", path, to_zero, "merge"),
        ]
    pause = {"metadata": {"uid": source.uid}, "spec": {"paused": True}}
    writes.append(_Write("pause the source", "PATCH", paths.workload(source.key), pause, "merge"))
    # One for all: who refuses one of them refuses any, and there may be hundreds.
    attached = observed.attached_as(Attachment.ATTACHED)
    for rs in sorted(attached, key=lambda rs: (rs.template_hash == source.template_hash, rs.created))[-1:]:
        path = replica_sets.of(rs.name)
        release = parking(Park(rs.name, rs.resource_version, source.selector_keys), source)
        writes.append(_Write(f"park replicaset {rs.name}", "PATCH", path, release, "strategic"))
    return writes


async def _adoption(client: Client, observed: Observation) -> list[_Write]:
    """Return the writes by which running pods change their owner: of one ReplicaSet, and of one pod."""
    source = observed.source
    active = [rs for rs in observed.attached_as(Attachment.ATTACHED) if rs.spec_replicas and rs.hashes]
    if source is None or not active:
        return []
    rs, replica_sets = active[0], paths.replica_sets(source.key.namespace)
    path = replica_sets.of(rs.name)
    kept = keeping(source, kept_name(source.key.name, rs.hashes[0]), await client.get(path))
    orphan = {
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": rs.uid, "resourceVersion": rs.resource_version},
        "dryRun": ["All"],
    }
    writes = [
        _Write("create a replicaset that keeps the template", "POST", replica_sets, kept),
        _Write(f"delete replicaset {rs.name} and leave its pods running", "DELETE", path, orphan),
    ]
    for pod in [pod for pod in rs.pods if pod.counts][:1]:
        labels = labelling(source, LabelPod(pod.name, pod.uid, Pool.SPOT))
        where = paths.pods(source.key.namespace).of(pod.name)
        writes.append(_Write(f"label pod {pod.name}", "PATCH", where, labels, "merge"))
    return writes
