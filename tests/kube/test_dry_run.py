"""The dry run: whose fault a refusal is, in words, and what is no refusal at all."""

from collections.abc import Sequence

import pytest

from builders import observation, pods, replica_set, source
from kube.server import Answer, Script, connected, json, refusal
from splitter.core.model import Attachment, Note, Pool, Rendered, ReplicaSetView
from splitter.core.reasons import Reason
from splitter.kube.client import ApiError
from splitter.kube.dry_run import dry_run, dry_run_roll

TWINS = {
    pool: Rendered(
        f'{{"metadata": {{"name": "web-{pool}", "namespace": "shop"}}, "spec": {{}}}}',
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
MANIFEST = '{"spec": {"selector": {}, "template": {"metadata": {}}}}'
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
        said, script = await dry_run_of(json({}))
        assert said is None
        assert [asked.path.rsplit("/", 1)[1] for asked in script.asked] == ["web-on-demand", "web-spot"]
        assert all(asked.query["dryRun"] == "All" for asked in script.asked)

    @pytest.mark.parametrize(
        ("status", "words"),
        [(422, INVALID), (500, QUANTITY), (500, FIELD), (400, "Deployment in version v1 cannot be handled")],
    )
    async def test_malformed(self, status: int, words: str) -> None:
        """What no Deployment may be is its template set's fault, whatever code that is answered with."""
        said, _ = await dry_run_of(json({}), refusal(status, "", words))
        assert said is not None
        assert said.reason is Reason.TEMPLATE_INVALID
        assert said.message == (
            'the API server would refuse to write the spot twin as the template set "small" renders it:'
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
        assert f"refuse to write the on-demand twin: {words}. Nothing was changed" in said.message

    @pytest.mark.parametrize(
        ("status", "words"), [(500, "etcd is not there"), (409, "it changed"), (403, "is being terminated")]
    )
    async def test_no_answer(self, status: int, words: str) -> None:
        """A failure that mends itself is no refusal: it is asked again."""
        with pytest.raises(ApiError):
            await dry_run_of(refusal(status, "", words))


ATTACHED = replica_set("web-h1", 2, pods(2), attachment=Attachment.ATTACHED)
LIVE = {
    "metadata": {"name": "web-h1"},
    "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
}


class TestTakeOver:
    @staticmethod
    async def dry_run_of(
        *answers: Answer, sets: Sequence[ReplicaSetView] = (ATTACHED,)
    ) -> tuple[Note | None, Script]:
        """Return what is said of a take-over: a ReplicaSet is read; twins, pause, park; then the adoption."""
        script = Script().then(*([json(LIVE)] if sets else []), *[json({})] * (4 if sets else 3), *answers)
        async with connected(script) as client:
            return await dry_run(client, observation(source(manifest_json=MANIFEST), sets), TWINS), script

    async def test_each_kind_of_write(self) -> None:
        """By which running pods change their owner, too: all of them dry, and of one ReplicaSet for all."""
        old = [
            replica_set(f"old-{n}", 0, attachment=Attachment.ATTACHED, template=f"old-{n}") for n in range(9)
        ]
        said, script = await self.dry_run_of(*[json({})] * 3, sets=(*old, ATTACHED))
        assert said is None
        asked = [(one.method, one.path.rsplit("/", 1)[1]) for one in script.asked]
        assert asked == [
            ("GET", "web-h1"),
            ("PATCH", "web-on-demand"),
            ("PATCH", "web-spot"),
            ("PATCH", "web"),
            ("PATCH", "web-h1"),
            ("POST", "replicasets"),
            ("DELETE", "web-h1"),
            ("PATCH", "ready-0"),
        ]
        assert all(one.query["dryRun"] == "All" for one in script.asked if one.method != "GET")
        [deletion] = [one for one in script.asked if one.method == "DELETE"]
        assert deletion.body == {
            "propagationPolicy": "Orphan",
            "preconditions": {"uid": "uid-web-h1", "resourceVersion": "rv-web-h1"},
            "dryRun": ["All"],  # options in a body are all that counts
        }

    async def test_a_template_that_is_kept_already(self) -> None:
        """What an earlier split has kept is no objection: it is there to be used."""
        there = refusal(409, "AlreadyExists", 'replicasets.apps "web-splith1" already exists')
        said, script = await self.dry_run_of(there, json({}), json({}))
        assert said is None
        assert script.asked[-1].method == "PATCH"

    @pytest.mark.parametrize(
        ("before", "what"),
        [
            (0, "create a replicaset that keeps the template"),
            (1, "delete replicaset web-h1 and leave its pods running"),
            (2, "label pod ready-0"),
        ],
    )
    async def test_forbidden(self, before: int, what: str) -> None:
        """A policy against one of them is known before the pause."""
        said, _ = await self.dry_run_of(*[json({})] * before, refusal(422, "", POLICY))
        assert said is not None
        assert said.reason is Reason.WRITE_DENIED
        assert f"refuse to {what}" in said.message

    async def test_without_pods(self) -> None:
        """There is nothing that could change its owner."""
        said, script = await self.dry_run_of(sets=())
        assert said is None
        assert len(script.asked) == 3

    async def test_somebody_wrote_in_between(self) -> None:
        """A conflict is asked again."""
        with pytest.raises(ApiError):
            await self.dry_run_of(refusal(409, "Conflict", "the object has been modified"))
