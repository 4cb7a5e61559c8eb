"""The world's API server refuses and answers as Kubernetes 1.36 does; each claim names its source."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from leaping import passing
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.admission import refusing
from world.api import Api
from world.cluster import Cluster
from world.kinds import BUDGETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Raw, Ref
from world.pods import condition, is_ready
from world.workloads import WEB, changed, deployment, moments, until

SHOP = "/apis/apps/v1/namespaces/shop/deployments"


class User:
    """Asks over the wire, as kubectl would."""

    def __init__(self) -> None:
        self.api = Api()

    async def ask(
        self, method: str, path: str, body: Raw | None = None, patch: str = "", **query: str
    ) -> Raw:
        """Send a request."""
        return await self.api.send(method, ResourcePath.read(path), body, patch=patch, query=query)

    async def refused(
        self, method: str, path: str, body: Raw | None = None, patch: str = "", **query: str
    ) -> int:
        """Return the status with which a request is refused."""
        with pytest.raises(ApiError) as raised:
            await self.ask(method, path, body, patch, **query)
        return raised.value.status

    async def watched(self, path: str, **query: str) -> list[tuple[str, str]]:
        """Return what a watch tells until its end: the change, and of what."""
        where = ResourcePath.read(path)
        async with self.api.stream(where, {"timeoutSeconds": "1", **query}, 10.0) as lines:
            return [seen async for seen in _read(lines)]


async def _read(lines: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    async for line in lines:
        event: dict[str, Any] = orjson.loads(line)
        yield event["type"], event["object"].get("metadata", {}).get("name", "")


class TestWrites:
    """Source: k8s.io/apiserver, pkg/registry/generic/registry/store.go and pkg/registry/rest."""

    async def test_versions(self) -> None:
        """Each write is a version; what changes nothing is none; a stale one is a conflict."""
        user = User()
        made = await user.ask("POST", SHOP, deployment(1))
        same = await user.ask("PATCH", f"{SHOP}/web", {"spec": {"replicas": 1}}, "merge")
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        scaled = await user.ask("PATCH", f"{SHOP}/web", {"spec": {"replicas": 2}}, "merge")
        assert int(scaled["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        assert (made["metadata"]["generation"], scaled["metadata"]["generation"]) == (1, 2)
        assert await user.refused("PUT", f"{SHOP}/web", made) == 409
        stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
        assert await user.refused("PATCH", f"{SHOP}/web", stale, "merge") == 409
        assert await user.refused("PATCH", f"{SHOP}/web", {"metadata": {"uid": "another"}}, "merge") == 422
        assert await user.refused("POST", SHOP, deployment(1)) == 409
        assert await user.refused("PATCH", f"{SHOP}/none", {"spec": {"replicas": 1}}, "merge") == 404

    async def test_a_dry_run_writes_nothing(self) -> None:
        """It answers as the write would, and refuses as it would."""
        user = User()
        made = await user.ask("POST", SHOP, deployment(1), dryRun="All")
        assert made["spec"]["strategy"]["type"] == "RollingUpdate"
        assert await user.refused("GET", f"{SHOP}/web") == 404
        user.api.objects.rules.append(refusing("no", kind=DEPLOYMENTS))
        assert await user.refused("POST", SHOP, deployment(1), dryRun="All") == 422

    async def test_status_and_spec_are_apart(self) -> None:
        """Each is left alone by a write of the other; a Deployment's annotations go with both."""
        user = User()
        made = await user.ask("POST", SHOP, {**deployment(1), "status": {"replicas": 7}})
        assert made["status"] == {}
        made["status"], made["spec"]["replicas"] = {"replicas": 3}, 9
        made["metadata"]["annotations"] = {"a": "b"}
        written = await user.ask("PUT", f"{SHOP}/web/status", made)
        assert (written["status"], written["spec"]["replicas"]) == ({"replicas": 3}, 1)
        assert written["metadata"]["annotations"] == {"a": "b"}
        assert written["metadata"]["generation"] == 1

    async def test_a_selector_is_for_life(self) -> None:
        """pkg/apis/apps/validation: it is immutable, and has to match the template."""
        user = User()
        await user.ask("POST", SHOP, deployment(1))
        other = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
        assert await user.refused("PATCH", f"{SHOP}/web", other, "merge") == 422
        unlike = deployment(1, selector={"matchLabels": {"app": "other"}})
        assert await user.refused("POST", SHOP, {**unlike, "metadata": {"name": "unlike"}}) == 422

    async def test_scale(self) -> None:
        """A write to /scale is one to the replicas."""
        user = User()
        await user.ask("POST", SHOP, deployment(1))
        answer = await user.ask("PATCH", f"{SHOP}/web/scale", {"spec": {"replicas": 4}}, "merge")
        assert (answer["kind"], answer["spec"]["replicas"]) == ("Scale", 4)
        assert (await user.ask("GET", f"{SHOP}/web"))["spec"]["replicas"] == 4

    async def test_preconditions_of_a_deletion(self) -> None:
        """Another UID or version is a conflict."""
        user = User()
        made = await user.ask("POST", SHOP, deployment(1))
        for name in ("uid", "resourceVersion"):
            assert await user.refused("DELETE", f"{SHOP}/web", {"preconditions": {name: "another"}}) == 409
        given = {name: made["metadata"][name] for name in ("uid", "resourceVersion")}
        assert (await user.ask("DELETE", f"{SHOP}/web", {"preconditions": given}))["status"] == "Success"

    async def test_finalizers(self) -> None:
        """A deletion waits for them, and takes no new ones."""
        user = User()
        held = deployment(1)
        held["metadata"]["finalizers"] = ["example.com/held"]
        await user.ask("POST", SHOP, held)
        going = await user.ask("DELETE", f"{SHOP}/web")
        assert going["metadata"]["deletionTimestamp"]
        more = {"metadata": {"finalizers": ["example.com/held", "example.com/more"]}}
        assert await user.refused("PATCH", f"{SHOP}/web", more, "merge") == 422
        await user.ask("PATCH", f"{SHOP}/web", {"metadata": {"finalizers": None}}, "merge")
        assert await user.refused("GET", f"{SHOP}/web") == 404


class TestReads:
    """Source: k8s.io/apiserver, pkg/storage/{etcd3,cacher}."""

    async def test_pages(self) -> None:
        """All pages are of one moment, and bear one version."""
        user = User()
        for number in range(5):
            await user.ask("POST", SHOP, {**deployment(1), "metadata": {"name": f"web-{number}"}})
        page = await user.ask("GET", SHOP, limit="2")
        await user.ask("DELETE", f"{SHOP}/web-4")
        names = [raw["metadata"]["name"] for raw in page["items"]]
        versions = {page["metadata"]["resourceVersion"]}
        while token := page["metadata"].get("continue"):
            page = await user.ask("GET", SHOP, **{"limit": "2", "continue": token})
            names += [raw["metadata"]["name"] for raw in page["items"]]
            versions.add(page["metadata"]["resourceVersion"])
        assert names == [f"web-{number}" for number in range(5)]
        assert len(versions) == 1
        assert "kind" not in page["items"][0]

    async def test_a_watch_goes_on_where_a_list_ends(self) -> None:
        """What enters a selector is added, what leaves it deleted; a bookmark that was asked for ends it."""
        user = User()
        version = (await user.ask("GET", SHOP))["metadata"]["resourceVersion"]
        await user.ask("POST", SHOP, deployment(1))
        for value in ("yes", "yes", None):
            labels = {"metadata": {"labels": {"chosen": value}}, "spec": {"replicas": 2 if value else 3}}
            await user.ask("PATCH", f"{SHOP}/web", labels, "merge")
        query = {"resourceVersion": version, "labelSelector": "chosen"}
        seen = await user.watched(SHOP, **query, allowWatchBookmarks="true")
        assert seen == [("ADDED", "web"), ("DELETED", "web"), ("BOOKMARK", "")]
        assert await user.watched(SHOP) == [("ADDED", "web")]

    async def test_a_version_that_is_forgotten(self) -> None:
        """Who goes on from it is told 410, and lists."""
        user = User()
        await user.ask("POST", SHOP, deployment(1))
        version = str(user.api.objects.version - 1)
        user.api.objects.compact()
        assert await user.watched(SHOP, resourceVersion=version) == [("ERROR", "")]
        assert await user.watched(SHOP, resourceVersion=str(user.api.objects.version)) == []


class TestApply:
    """Source: sigs.k8s.io/structured-merge-diff."""

    async def applied(self, user: User, body: Raw, manager: str, **query: str) -> Raw:
        """Apply a Deployment."""
        return await user.ask("PATCH", f"{SHOP}/web", body, "apply", fieldManager=manager, **query)

    async def test_what_is_applied_no_more_is_removed(self) -> None:
        """A field and an item of a keyed list, but not what another one has applied, too."""
        user = User()
        body = deployment(1)
        body["metadata"]["annotations"] = {"mine": "1", "shared": "1"}
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
        await self.applied(user, body, "one")
        await self.applied(user, {"metadata": {"annotations": {"shared": "1"}}}, "two")
        del body["metadata"]["annotations"], container["env"][0]
        made = await self.applied(user, body, "one")
        assert made["metadata"]["annotations"] == {"shared": "1"}
        assert made["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "B", "value": "2"}]

    async def test_what_another_one_owns_is_a_conflict(self) -> None:
        """Unless it is forced: then it is this one's, and the other's no more."""
        user = User()
        await self.applied(user, deployment(1), "one")
        with pytest.raises(ApiError) as raised:
            await self.applied(user, {"spec": {"replicas": 2}, "metadata": {}}, "two")
        assert (raised.value.status, ".spec.replicas" in raised.value.message) == (409, True)
        made = await self.applied(user, {"spec": {"replicas": 2}, "metadata": {}}, "two", force="true")
        owners = {
            one["manager"]: "f:replicas" in one["fieldsV1"]["f:spec"]
            for one in made["metadata"]["managedFields"]
        }
        assert owners == {"one": False, "two": True}

    async def test_an_update_owns_what_it_changes(self) -> None:
        """And an applier of that is in conflict with it; an empty entry of managedFields forgets all."""
        user = User()
        await self.applied(user, deployment(1), "one")
        made = await user.ask(
            "PATCH", f"{SHOP}/web", {"spec": {"paused": True}}, "merge", fieldManager="hand"
        )
        entry = next(one for one in made["metadata"]["managedFields"] if one["manager"] == "hand")
        assert (entry["operation"], entry["fieldsV1"]) == ("Update", {"f:spec": {"f:paused": {}}})
        none: Raw = {"metadata": {"managedFields": [{}]}}
        made = await user.ask("PATCH", f"{SHOP}/web", none, "merge", fieldManager="hand")
        assert "managedFields" not in made["metadata"]

    async def test_it_never_creates_what_it_knows_by_a_version(self) -> None:
        """With a version or UID given, what is not there is a conflict (patch.go, createNewObject)."""
        user = User()
        body = {**deployment(1), "metadata": {"name": "web", "resourceVersion": "1"}}
        assert await user.refused("PATCH", f"{SHOP}/web", body, "apply", fieldManager="one") == 409


class TestDeletion:
    """Source: pkg/controller/garbagecollector, pkg/registry/core/pod."""

    async def test_in_the_background_and_by_orphaning(self) -> None:
        """What is owned goes after its owner; orphaned it stays, without the reference."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(3), "user")
            await until(lambda: len(cluster.ready()) == 3)
            (rs,) = cluster.objects.all(REPLICA_SETS)
            cluster.objects.delete(WEB, {"propagationPolicy": "Orphan"})
            await until(lambda: not cluster.objects.all(DEPLOYMENTS))
            (rs,) = cluster.objects.all(REPLICA_SETS)
            assert "ownerReferences" not in rs["metadata"]
            cluster.objects.delete(Ref(REPLICA_SETS, "shop", rs["metadata"]["name"]))
            assert not cluster.objects.all(REPLICA_SETS)
            assert len(cluster.pods()) == 3
            await until(lambda: not cluster.objects.all(PODS))

    async def test_a_policy_may_refuse_it(self) -> None:
        """An orphaning that is refused is tried again, ever later; the owner stays until then."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(2), "user")
            await until(lambda: len(cluster.ready()) == 2)
            collector = "system:serviceaccount:kube-system:generic-garbage-collector"
            cluster.objects.rules.append(refusing("hands off", verb="update", kind=PODS, user=collector))
            (rs,) = cluster.objects.all(REPLICA_SETS)
            ref = Ref(REPLICA_SETS, "shop", rs["metadata"]["name"])
            cluster.objects.delete(ref, {"propagationPolicy": "Orphan"})
            await passing(30.0)
            assert cluster.objects.get(ref)["metadata"]["finalizers"] == ["orphan"]
            cluster.objects.rules.pop()
            await until(lambda: cluster.objects.find(ref) is None)

    async def test_the_grace_of_a_pod(self) -> None:
        """It ends within its grace; of a silent machine only force takes it away."""
        cluster = Cluster(1)
        cluster.add_node("one")
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(1), "user")
            await until(lambda: len(cluster.ready()) == 1)
            cluster.silence("one")
            ref = Ref(PODS, "shop", cluster.pods()[0]["metadata"]["name"])
            going = cluster.objects.delete(ref)
            assert going["metadata"]["deletionGracePeriodSeconds"] == 30
            await passing(45.0)
            assert cluster.objects.find(ref) is not None
            cluster.objects.delete(ref, {"gracePeriodSeconds": 0})
            assert cluster.objects.find(ref) is None


class TestNodes:
    """Source: pkg/controller/{nodelifecycle,tainteviction,podgc} and pkg/scheduler."""

    async def one_pod(self, cluster: Cluster) -> Ref:
        """Have one pod on the first of two nodes."""
        cluster.add_node("one")
        cluster.objects.create(WEB.kind, "shop", deployment(1), "user")
        await until(lambda: len(cluster.ready()) == 1)
        cluster.add_node("two")
        await passing(1.0)
        return Ref(PODS, "shop", cluster.pods()[0]["metadata"]["name"])

    async def test_a_silent_machine(self) -> None:
        """Its pods are not ready after 50 s, and are deleted 300 s after that."""
        cluster = Cluster(1)
        async with cluster.running():
            ref = await self.one_pod(cluster)
            began_s = moments()
            cluster.silence("one")
            await until(lambda: not is_ready(cluster.objects.get(ref)))
            assert 50.0 < moments() - began_s < 56.0
            ready = condition(cluster.objects.get(Ref(NODES, "", "one")), "Ready")
            assert ready is not None
            assert ready["status"] == "Unknown"
            await until(lambda: "deletionTimestamp" in cluster.objects.get(ref)["metadata"], 400.0)
            assert 350.0 < moments() - began_s < 370.0
            await until(lambda: len(cluster.ready()) == 1)
            assert cluster.objects.find(ref) is not None  # no kubelet says that it has ended

    async def test_a_node_that_is_gone(self) -> None:
        """Its pods look ready for 40 to 60 s, and are then deleted by force."""
        cluster = Cluster(1)
        async with cluster.running():
            ref = await self.one_pod(cluster)
            began_s = moments()
            cluster.vanish("one")
            await passing(39.0)
            assert is_ready(cluster.objects.get(ref))
            await until(lambda: cluster.objects.find(ref) is None)
            assert 40.0 < moments() - began_s < 61.0
            await until(lambda: len(cluster.ready()) == 1)

    async def test_no_execute(self) -> None:
        """A pod that does not tolerate such a taint goes at once, one that does for a while goes after it."""
        cluster = Cluster(1)
        async with cluster.running():
            ref = await self.one_pod(cluster)
            cluster.taint("one", [{"key": "k", "effect": "NoSchedule"}])
            await passing(5.0)
            assert "deletionTimestamp" not in cluster.objects.get(ref)["metadata"]
            cluster.taint("one", [{"key": "k", "effect": "NoExecute"}])
            await until(lambda: cluster.objects.find(ref) is None, 5.0)
            await until(lambda: [pod["spec"]["nodeName"] for pod in cluster.ready()] == ["two"])

    async def test_where_a_pod_fits(self) -> None:
        """Requests, taints, selector; one that fits nowhere says so, and is bound when a node comes."""
        cluster = Cluster(1)
        cluster.add_node("small", {"disk": "fast"}, cpu="50m")
        cluster.add_node("tainted", {"disk": "fast"}, [{"key": "k", "effect": "NoSchedule"}])
        cluster.add_node("other", {"disk": "slow"})
        body = deployment(1)
        body["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", body, "user")
            await passing(5.0)
            scheduled = condition(cluster.pods()[0], "PodScheduled")
            assert scheduled is not None
            assert scheduled["reason"] == "Unschedulable"
            cluster.add_node("right", {"disk": "fast"})
            await until(lambda: len(cluster.ready()) == 1, 10.0)


class TestEviction:
    """Source: pkg/registry/core/pod/storage/eviction.go, pkg/controller/disruption."""

    async def test_a_budget_counts(self) -> None:
        """It lets go what it allows, and no more until another one is ready; two budgets are a 500."""
        cluster = Cluster(1)
        cluster.add_node("one")
        selector = {"matchLabels": {"app": "web"}}
        budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": selector}}
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(3), "user")
            cluster.objects.create(BUDGETS, "shop", budget, "user")
            await until(lambda: cluster.objects.all(BUDGETS)[0]["status"].get("disruptionsAllowed") == 1)
            first, second, _ = (raw["metadata"]["name"] for raw in cluster.pods())
            assert await evicted(cluster, first) == 0
            assert await evicted(cluster, second) == 429
            await until(lambda: cluster.objects.all(BUDGETS)[0]["status"]["disruptionsAllowed"] == 1)
            cluster.objects.create(BUDGETS, "shop", {**budget, "metadata": {"name": "more"}}, "user")
            assert await evicted(cluster, second) == 500

    async def test_a_budget_that_was_changed(self) -> None:
        """Until its controller has seen that it refuses."""
        cluster = Cluster(1, lag_s=0.5)
        cluster.add_node("one")
        selector = {"matchLabels": {"app": "web"}}
        budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 0, "selector": selector}}
        async with cluster.running():
            cluster.objects.create(WEB.kind, "shop", deployment(1), "user")
            cluster.objects.create(BUDGETS, "shop", budget, "user")
            await until(lambda: cluster.objects.all(BUDGETS)[0]["status"].get("disruptionsAllowed") == 1)
            changed(cluster, Ref(BUDGETS, "shop", "web"), lambda raw: raw["spec"].update(minAvailable=1))
            assert await evicted(cluster, cluster.pods()[0]["metadata"]["name"]) == 429


async def evicted(cluster: Cluster, pod: str) -> int:
    """Ask for an eviction; return the status of a refusal, 0 where there is none."""
    path = ResourcePath.read(f"/api/v1/namespaces/shop/pods/{pod}/eviction")
    try:
        await cluster.api.send("POST", path, {"metadata": {"name": pod}})
    except ApiError as error:
        return error.status
    return 0
