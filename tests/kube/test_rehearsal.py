"""One write in a dry run: refused, changed, added to, or taken. Which are sent is another test."""

import pytest

from kube.server import Answer, Script, connected, echo, json, refusal
from splitter.core.names import Key
from splitter.core.reasons import Reason, VerdictCause
from splitter.kube.client import ApiError
from splitter.kube.paths import workload
from splitter.kube.rehearsal import DeniedError, Rehearsal, Write, lacks_rights, refused

PATH = workload(Key("Deployment", "shop", "web"), "web-spot")
BODY = {"spec": {"replicas": 2, "template": {"spec": {"image": "a"}}}}


async def rehearsed(
    answer: Answer, method: str = "PATCH", *, whole: bool = False
) -> tuple[object, Rehearsal]:
    """Return what is answered to one write."""
    async with connected(Script().then(answer)) as client:
        one = Rehearsal(client)
        patch = "apply" if method == "PATCH" else ""
        write = Write("write it", method, PATH, BODY, patch, because="So it is.", whole=whole)
        return await one.of(write), one


async def test_taken() -> None:
    """The answer is the object as it would be."""
    answer, one = await rehearsed(echo(uid="u"))
    assert answer == {**BODY, "metadata": {"uid": "u"}}
    assert one.added == []


async def test_refused() -> None:
    """With the reason, the words of whoever refuses it, what they mean here, and what to do."""
    with pytest.raises(DeniedError) as caught:
        await rehearsed(refusal(403, "Forbidden", "exceeded quota: few"))
    note = caught.value.note
    assert (note.reason, note.cause) == (Reason.WRITE_DENIED, VerdictCause.ANOTHER_OBJECT)
    assert note.message == (
        "the API server would refuse to write it: exceeded quota: few. So it is. Nothing was changed; correct"
        " the policy, the quota or the right, and it is tried again"
    )
    assert not lacks_rights(note)


@pytest.mark.parametrize("whole", [False, True])
async def test_added_to(whole: bool) -> None:
    """A warning; for a ReplicaSet a refusal, as it would be none of its owner's template."""
    more = {"spec": {"replicas": 2, "template": {"spec": {"image": "a", "volumes": [{"name": "v"}]}}}}
    if whole:
        with pytest.raises(DeniedError, match=r"changes spec\.template\.spec\.volumes"):
            await rehearsed(json(more), whole=True)
        return
    _, one = await rehearsed(json(more))
    assert [note.reason for note in one.added] == [Reason.DRIFT]
    assert "adds to web-spot" in one.added[0].message


async def test_there_already() -> None:
    """Of what is created: policies were asked before that was found."""
    there = refusal(409, "AlreadyExists", "it exists already")
    answer, _ = await rehearsed(there, "POST")
    assert answer == {}
    with pytest.raises(ApiError):
        await rehearsed(there)


def test_a_webhook_that_takes_no_dry_run() -> None:
    """It is named, and not the template set: no set would be taken."""
    words = 'admission webhook "check.example.com" does not support dry run'
    note = refused(ApiError(400, "BadRequest", words), "write the spot twin", "default")
    assert note is not None
    assert (note.reason, words in note.message) == (Reason.WRITE_DENIED, True)
