"""Compares an existing twin with what the API server would make of a rendered one (a dry run).

`splitter render --diff` calls it with a user's own rights. A server-side dry run fills in the same defaults
as the live twin has, so that what differs is what would change. It writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from splitter.core.actions import ApplyTwin
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH
from splitter.core.model import Observation, Rendered
from splitter.core.replica import Pool
from splitter.kube.client import FORCED, Allowing, ApiError, Client, Json
from splitter.kube.paths import ResourcePath, workload
from splitter.kube.payloads import twin
from splitter.kube.rehearsal import refused

# Written by the API server, by controllers, or by splitter because something else has changed.
_NOT_SAID = frozenset({ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH, "deployment.kubernetes.io/revision"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One twin as it is and as it would be: labels, annotations and spec; empty where there is none yet."""

    name: str
    live: Json
    would_be: Json


async def compare(
    client: Client, observed: Observation, rendered: Mapping[Pool, Rendered]
) -> list[Comparison]:
    """Return both twins, on-demand first. Replicas and the numbers of a roll stay as they are.

    Raises SplitterError when the API server would refuse one, ApiError when it does not answer.
    """
    return [await _compared(client, observed, pool, rendered[pool]) for pool in Pool]


async def _compared(client: Client, observed: Observation, pool: Pool, made: Rendered) -> Comparison:
    there = observed.twin(pool)
    replicas, surge, unavailable = (
        (there.spec_replicas, there.max_surge, there.max_unavailable) if there is not None else (0, 1, 0)
    )
    partition, first = (there.partition, there.first_ordinal) if there is not None else (0, None)
    body = twin(
        ApplyTwin(pool, made.manifest_json, made.hash, replicas, surge, unavailable, None, partition, first)
    )
    name = body["metadata"]["name"]
    path = workload(observed.key, name)
    try:
        would_be = await client.send("PATCH", path, body, patch="apply", query={**FORCED, "dryRun": "All"})
    except ApiError as error:
        note = refused(error, f"write the {pool} twin", made.template_set)
        if note is None:
            raise
        raise SplitterError(note.reason, note.message) from error
    return Comparison(name, _said(await _live(client, path)), _said(would_be))


async def _live(client: Client, path: ResourcePath) -> Json:
    with Allowing(HTTPStatus.NOT_FOUND):
        return await client.get(path)
    return {}


def _said(raw: Json) -> Json:
    if not raw:
        return {}
    metadata = raw["metadata"]
    annotations = {
        key: text for key, text in (metadata.get("annotations") or {}).items() if key not in _NOT_SAID
    }
    kept = {"labels": metadata.get("labels") or {}, "annotations": annotations}
    return {"metadata": {name: value for name, value in kept.items() if value}, "spec": raw["spec"]}
