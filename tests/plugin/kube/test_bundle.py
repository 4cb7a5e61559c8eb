"""What is read for a bundle: each part by itself, the leader's log first, and never a Secret."""

from typing import Any

from aiohttp import web

from kube.server import Script, connected
from splitter.kube.paths import pods
from splitter.plugin.kube.bundle import BundleParts, read_bundle

OWN = "/api/v1/namespaces/splitter-system"
DEPLOYMENTS = "/apis/apps/v1/namespaces/splitter-system/deployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/splitter-system/leases/splitter"


def pod(name: str, restarts: int = 0) -> dict[str, Any]:
    """Make one of the controller's pods."""
    ports = [{"name": "health", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}]
    return {
        "metadata": {"namespace": "splitter-system", "name": name},
        "spec": {"containers": [{"name": "splitter", "ports": ports}]},
        "status": {"containerStatuses": [{"name": "splitter", "restartCount": restarts}]},
    }


VOLUME = {"name": "settings", "configMap": {"name": "blue-settings"}}
CONTROLLER = {
    "metadata": {"namespace": "splitter-system", "name": "blue"},
    "spec": {"template": {"spec": {"containers": [], "volumes": [VOLUME]}}},
}
CLUSTER: dict[str, Any] = {
    "/version": {"gitVersion": "v1.36.3"},
    DEPLOYMENTS: {"items": [CONTROLLER]},
    f"{OWN}/pods": {"items": [pod("a"), pod("b", restarts=1)]},
    LEASE: {"metadata": {"name": "splitter"}, "spec": {"holderIdentity": "b_11aa"}},
    f"{OWN}/configmaps/blue-settings": {"metadata": {"name": "blue-settings"}, "data": {}},
    f"{OWN}/pods/a/log": "standing by\n",
    f"{OWN}/pods/b/log": "leading\n",
    f"{OWN}/pods/a:9090/proxy/metrics": "splitter_leader 0\n",
    f"{OWN}/pods/b:9090/proxy/metrics": "splitter_leader 1\n",
}


async def read(cluster: dict[str, Any], *namespaces: str, missing: int = 404) -> tuple[BundleParts, Script]:
    """Read a bundle from an API server that knows these paths; others are refused, or empty."""

    async def answer(request: web.Request) -> web.StreamResponse:
        raw = cluster.get(request.path)
        if raw is None and request.path.rpartition("/")[2] in {"splits", "deployments", "events"}:
            raw = {"items": []}
        if raw is None:
            words = {"reason": "Refused", "message": f"{request.path} is refused"}
            return web.json_response(words, status=missing)
        if isinstance(raw, str):
            return web.Response(text=raw)
        return web.json_response(raw)

    script = Script().then(answer)
    async with connected(script) as client:
        return await read_bundle(client, "splitter-system", namespaces, 10), script


class TestReadBundle:
    async def test_has_the_log_of_the_leader_and_of_the_others(self) -> None:
        """The holder of the Lease leads; who restarted has an earlier log too; of each the last lines."""
        content, script = await read(CLUSTER | {f"{OWN}/pods/b/log": "leading\n"})
        assert content.leader == "b"
        assert list(content.logs) == ["b", "b-previous", "a"]
        assert content.logs["a"] == "standing by\n"
        asked = [one for one in script.asked if one.path.endswith("/log")]
        assert [one.query for one in asked] == [
            {"tailLines": "10"},
            {"previous": "true", "tailLines": "10"},
            {"tailLines": "10"},
        ]

    async def test_asks_the_port_that_the_pod_names(self) -> None:
        """Metrics come through the API server, from the port called `metrics`."""
        content, _ = await read(CLUSTER)
        assert content.metrics == {"a": "splitter_leader 0\n", "b": "splitter_leader 1\n"}

    async def test_goes_on_after_each_part_that_fails(self) -> None:
        """What is refused is named with the API server's words, and the rest is there."""
        kept = {key: value for key, value in CLUSTER.items() if not key.endswith("metrics")}
        del kept[f"{OWN}/configmaps/blue-settings"]
        content, _ = await read(kept, missing=403)
        assert content.failures == {
            "settings": f"you may not: {OWN}/configmaps/blue-settings is refused",
            "metrics/a": f"you may not: {OWN}/pods/a:9090/proxy/metrics is refused",
            "metrics/b": f"you may not: {OWN}/pods/b:9090/proxy/metrics is refused",
            "statefulsets": "you may not: /apis/apps/v1/statefulsets is refused",
            "replicasets": "you may not: /apis/apps/v1/replicasets is refused",
        }
        assert content.objects["splits"] == []
        assert set(content.logs) == {"a", "b", "b-previous"}

    async def test_reads_where_it_is_told(self) -> None:
        """The Splits of these namespaces, and the Events there and beside the controller."""
        _, script = await read(CLUSTER, "shop", "cart")
        asked = [one.path for one in script.asked if one.path.endswith(("/splits", "/events"))]
        assert [path.split("/")[-2] for path in asked] == ["shop", "cart", "shop", "cart", "splitter-system"]

    async def test_says_where_no_installation_is(self) -> None:
        """Another namespace is a usual mistake: what to name is said."""
        content, _ = await read({})
        assert "name that of the installation with -n" in content.failures["deployment"]
        assert content.leader == ""
        assert content.objects["splits"] == []

    async def test_asks_for_no_secret(self) -> None:
        """Of all paths none is a Secret's, and nothing is written."""
        _, script = await read(CLUSTER)
        assert {one.method for one in script.asked} == {"GET"}
        assert not [one.path for one in script.asked if "secret" in one.path]


class TestText:
    async def test_a_log_may_be_no_utf8(self) -> None:
        """What cannot be read is replaced; a log is asked for as what it is, no JSON."""

        async def answer(request: web.Request) -> web.StreamResponse:
            del request
            return web.Response(body=b"\xff lead")

        script = Script().then(answer)
        async with connected(script) as client:
            assert await client.text(pods("shop").of("web", "log")) == "\ufffd lead"
        assert script.asked[0].headers["Accept"] == "*/*"
