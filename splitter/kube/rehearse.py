"""The rehearsal: every kind of write to come, as a server-side dry run, before the first real one.

The reconciler calls it as the last step of eligibility, and `splitter plan` for the same answer. Policies
such as "no bare ReplicaSets", quotas on replicasets, webhooks and missing rights answer now, with their own
words, instead of after the pause.
It writes nothing. Source: handover.md, "Eligibility".
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from splitter.core.actions import ApplyTwin, Park
from splitter.core.model import Note, Observation, Pool, Rendered, SourceView, Tie
from splitter.core.reasons import Reason
from splitter.kube.bodies import apps_path, hand_back, parking, twin
from splitter.kube.client import FIELD_MANAGER, ApiError, Client, Json

_DRY = {"fieldManager": FIELD_MANAGER, "dryRun": "All"}
_REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY})

Write = tuple[str, str, str, Json, str]
"""What is rehearsed in words, method, path, body, kind of patch."""


async def rehearse(client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]) -> Note | None:
    """Return why the API server would refuse one of the writes to come, or None.

    Raises ApiError when it does not answer, or when somebody wrote in between: look again then.
    """
    return await _refusal(client, _writes(observed, rendered))


async def rehearse_roll(
    client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]
) -> Note | None:
    """Return why the API server would refuse one of the twins as rendered now, or None.

    Asked before the first twin is rolled: a template that only the second one's write would show to be
    wrong leaves two templates running. Raises ApiError as `rehearse` does.
    """
    source = observed.source
    return await _refusal(client, _twins(source, rendered)) if source is not None else None


async def _refusal(client: Client, writes: Sequence[Write]) -> Note | None:
    for what, method, path, body, patch in writes:
        query = {**_DRY, "force": "true"} if patch == "apply" else _DRY
        try:
            await client.send(method, path, body, patch=patch, query=query)
        except ApiError as error:
            if error.status not in _REFUSALS or "being terminated" in error.message:
                raise  # no answer, or a namespace that is going: nobody has to mend that
            message = (
                f"the API server would refuse to {what}: {error.message or error}. Nothing was changed;"
                " mend the policy, the quota or the right, and it is tried again"
            )
            return Note(Reason.WRITE_DENIED, message, warning=True)
    return None


def lacks_rights(denied: Note) -> bool:
    """Whether who asked was refused, not what was asked: a preview runs with a user's own rights."""
    return 'User "' in denied.message and " cannot " in denied.message


def _twins(source: SourceView, rendered: Mapping[Pool, Rendered]) -> list[Write]:
    found: list[Write] = []
    for pool in Pool:
        made = rendered[pool]
        body = twin(ApplyTwin(pool, made.manifest_json, made.hash, source.replicas, 1, 0, None))
        path = f"{apps_path(source.key.namespace)}/deployments/{body['metadata']['name']}"
        found.append((f"write the {pool} twin", "PATCH", path, body, "apply"))
    return found


def _writes(observed: Observation, rendered: Mapping[Pool, Rendered]) -> list[Write]:
    source = observed.source
    if source is None:
        return []
    home = apps_path(source.key.namespace)
    found = _twins(source, rendered)
    pause = {"metadata": {"uid": source.uid}, "spec": {"paused": True}}
    found.append(("pause the source", "PATCH", f"{home}/deployments/{source.key.name}", pause, "merge"))
    for rs in observed.tied(Tie.ATTACHED):
        path = f"{home}/replicasets/{rs.name}"
        release = parking(Park(rs.name, rs.resource_version, source.selector_keys), source)
        found.append((f"park replicaset {rs.name}", "PATCH", path, release, "strategic"))
        if rs.template_hash == source.template_hash:
            scale: Json = {"spec": {"replicas": rs.spec_replicas}}
            found.append((f"scale replicaset {rs.name}", "PATCH", path, scale, "merge"))
    way_back = ("create a replicaset for the way back", "POST", f"{home}/replicasets", hand_back(source), "")
    return [*found, way_back]
