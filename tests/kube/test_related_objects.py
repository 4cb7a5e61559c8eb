"""What stands beside a workload: looked up live, and never an error where it may not be looked at."""

from collections.abc import Collection

from aiohttp import web

from builders import NOW, free_source
from kube.raw import Raw, deployment, metadata
from kube.server import Script, connected, json, refusal
from splitter.core.model import RelatedObjects, SourceView
from splitter.core.placeable import OneNodeClaim
from splitter.kube.parse import source as parse_source
from splitter.kube.related_objects import look_around
from splitter.kube.workload_autoscalers import WorkloadAutoscalers

DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
KEDA = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects"
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"


def autoscaler(name: str, aim: str, *metrics: Raw, **spec: object) -> Raw:
    """Return an HPA or a ScaledObject aimed at a Deployment."""
    target = {"kind": "Deployment", "name": aim}
    return {
        "metadata": metadata(name),
        "spec": {"scaleTargetRef": target, "metrics": list(metrics), **spec},
    }


def average(kind: str) -> Raw:
    """Return a metric whose average is aimed at."""
    return {"type": kind.capitalize(), kind: {"target": {"type": "AverageValue", "averageValue": "30"}}}


def claim(name: str, *modes: str) -> Raw:
    """Return a claim that may be mounted in these ways."""
    return {"metadata": metadata(name), "spec": {"accessModes": list(modes)}}


async def seen(
    objects: dict[str, Raw],
    source: SourceView | None = None,
    missing: int = 404,
    twins_seen: Collection[str] = (),
) -> RelatedObjects:
    """Return what is found in a namespace that holds these objects, by path."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path in objects:
            return await json(objects[request.path])(request)
        if request.path == HPAS:
            return await json({"items": []})(request)
        return await refusal(missing, "NotFound", "not here")(request)

    async with connected(Script().then(answer)) as client:
        source = source or free_source()
        scaling = await WorkloadAutoscalers(client).of("shop", NOW, 0, resources=source.stateful is not None)
        return await look_around(client, source, scaling, (), twins_seen)


class TestNames:
    async def test_nobody_there(self) -> None:
        """Nothing stands in the way."""
        assert await seen({}) == RelatedObjects()

    async def test_a_foreign_deployment(self) -> None:
        """It has a twin's name and is not ours."""
        there = {f"{DEPLOYMENTS}/web-spot": {"metadata": metadata("web-spot")}}
        assert (await seen(there)).taken_names == ("web-spot",)

    async def test_a_twin(self) -> None:
        """One of ours is not in our own way."""
        ours = {"metadata": metadata("web-spot", labels={"splitter.io/pool": "spot"})}
        assert (await seen({f"{DEPLOYMENTS}/web-spot": ours})).taken_names == ()

    async def test_a_twin_that_was_seen(self) -> None:
        """Nobody asks for what a watch has brought: at a start it would be two requests for each workload."""
        there = {
            f"{DEPLOYMENTS}/{name}": {"metadata": metadata(name)} for name in ("web-spot", "web-on-demand")
        }
        assert (await seen(there, twins_seen=("web-spot",))).taken_names == ("web-on-demand",)


class TestAutoscalers:
    async def test_aimed_at_a_twin(self) -> None:
        """The Kubernetes one, and KEDA's."""
        hpa = {HPAS: {"items": [autoscaler("web", "web"), autoscaler("extra", "web-spot")]}}
        assert (await seen(hpa)).autoscaled_twin == "HorizontalPodAutoscaler/extra"
        keda = {KEDA: {"items": [autoscaler("web", "web-on-demand")]}}
        assert (await seen(keda)).autoscaled_twin == "ScaledObject/web"

    async def test_aimed_at_something_else(self) -> None:
        """A StatefulSet of that name, or another Deployment, is none of our business."""
        other = autoscaler("extra", "web-spot")
        other["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"
        assert await seen({HPAS: {"items": [other, autoscaler("cart", "cart")]}}) == RelatedObjects()

    async def test_that_loses_its_tolerance(self) -> None:
        """The average of an external or object metric is divided by a status that shows 0 replicas."""
        for kind in ("external", "object"):
            result = await seen({HPAS: {"items": [autoscaler("web", "web", average(kind))]}})
            assert result.untolerant_autoscaler == "HorizontalPodAutoscaler/web"

    async def test_that_keeps_it(self) -> None:
        """A metric of the pods, or a window that was set, is as good as before."""
        patient = {"scaleUp": {"stabilizationWindowSeconds": 60}}
        window = autoscaler("web", "web", average("external"), behavior=patient)
        cpu = autoscaler(
            "web", "web", {"type": "Resource", "resource": {"target": {"averageUtilization": 60}}}
        )
        for hpa in (window, cpu, autoscaler("web", "web", average("pods"))):
            assert (await seen({HPAS: {"items": [hpa]}})).untolerant_autoscaler == ""


class TestClaims:
    async def test_one_node_only(self) -> None:
        """Both modes that keep a volume on one node; one mode more and it may be shared."""
        mounts = free_source(claims=("uploads",))
        for modes, one in (
            (("ReadWriteOnce",), OneNodeClaim("uploads")),
            (("ReadWriteOncePod",), OneNodeClaim("uploads", one_pod=True)),
            (("ReadWriteOnce", "ReadWriteMany"), None),
            (("ReadOnlyMany",), None),
        ):
            there = {f"{CLAIMS}/uploads": claim("uploads", *modes)}
            assert (await seen(there, mounts)).one_node_claim == one

    async def test_not_there_or_not_ours_to_read(self) -> None:
        """What cannot be known stands in nobody's way."""
        mounts = free_source(claims=("uploads",))
        for status in (403, 404):
            assert await seen({}, mounts, missing=status) == RelatedObjects()


class TestTemplate:
    """What the source's own pod template says."""

    def template(self, **spec: object) -> SourceView:
        """Return the source with this pod spec."""
        raw = deployment("web")
        raw["spec"]["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
        return parse_source(raw).view

    def test_claims(self) -> None:
        """By name; other volumes are no claims."""
        volumes = [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "uploads"}},
        ]
        assert self.template(volumes=volumes).claims == ("uploads",)
        assert self.template().claims == ()

    def test_one_a_node(self) -> None:
        """A port of the host, or an anti-affinity that the pods have against each other."""
        ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
        assert self.template(containers=[{"ports": ports}]).one_a_node == "hostPort 8081"

        def anti(label: str, topology: str = "kubernetes.io/hostname") -> SourceView:
            rule = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": topology}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
            return self.template(affinity={"podAntiAffinity": required})

        assert anti("web").one_a_node == "required pod anti-affinity to itself"
        assert anti("cart").one_a_node == ""
        assert anti("web", "topology.kubernetes.io/zone").one_a_node == ""
