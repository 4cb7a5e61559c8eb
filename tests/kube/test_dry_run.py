"""The dry run: whose fault a refusal is, in words, and what is no refusal at all."""

from collections.abc import Sequence
from json import dumps
from typing import Any, cast

import pytest
from aiohttp import web

from builders import observation, pod, replica_set, source
from kube.server import Answer, Script, connected, echo, json, refusal
from splitter.core.model import Attachment, Note, Rendered, ReplicaSetView
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.kube.dry_run import dry_run, dry_run_roll
from splitter.kube.rehearsal import Rehearsed

TWINS = {
    pool: Rendered(
        dumps(
            {
                "kind": "Deployment",
                "metadata": {"name": f"web-{pool}", "namespace": "shop"},
                "spec": {"selector": {}, "template": {"metadata": {}, "spec": {}}},
            }
        ),
        "hash",
        template_set="small",
    )
    for pool in Pool
}
INVALID = 'Deployment.apps "web-spot" is invalid: spec.template.spec.containers[0].image: Required value'
QUANTITY = (
    "failed to convert new object (shop/web-spot; apps/v1, Kind=Deployment) to proper version: unable to"
    " convert unstructured object to apps/v1, Kind=Deployment: quantities must match the regular expression"
)
FIELD = (
    "failed to create typed patch object (shop/web-spot; apps/v1, Kind=Deployment):"
    " .spec.template.spec.contaners: field not declared in schema"
)
MANIFEST = dumps(
    {
        "metadata": {"name": "web", "uid": "u"},
        "spec": {"replicas": 10, "selector": {}, "template": {"metadata": {}}},
    }
)
POLICY = "deployments.apps \"web-spot\" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no"


async def dry_run_of(*answers: Answer) -> tuple[Note | None, Script]:
    """Return what is said when the API server answers like this, and what it was asked."""
    script = Script().then(*answers)
    async with connected(script) as client:
        return await dry_run_roll(client, observation(), TWINS), script


FOR_LIFE = (
    'StatefulSet.apps "db-spot" is invalid: spec: Forbidden: updates to statefulset spec for fields other'
    " than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit',"
    " 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class TestRoll:
    async def test_taken(self) -> None:
        """Both twins are asked about, as dry runs, and nothing is said."""
        said, script = await dry_run_of(echo())
        assert said is None
        assert [asked.path.rsplit("/", 1)[1] for asked in script.asked] == ["web-on-demand", "web-spot"]
        assert all(asked.query["dryRun"] == "All" for asked in script.asked)

    @pytest.mark.parametrize(
        ("status", "words"),
        [(422, INVALID), (500, QUANTITY), (500, FIELD), (400, "Deployment in version v1 cannot be handled")],
    )
    async def test_malformed(self, status: int, words: str) -> None:
        """What no Deployment may be is its template set's fault, whatever code that is answered with."""
        said, _ = await dry_run_of(echo(), refusal(status, "", words))
        assert said is not None
        assert said.reason is Reason.TEMPLATE_INVALID
        assert said.message == (
            "the API server would refuse to write the spot twin with 10 replicas as the template set"
            ' "small" renders it:'
            f" {words}. Nothing was changed; mend the set, and it is tried again"
        )

    async def test_what_a_stateful_set_has_for_life(self) -> None:
        """Its user enlarged a claim: deleted it with --cascade=orphan, and made it anew. No set did it."""
        said, _ = await dry_run_of(refusal(422, "Invalid", FOR_LIFE))
        assert said is not None
        assert said.reason is Reason.WRITE_DENIED
        assert said.message.endswith("until the label is removed and set again, and they are made anew")

    @pytest.mark.parametrize(("status", "words"), [(422, POLICY), (403, "exceeded quota: few")])
    async def test_forbidden(self, status: int, words: str) -> None:
        """A policy or a quota is nobody's template: it may forbid what a set renders well."""
        said, _ = await dry_run_of(refusal(status, "", words))
        assert said is not None
        assert said.reason is Reason.WRITE_DENIED
        assert (
            f"refuse to write the on-demand twin with 10 replicas: {words}. Nothing was changed"
            in said.message
        )

    @pytest.mark.parametrize(
        ("status", "words"), [(500, "etcd is not there"), (409, "it changed"), (403, "is being terminated")]
    )
    async def test_no_answer(self, status: int, words: str) -> None:
        """A failure that mends itself is no refusal: it is asked again."""
        with pytest.raises(ApiError):
            await dry_run_of(refusal(status, "", words))


LIVE = {
    "metadata": {"name": "web-h1"},
    "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
}


HERE = [pod("there-0"), pod("there-1"), pod("spot-0", on_spot=True)]
HOME = replica_set("web-h1", 3, HERE, attachment=Attachment.ATTACHED)
# In this order, with what each is called when it is refused.
WRITES = (
    ("PATCH", "web-on-demand", "write the on-demand twin with 9 replicas"),
    ("PATCH", "web-on-demand", "write the on-demand twin with 0 replicas"),
    ("PATCH", "web-on-demand", "write the on-demand twin with 10 replicas"),
    ("PATCH", "web-spot", "write the spot twin with 1 replica"),
    ("PATCH", "web-spot", "write the spot twin with 0 replicas"),
    ("PATCH", "web-spot", "write the spot twin with 10 replicas"),
    ("PATCH", "web", "pause the source"),
    ("PATCH", "web-h1", "park replicaset web-h1"),
    ("GET", "web-h1", ""),
    ("POST", "replicasets", "create a replicaset that keeps the template"),
    ("POST", "replicasets", "create the replicaset that adopts running pods for the on-demand twin"),
    ("POST", "replicasets", "create the replicaset that adopts running pods for the spot twin"),
    ("POST", "replicasets", "create the replicaset that adopts running pods for the source, on the way back"),
    ("DELETE", "web-h1", "delete replicaset web-h1 and leave its pods running"),
    ("PATCH", "there-1", "label pod there-1"),
    ("PATCH", "there-1", "take the owner off pod there-1"),
    ("PATCH", "spot-0", "label pod spot-0"),
    ("PATCH", "spot-0", "take the owner off pod spot-0"),
    ("GET", "resourcequotas", ""),
)


class TestTakeOver:
    @staticmethod
    async def dry_run_of(
        *answers: Answer, sets: Sequence[ReplicaSetView] = (HOME,)
    ) -> tuple[Rehearsed, Script]:
        """Return what is said of a take-over when the first writes are answered like this."""
        script = Script().then(*answers, echo(uid="made"))
        async with connected(script) as client:
            return await dry_run(client, observation(source(manifest_json=MANIFEST), sets), TWINS), script

    @staticmethod
    def before(number: int) -> list[Answer]:
        """Return the answers to the first writes."""
        return [json(LIVE) if method == "GET" else echo(uid="made") for method, *_ in WRITES[:number]]

    async def test_each_kind_of_write(self) -> None:
        """With its numbers, and what the garbage collector does: all of them dry, one ReplicaSet for all."""
        old = [
            replica_set(f"old-{n}", 0, attachment=Attachment.ATTACHED, template=f"old-{n}") for n in range(9)
        ]
        said, script = await self.dry_run_of(*self.before(len(WRITES)), sets=(*old, HOME))
        assert said == Rehearsed()
        asked = [(one.method, one.path.rsplit("/", 1)[1]) for one in script.asked]
        assert asked == [(method, name) for method, name, _ in WRITES]
        assert all(one.query["dryRun"] == "All" for one in script.asked if one.method != "GET")

    async def test_the_payloads(self) -> None:
        """Twins as they will be created, paused; adopted by the very twin that was answered."""
        _, script = await self.dry_run_of(*self.before(len(WRITES)))
        payloads = [cast("Any", one.body) for one in script.asked]
        counts = [(body["spec"]["replicas"], body["spec"].get("paused", False)) for body in payloads[:6]]
        assert counts == [(9, True), (0, False), (10, False), (1, True), (0, False), (10, False)]
        adopting = payloads[10:13]
        assert [body["metadata"]["ownerReferences"][0]["uid"] for body in adopting] == ["made", "made", "u"]
        assert [body["spec"]["replicas"] for body in adopting] == [9, 1, 10]
        assert payloads[13] == {
            "propagationPolicy": "Orphan",
            "preconditions": {"uid": "uid-web-h1", "resourceVersion": "rv-web-h1"},
            "dryRun": ["All"],  # options in a body are all that counts
        }
        assert payloads[15] == {
            "metadata": {
                "ownerReferences": [{"$patch": "delete", "uid": "uid-web-h1"}],
                "uid": "uid-there-1",
            }
        }

    async def test_a_template_that_is_kept_already(self) -> None:
        """What an earlier split has kept is no objection: it is there to be used."""
        there = refusal(409, "AlreadyExists", 'replicasets.apps "web-splith1" already exists')
        said, script = await self.dry_run_of(*self.before(9), there)
        assert said == Rehearsed()
        assert len(script.asked) == len(WRITES)

    @pytest.mark.parametrize("number", [n for n, (*_, what) in enumerate(WRITES) if what])
    async def test_forbidden(self, number: int) -> None:
        """A policy against one of them is known before the pause."""
        said, script = await self.dry_run_of(*self.before(number), refusal(422, "", POLICY))
        assert said.denied is not None
        assert said.denied.reason is Reason.WRITE_DENIED
        assert f"refuse to {WRITES[number][2]}: {POLICY}. " in said.denied.message
        assert len(script.asked) == number + 1
        in_the_moment = "take the owner off" in WRITES[number][2]
        assert ("have none for a moment" in said.denied.message) is in_the_moment

    @pytest.mark.parametrize("number", [0, 1, 6, 9, 12])
    async def test_changed_on_the_way(self, number: int) -> None:
        """What comes back otherwise is refused before anything is changed, with the field and no value."""

        async def answer(request: web.Request) -> web.StreamResponse:
            sent = await request.json()
            template = {
                "metadata": {"labels": {}},
                "spec": {"containers": [{"name": "a", "image": "secret"}]},
            }
            return web.json_response(
                {**sent, "spec": {"replicas": 77, "paused": False, "template": template}}
            )

        said, _ = await self.dry_run_of(*self.before(number), answer)
        assert said.denied is not None
        assert f"otherwise than it is sent to {WRITES[number][2]}" in said.denied.message
        assert "spec." in said.denied.message
        assert "secret" not in said.denied.message
        assert "77" not in said.denied.message

    async def test_added_on_the_way(self) -> None:
        """A container more in a twin is allowed, and said once for all of its writes."""

        async def answer(request: web.Request) -> web.StreamResponse:
            sent = await request.json()
            sent["spec"]["template"]["spec"]["containers"] = [{"name": "proxy", "image": "secret"}]
            sent["metadata"]["uid"] = "made"
            return web.json_response(sent)

        said, _ = await self.dry_run_of(*[answer] * 6, *self.before(len(WRITES))[6:])
        assert said.denied is None
        assert [note.reason for note in said.added] == [Reason.DRIFT] * 2
        assert "adds to web-on-demand what its source does not have: spec.template.spec.containers. " in (
            said.added[0].message
        )

    async def test_a_quota_that_holds_each_and_not_all(self) -> None:
        """On the way back five are there at a time, where one was: each alone would be taken."""
        hard, used = {"count/replicasets.apps": "5"}, {"count/replicasets.apps": "2"}
        quotas = {"items": [{"metadata": {"name": "few"}, "status": {"hard": hard, "used": used}}]}
        said, _ = await self.dry_run_of(*self.before(len(WRITES) - 1), json(quotas))
        assert said.denied is not None
        assert said.denied.message.startswith(
            "ResourceQuota few has room for 3 more of count/replicasets.apps, and 4 are needed while"
        )

    async def test_without_pods(self) -> None:
        """There is nothing that could change its owner."""
        said, script = await self.dry_run_of(sets=())
        assert said == Rehearsed()
        assert len(script.asked) == 8

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (409, "the object has been modified"),
            (422, 'Pod "a" is invalid: metadata.uid: Invalid value: "b"'),
        ],
    )
    async def test_another_client_wrote_in_between(self, status: int, words: str) -> None:
        """A conflict is asked again, and so is a pod that was made again under its name."""
        with pytest.raises(ApiError):
            await self.dry_run_of(refusal(status, "Conflict", words))
