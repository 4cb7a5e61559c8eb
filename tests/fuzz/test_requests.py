"""What a tenant writes never leads out of its namespace: the real client, cache, planner and writer.

A run of the unit tests plays few examples, the same in each run; `make fuzz` a hundred thousand objects. What
is claimed of every reconcile of a workload in the attacker's namespace: each request is one that rbac.yaml
allows there, or one of the few for the whole cluster that a reconcile looks at; what is written names no
namespace and no owner of anybody else's; there are not too many; it takes less than a second of CPU and 100
MB; it ends with no exception but a refusal of the API server's; and the log holds nothing that was planted.
The examples are not idle: every step and every action of the planner is reached.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from typing import get_args

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.attacker import EVIL, KINDS, VICTIM, fill, forged, in_namespace, plant
from fuzz.lab import Lab
from fuzz.recording import PLANTED, Asked, objection
from fuzz.stages import STAGES, Stage
from splitter.core.actions import Action
from splitter.core.handover import Step
from splitter.kube import watch
from splitter.kube.paths import ResourcePath

pytestmark = pytest.mark.slow

_CAMPAIGN = os.environ.get("FUZZ_EXAMPLES")
EXAMPLES = settings(
    phases=(Phase.explicit, Phase.generate),  # one reconcile is slow: what fails is shown as it was drawn
    max_examples=int(_CAMPAIGN or "7"),
    derandomize=_CAMPAIGN is None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# Mostly taken; what is refused is so in one of the ways that an API server has.
REFUSALS = st.lists(st.sampled_from((0, 0, 0, 0, 0, 403, 404, 409, 422)), max_size=6)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    result = Lab()
    yield result
    result.close()


def test_every_step_and_action_has_a_stage() -> None:
    """A new one without a stage is not played by anybody."""
    stages = STAGES.values()
    assert {step for stage in stages for step in stage.steps} == set(Step)
    assert {action for stage in stages for action in stage.actions} == set(get_args(Action))


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_no_request_leaves_the_namespace(stage: Stage, lab: Lab) -> None:
    """Some objects of each stage are forged, again and again; every workload there is passed twice."""
    lab.reached.clear()

    @EXAMPLES
    @given(st.data())
    def play(data: st.DataObject) -> None:
        attacked = lab.attacked(
            data.draw(st.sampled_from((3, 3, 3, 100))), placed=data.draw(st.integers(0, 9)) > 0
        )
        fill(attacked, VICTIM)
        victims = {key for key in attacked.woken if key.namespace == VICTIM}
        attacked.woken.clear()
        world = [(kind, plant(in_namespace(EVIL, raw))) for kind, raw in stage.world()]
        for number, (kind, raw) in enumerate(world):
            raw["metadata"]["resourceVersion"] = str(number + 2)
            attacked.put(kind, raw)
        changed = data.draw(st.lists(st.integers(0, len(world) - 1), max_size=3))
        for number, place in enumerate(changed):
            kind, raw = world[place]
            made = data.draw(forged(kind, raw))
            made["metadata"]["resourceVersion"] = str(number + 1000)
            attacked.put(kind, made)
        for kind in data.draw(st.sets(st.sampled_from(sorted(KINDS)), max_size=2)):
            made = data.draw(forged(kind, plant(in_namespace(EVIL, KINDS[kind][0]()))))
            made["metadata"]["resourceVersion"] = "2000"
            attacked.put(kind, made)
        strangers = {key for key in attacked.woken if key.namespace != EVIL}
        assert not strangers, f"woken by what {EVIL} has written: {strangers}"
        attacked.woken[stage.workload] = None
        for key in [key for key in attacked.woken if key.namespace == EVIL] * 2:
            lab.server.refusals.extend(data.draw(REFUSALS))
            lab.passed(attacked, key)
        assert victims

    play()
    missed = (stage.steps | stage.actions) - set(lab.reached)
    assert not missed, f"never reached: {missed}; only {Counter(lab.reached)}"


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("PATCH", "/apis/apps/v1/namespaces/evil/deployments/web?force=true", {"metadata": {}}, ""),
        ("GET", "/api/v1/nodes/spot-0", None, ""),
        ("GET", "/api/v1/namespaces/evil/secrets/x", None, "no right"),
        ("GET", "/api/v1/namespaces/evil/configmaps/x", None, "no right"),
        ("DELETE", "/api/v1/namespaces/evil/persistentvolumeclaims/x", None, "no right"),
        ("PUT", "/apis/apps/v1/namespaces/evil/replicasets/web-1", {}, "no right"),
        ("DELETE", "/api/v1/nodes/spot-0", None, "no right"),
        ("GET", "/apis/apps/v1/deployments", None, "no right"),
        ("GET", "/apis/apps/v1/namespaces/shop/deployments/web", None, "another namespace"),
        ("GET", "/apis/apps/v1/namespaces/evil/deployments/../../shop", None, "no path"),
        (
            "GET",
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/x",
            None,
            "another policy",
        ),
        (
            "POST",
            "/api/v1/namespaces/evil/pods",
            {"metadata": {"name": "a", "namespace": "shop"}},
            "body names another namespace",
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/evil/deployments/web",
            {"metadata": {"name": "b"}},
            "body names another object",
        ),
        (
            "POST",
            "/api/v1/namespaces/evil/pods",
            {"metadata": {"ownerReferences": [{"uid": "uid-shop-web"}]}},
            "owner of another namespace",
        ),
    ],
)
def test_what_is_objected_to(method: str, path: str, body: object, why: str) -> None:
    """The judge of all requests lets none pass that leads elsewhere, and does not object to all."""
    result = objection(Asked(method, path, body, None), EVIL)
    assert why in result
    assert bool(result) is bool(why)


def test_a_secret_is_said_in_the_namespace_only(lab: Lab) -> None:
    """What the API server quotes stands in the Split of the workload; the log has the sentence without it."""
    attacked = lab.attacked()
    for kind, raw in STAGES["pause"].world():
        attacked.put(kind, plant(in_namespace(EVIL, raw)))
    lab.server.refusals.append(422)
    asked = lab.passed(attacked, STAGES["pause"].workload)
    assert any(PLANTED in str(one.body) for one in asked if one.is_report)
    assert "reconcile failed" in lab.log
    assert "Invalid value" in lab.log


# What is watched, its path, and the indexer that it lies on.
WATCHED = (
    ("deployment", "/apis/apps/v1/deployments"),
    ("twin", "/apis/apps/v1/deployments"),
    ("replicaset", "/apis/apps/v1/replicasets"),
    ("pod", "/api/v1/pods"),
    ("split", "/apis/splitter.io/v1alpha1/splits"),
    ("placement", "/apis/splitter.io/v1alpha1/placements"),
)
ODD_LINES = (b"{", b"nonsense", b'{"type":"ADDED","object":', b"\xff\xfe", b'"\\ud800"', b"NaN")


@pytest.mark.parametrize(("kind", "path"), WATCHED, ids=[kind for kind, _ in WATCHED])
def test_the_others_are_seen(kind: str, path: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is listed and told beside it, and on lines that nobody can read, an honest object is known."""
    monkeypatch.setattr(watch, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(watch, "_LIST_EVERY_S", 0.001)

    @EXAMPLES
    @given(st.data())
    def play(data: st.DataObject) -> None:
        attacked = lab.attacked()
        make, indexer = KINDS[kind]
        honest = in_namespace(VICTIM, make())
        honest["metadata"]["resourceVersion"] = "20"
        published = [data.draw(forged(kind, in_namespace(EVIL, make()))) for _ in range(3)]
        for number, raw in enumerate(published):
            raw["metadata"] |= {"resourceVersion": str(number + 2), "uid": f"uid-evil-{number}"}
        lines = [orjson.dumps({"type": "ADDED", "object": raw}) for raw in [*published, honest]]
        odd = data.draw(st.sampled_from(ODD_LINES) | st.binary(min_size=1, max_size=30))
        lines.insert(data.draw(st.integers(0, 4)), odd.replace(b"\n", b"\xff"))
        server, store = lab.server, indexer(attacked.cache)
        server.lists[path] = [published[0]]
        server.lines.extend(lines)
        server.all_reported.clear()

        async def follow() -> None:
            task = asyncio.create_task(watch.Reflector(lab.client, ResourcePath.read(path), store).run())
            async with asyncio.timeout(10):
                await server.all_reported.wait()
                # After a break a watch goes on where it was: the list comes before the next one.
                server.all_reported.clear()
                await server.all_reported.wait()
            task.cancel()
            await asyncio.wait((task,))

        lab.loop.run_until_complete(follow())
        assert honest["metadata"]["uid"] in {record.uid for record in store.values()}
        assert {key.namespace for key in attacked.woken} <= {EVIL, VICTIM}

    play()
