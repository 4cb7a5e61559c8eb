"""Sends writes as server-side dry runs, and judges the answers: refused, changed on the way, or added to.

`dry_run` and `letting_go` say which writes. A refusal says whose fault it is, and what to do about it.
It writes nothing. Source: H12, H17.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Note
from splitter.core.reasons import Reason, VerdictCause
from splitter.kube import paths
from splitter.kube.client import FORCED, OURS, ApiError, Client, Json
from splitter.kube.mutations import Mutations, mutations
from splitter.kube.quotas import lacks_objects

_DRY = {"dryRun": "All"}
_MALFORMED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_REFUSALS = _MALFORMED | {HTTPStatus.FORBIDDEN}
_ALREADY_EXISTS = "AlreadyExists"
# What no Deployment can hold (an unknown field, a quantity such as "lots") is answered with 500 when applied.
_UNREADABLE = ("failed to create typed patch object", "failed to convert new object")
# By another source of that name, or a changed template set: Service, claims and selector are set at creation.
_FOR_LIFE = "updates to statefulset spec for fields other than"
# Policies and webhooks choose their own codes, 422 by default.
_ANOTHER_UID = "metadata.uid"
# A webhook that may have side effects is answered for with 400 in any dry run.
_BY_POLICY = ("denied request", "denied the request", "does not support dry run")


@dataclass(frozen=True, slots=True)
class Write:
    """One write to try in a dry run."""

    what: str  # in words
    method: str
    path: paths.ResourcePath
    body: Json
    patch: str = ""  # the kind of patch
    template_set: str = ""  # that rendered the body
    because: str = ""  # what else people should know when it is refused
    meant: Json | None = None  # what the answer has to say; None: what the body says
    whole: bool = False  # nothing may be added to its template either


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a rehearsal was answered."""

    denied: Note | None = None  # why a write would be refused, or would not be what was sent
    added: tuple[Note, ...] = ()  # what would be added to a twin on its way: allowed, but better known


class DeniedError(Exception):
    """A write would be refused, or changed."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.message)
        self.note = note


@dataclass(slots=True)
class Rehearsal:
    """The dry run of several writes, one after the other."""

    client: Client
    added: list[Note] = field(default_factory=list)

    async def of(self, write: Write) -> Json:
        """Send one; return the answer, {} where an earlier split has made the object already.

        Raises DeniedError, and ApiError when there is no answer, or another client wrote in between.
        """
        query = (FORCED if write.patch == "apply" else OURS) | _DRY
        try:
            answer = await self.client.send(
                write.method, write.path, write.body, patch=write.patch, query=query
            )
        except ApiError as error:
            if write.method == "POST" and error.reason == _ALREADY_EXISTS:
                return {}  # policies were asked before that was found
            if (note := refused(error, write.what, write.template_set, write.because)) is None:
                raise
            raise DeniedError(note) from error
        if write.method != "DELETE":
            self._judge(write, answer)
        return answer

    async def has_room(self, namespace: str, needed: Mapping[str, int]) -> None:
        """Ask the quotas for so many objects together. Raises DeniedError."""
        if lacking := await lacks_objects(self.client, namespace, needed):
            message = (
                f"{lacking} while it is split or given back. Nothing was changed; raise the quota, and it is"
                " tried again"
            )
            cause = VerdictCause.ANOTHER_OBJECT
            raise DeniedError(Note(Reason.WRITE_DENIED, message, warning=True, cause=cause))

    def _judge(self, write: Write, answer: Json) -> None:
        meant = write.body if write.meant is None else write.meant
        differing = mutations(meant, answer, merged=write.patch in {"merge", "strategic"})
        if bad := differing.paths if write.whole else differing.changed:
            raise DeniedError(mutated(write.what, bad))
        if differing.added:
            self.added.append(Note(Reason.DRIFT, added_to(write.path.name, differing), warning=True))


def mutated(what: str, fields: tuple[str, ...]) -> Note:
    """Say that what was sent would not be what is there."""
    message = (
        f"the API server would take it otherwise than it is sent to {what}: a mutating policy or webhook"
        f" changes {', '.join(fields)}. Nothing was changed; have it leave this object as it is, or give the"
        " source the same, and it is tried again"
    )
    return Note(Reason.WRITE_DENIED, message, warning=True, cause=VerdictCause.ANOTHER_OBJECT)


def added_to(name: str, differing: Mutations) -> str:
    """Say what a policy or a webhook adds to the pod template of a twin."""
    return (
        f"a mutating policy or webhook adds to {name} what its source does not have:"
        f" {', '.join(differing.added)}. Give the source the same, or have it leave twins as they are"
    )


def refused(error: ApiError, what: str, template_set: str, because: str = "") -> Note | None:
    """Return whose fault it is that a write was refused, or None when nothing has to be corrected.

    That is so without an answer, and in a namespace that is going. What no Deployment may be is the fault
    of the template set: its source is one that the API server has taken.
    """
    unreadable = any(words in error.message for words in _UNREADABLE)
    if (error.status not in _REFUSALS and not unreadable) or "being terminated" in error.message:
        return None
    by_policy = any(words in error.message for words in _BY_POLICY)
    if _ANOTHER_UID in error.message and not by_policy:
        return None  # it was made again under its name: look again
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
        f"the API server would refuse to {what}: {why} {because}{' ' if because else ''}Nothing was changed;"
        " correct the policy, the quota or the right, and it is tried again"
    )
    return Note(Reason.WRITE_DENIED, message, warning=True, cause=VerdictCause.ANOTHER_OBJECT)


def lacks_rights(denied: Note) -> bool:
    """Whether who asked was refused, not what was asked: a preview runs with a user's own rights."""
    return 'User "' in denied.message and " cannot " in denied.message
