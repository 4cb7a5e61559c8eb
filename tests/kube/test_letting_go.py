"""Right before pods are let go: what would follow is asked for, in either direction."""

from dataclasses import replace
from json import dumps
from typing import Any, cast

import pytest
from aiohttp import web

from builders import observation, pod, replica_set, source, twin, twin_of
from kube.server import Answer, Script, connected, echo, json, refusal
from splitter.core.model import Attachment, Note, Observation, Rendered, TwinView
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.kube.letting_go import rehearse_letting_go

SPEC = {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}}}
MANIFEST = dumps({"metadata": {"name": "web", "uid": "u"}, "spec": SPEC})
TWINS = {pool: Rendered(dumps({"spec": SPEC}), "hash") for pool in Pool}
HERE = (pod("there"), pod("spot-0", on_spot=True))
HOME = replica_set("web-h1", 2, HERE, attachment=Attachment.ATTACHED)
POLICY = "pods \"there\" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no bare pods"
LIVE = {
    pool: {"kind": "Deployment", "metadata": {"name": f"web-{pool}", "uid": pool}, "spec": SPEC}
    for pool in Pool
}


def waiting() -> dict[str, TwinView]:
    """Return both twins, paused and without pods."""
    return {
        name: replace(twin_of(pool, [], updated=0, spec_replicas=1, rendered_hash="hash"), paused=True)
        for name, pool in (("on_demand", Pool.ON_DEMAND), ("spot", Pool.SPOT))
    }


THERE = observation(source(manifest_json=MANIFEST), [HOME], **waiting())
BACK = observation(
    source(manifest_json=MANIFEST, labelled=False),
    on_demand=twin(Pool.ON_DEMAND, HERE[:1]),
    spot=twin(Pool.SPOT, HERE[1:]),
)
TO_THE_TWINS = (
    ("GET", "web-on-demand"),
    ("POST", "replicasets"),
    ("PATCH", "web-on-demand"),
    ("PATCH", "web-on-demand"),
    ("GET", "web-spot"),
    ("POST", "replicasets"),
    ("PATCH", "web-spot"),
    ("PATCH", "web-spot"),
    ("GET", "resourcequotas"),
    ("DELETE", "web-h1"),
    ("PATCH", "there"),
    ("PATCH", "spot-0"),
)
BACK_HOME = (
    ("GET", "resourcequotas"),
    ("POST", "replicasets"),
    ("POST", "replicasets"),
    ("PATCH", "web"),
    ("DELETE", "web-on-demand-1"),
    ("PATCH", "there"),
    ("PATCH", "there"),
    ("DELETE", "web-spot-1"),
    ("PATCH", "spot-0"),
    ("PATCH", "spot-0"),
)


async def said_of(observed: Observation, *answers: Answer) -> tuple[Note | None, Script]:
    """Return what is said when the first writes are answered like this."""
    script = Script().then(*answers, echo())
    async with connected(script) as client:
        return await rehearse_letting_go(client, observed, TWINS), script


def before(writes: tuple[tuple[str, str], ...], number: int) -> list[Answer]:
    """Return the answers to the first writes."""
    lives = {f"web-{pool}": json(LIVE[pool]) for pool in Pool} | {"resourcequotas": json({"items": []})}
    return [lives[name] if method == "GET" else echo() for method, name in writes[:number]]


class TestRehearseLettingGo:
    @pytest.mark.parametrize(("observed", "writes"), [(THERE, TO_THE_TWINS), (BACK, BACK_HOME)])
    async def test_all_of_the_moment(
        self, observed: Observation, writes: tuple[tuple[str, str], ...]
    ) -> None:
        """Of both directions; nothing is written for good."""
        said, script = await said_of(observed, *before(writes, len(writes)))
        assert said is None
        assert [(one.method, one.path.rsplit("/", 1)[1]) for one in script.asked] == list(writes)
        assert all(one.query["dryRun"] == "All" for one in script.asked if one.method != "GET")

    @pytest.mark.parametrize(
        ("observed", "writes", "number"),
        [(THERE, TO_THE_TWINS, n) for n, (method, _) in enumerate(TO_THE_TWINS) if method != "GET"]
        + [(BACK, BACK_HOME, n) for n in range(1, len(BACK_HOME))],
    )
    async def test_refused(
        self, observed: Observation, writes: tuple[tuple[str, str], ...], number: int
    ) -> None:
        """Whichever it is: in the words of whoever refuses it."""
        said, script = await said_of(observed, *before(writes, number), refusal(422, "", POLICY))
        assert said is not None
        assert said.reason is Reason.WRITE_DENIED
        assert "no bare pods" in said.message
        assert len(script.asked) == number + 1

    async def test_an_owner_is_the_twin_that_is_there(self) -> None:
        """By its own UID; and the pod is asked for by its own."""
        _, script = await said_of(THERE, *before(TO_THE_TWINS, 12))
        payloads = [cast("Any", one.body) for one in script.asked]
        assert payloads[5]["metadata"]["ownerReferences"][0]["uid"] == "spot"
        resumed = [payload["spec"] for payload in payloads[6:8]]
        assert resumed == [{"paused": None, "replicas": 0}, {"paused": None, "replicas": 10}]
        off = {"ownerReferences": [{"$patch": "delete", "uid": "uid-web-h1"}], "uid": "uid-there"}
        assert payloads[10] == {"metadata": off}

    async def test_a_twin_that_a_policy_has_changed(self) -> None:
        """Also by a controller before this one: its pods would be replaced by others."""
        other = {**SPEC, "template": {"metadata": {"labels": {"app": "other"}}}}
        said, script = await said_of(THERE, json({**LIVE[Pool.ON_DEMAND], "spec": other}))
        assert said is not None
        assert "spec.template.metadata.labels.app" in said.message
        assert len(script.asked) == 1

    async def test_another_client_wrote_in_between(self) -> None:
        """It is looked at again."""
        with pytest.raises(ApiError):
            await said_of(THERE, *before(TO_THE_TWINS, 9), refusal(409, "Conflict", "modified"))

    async def test_idle_replica_sets_go_first(self) -> None:
        """A quota may be full with them: what is created is rehearsed when they have gone."""
        spot = twin(Pool.SPOT, HERE[1:])
        old = replica_set("web-spot-0", 0, attachment=Attachment.ATTACHED)
        full = replace(BACK, spot=replace(spot, replica_sets=(*spot.replica_sets, old)))
        said, script = await said_of(full)
        assert said is None
        assert [(one.method, one.path.rsplit("/", 1)[1]) for one in script.asked] == list(BACK_HOME[4:])

    async def test_without_pods(self) -> None:
        """Nothing is asked."""
        said, script = await said_of(observation(source(manifest_json=MANIFEST, labelled=False)))
        assert (said, script.asked) == (None, [])


async def test_what_is_answered_is_no_object() -> None:
    """An answer without fields is a change of all of them."""

    async def empty(_: web.Request) -> web.StreamResponse:
        return web.json_response({})

    said, _ = await said_of(BACK, *before(BACK_HOME, 1), empty)
    assert said is not None
    assert said.message.endswith("and it is tried again")
