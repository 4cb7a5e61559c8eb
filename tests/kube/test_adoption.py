"""The writes by which running pods change their owner: each bound to what was seen."""

from typing import Any

import pytest

from builders import observation, source, twin
from kube.raw import deployment, pod, replica_set
from kube.server import Asked, Script, connected, json, refusal
from splitter.core.actions import AdoptionAction, AdoptPods, KeepRevision, LabelPod, OrphanPods, PauseTwin
from splitter.core.nodes.signals import assess
from splitter.core.replica import Pool
from splitter.kube.apply import Writer
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError

MANIFEST = '{"spec": {"selector": {"matchLabels": {"app": "web"}}}}'
OURS = {"splitter.io/pool": "spot", "splitter.io/source": "web"}


async def done(script: Script, action: AdoptionAction, cache: Cache | None = None) -> list[Asked]:
    """Do one action on a workload with both twins; return what was asked."""
    seen = observation(source(manifest_json=MANIFEST), on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT))
    async with connected(script) as client:
        await Writer(client, cache or Cache(assess, lambda *_, **__: None)).apply(seen, (action,))
    return script.asked


class TestOrphans:
    """The only deletion that spares the pods."""

    async def test_is_bound_to_what_was_seen(self) -> None:
        """Of an object written since, or another of the name, nothing is deleted."""
        [asked] = await done(Script().then(json({"kind": "Status"})), OrphanPods("web-1", "uid-it", "9"))
        assert (asked.method, asked.path.rpartition("/")[2]) == ("DELETE", "web-1")
        assert asked.body == {
            "propagationPolicy": "Orphan",
            "preconditions": {"uid": "uid-it", "resourceVersion": "9"},
        }

    async def test_waits_for_the_garbage_collector(self) -> None:
        """What is answered is remembered: the next reconcile knows that it is going."""
        leaving = replica_set("web-1", version=10, deletionTimestamp="2026-01-05T10:00:00Z")
        cache = Cache(assess, lambda *_, **__: None)
        await done(Script().then(json(leaving)), OrphanPods("web-1", "uid-web-1", "9"), cache)
        record = cache.replica_sets.get("shop", "uid-web-1")
        assert record is not None
        assert record.deleting

    async def test_somebody_wrote_in_between(self) -> None:
        """Nothing else is tried."""
        script = Script().then(refusal(409, "Conflict", "the ResourceVersion in the precondition"))
        with pytest.raises(ApiError, match="precondition"):
            await done(script, OrphanPods("web-1", "uid-it", "9"))
        assert len(script.asked) == 1


class TestLabels:
    """Labels of one pod, by its UID: a pod of the same name made since stays as it is."""

    @pytest.mark.parametrize("pool", [Pool.SPOT, None])
    async def test_on_and_off(self, pool: Pool | None) -> None:
        """Both labels; off again by the same keys."""
        [asked] = await done(Script().then(json(pod("web-1-a"))), LabelPod("web-1-a", "uid-it", pool))
        labels = OURS if pool else dict.fromkeys(OURS)
        assert (asked.method, asked.body) == ("PATCH", {"metadata": {"uid": "uid-it", "labels": labels}})

    @pytest.mark.parametrize("status", [404, 409, 422])
    async def test_a_pod_that_has_gone(self, status: int) -> None:
        """Is no error: the next reconcile sees which pods there are."""
        message = "metadata.uid: Invalid value: field is immutable"
        await done(Script().then(refusal(status, "", message)), LabelPod("web-1-a", "uid-it", Pool.SPOT))

    @pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (422, "Invalid")])
    async def test_refused(self, status: int, reason: str) -> None:
        """Is one: the window must not be opened for pods that may not be labelled. Policies answer 422."""
        with pytest.raises(ApiError, match="policy"):
            await done(Script().then(refusal(status, reason, "policy")), LabelPod("a", "uid-it", Pool.SPOT))


class TestTwins:
    """Paused while pods have no owner."""

    @pytest.mark.parametrize("paused", [True, False])
    async def test_by_version(self, paused: bool) -> None:
        """Whoever wrote in between is looked at first."""
        [asked] = await done(Script().then(json(deployment("web-spot"))), PauseTwin("web-spot", paused, "7"))
        spec = {"paused": True if paused else None}
        assert asked.body == {"metadata": {"resourceVersion": "7"}, "spec": spec}


def made_by(asked: list[Asked]) -> Any:  # noqa: ANN401 (a body)
    """Return the object that was created, after the one look that is needed for it."""
    assert [one.method for one in asked[:-1]] == ["GET"] * (len(asked) - 1)
    assert asked[-1].method == "POST"
    return asked[-1].body


class TestAdopts:
    """The ReplicaSet that takes the pods: what it selects, who controls it, which template it has."""

    async def test_of_a_twin(self) -> None:
        """Controlled by the live twin, with its template and our hash; it selects only pods of the pool."""
        labels = {"app": "web", **OURS}
        template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
        rolling = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
        spec = {"replicas": 4, "paused": True, "strategy": rolling, "template": template}
        live = deployment("web-spot", {**spec, "selector": {"matchLabels": labels}})
        script = Script().then(json(live), json(replica_set("web-spot-5d9c")))
        made = made_by(await done(script, AdoptPods("web-spot-5d9c", Pool.SPOT, ("5d9c",), None)))
        assert made["spec"]["replicas"] == 4
        assert list(made["metadata"]["annotations"].values()) == ["4", "6"]
        assert made["spec"]["selector"] == {"matchLabels": {**labels, "pod-template-hash": "5d9c"}}
        assert made["spec"]["template"]["metadata"]["labels"] == {**labels, "pod-template-hash": "5d9c"}
        [reference] = made["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == ("uid-web-spot", True)

    async def test_one_that_is_refused_holds_up_no_other(self) -> None:
        """Nobody replaces a pod without an owner: each twin takes its own, whatever the other is told."""
        labels = {"app": "web", **OURS}
        spec = {
            "paused": True,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": []}},
        }
        refused = refusal(403, "Forbidden", "exceeded quota: replicasets")
        script = Script().then(
            json(deployment("web-on-demand", spec)), refused, json(deployment("web-spot", spec)), refused
        )
        both = [AdoptPods(f"web-{pool}-5d9c", pool, ("5d9c",), None) for pool in Pool]
        seen = observation(
            source(manifest_json=MANIFEST), on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT)
        )
        async with connected(script) as client:
            writer = Writer(client, Cache(assess, lambda *_, **__: None))
            with pytest.raises(ApiError, match="exceeded quota"):
                await writer.apply(seen, tuple(both))
        created = [str(asked.body) for asked in script.asked if asked.method == "POST"]
        assert ["web-spot-5d9c" in one for one in created] == [False, True]

    async def test_home(self) -> None:
        """Controlled by the source, with the template that was kept, without our labels; of two hashes."""
        kept = replica_set(
            "web-5d9c",
            {
                "template": {
                    "metadata": {"labels": {"app": "web", **OURS, "pod-template-hash": "x"}},
                    "spec": {},
                }
            },
        )
        live = deployment("web", {"replicas": 4, "paused": True})
        script = Script().then(json(live), json(kept), json(replica_set("web-5d9c")))
        made = made_by(await done(script, AdoptPods("web-5d9c", None, ("5d9c", "7f6b"), "web-5d9c")))
        assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": "5d9c"}
        selector = made["spec"]["selector"]
        assert selector["matchLabels"] == {"app": "web"}
        assert selector["matchExpressions"] == [
            {"key": "pod-template-hash", "operator": "In", "values": ["5d9c", "7f6b"]}
        ]
        assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
        # N, and N + S of 25 %, however many pods there are: another number is a scaling to its controller.
        assert made["spec"]["replicas"] == 4
        assert list(made["metadata"]["annotations"].values())[-2:] == ["4", "5"]

    @pytest.mark.parametrize("pool", [Pool.SPOT, None])
    async def test_an_owner_that_was_resumed(self, pool: Pool | None) -> None:
        """Its controller may have made a ReplicaSet of its own: what is there is looked at first."""
        script = Script().then(json(deployment("web-spot" if pool else "web", {"replicas": 4})))
        with pytest.raises(ApiError, match="was resumed"):
            await done(script, AdoptPods("web-5d9c", pool, ("5d9c",), None))
        assert [one.method for one in script.asked] == ["GET"]

    async def test_the_owner_is_gone(self) -> None:
        """Nothing is made for nobody: the pods would be the garbage collector's."""
        script = Script().then(refusal(404, "NotFound", "web-spot"))
        with pytest.raises(ApiError, match="web-spot"):
            await done(script, AdoptPods("web-spot-5d9c", Pool.SPOT, ("5d9c",), None))
        assert len(script.asked) == 1


class TestKeeps:
    """The template of the revision that runs, for `rollout undo` and for the way back."""

    async def test_at_zero_with_a_hash_of_its_own(self) -> None:
        """It selects none of the pods, is not controlled by the source, and so is scaled by nobody."""
        live = replica_set(
            "web-1",
            {"template": {"metadata": {"labels": {"app": "web", "pod-template-hash": "1"}}, "spec": {}}},
            annotations={"deployment.kubernetes.io/revision": "3"},
        )
        script = Script().then(json(live), json(replica_set("web-k1")))
        made = made_by(await done(script, KeepRevision("web-k1", "web-1")))
        assert made["spec"]["replicas"] == 0
        assert made["spec"]["selector"]["matchLabels"]["pod-template-hash"] == "k1"
        assert not made["metadata"]["ownerReferences"][0].get("controller")
        assert made["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        assert made["metadata"]["labels"]["splitter.io/split"] == "parked"
