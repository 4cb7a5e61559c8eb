"""Where a member's volumes can be attached, and whether the API server places pods: looked up live."""

import json as text
from dataclasses import replace

import pytest
from aiohttp import web

from builders import NOW, ago, free_source
from cpu import cpu_below
from kube.raw import Raw, metadata
from kube.server import Script, connected, json, refusal
from splitter.core.model import RelatedObjects, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.facts import CapacityClass, NodeState
from splitter.core.placeable import Reach
from splitter.core.replica import Pool
from splitter.core.stateful import StatefulView
from splitter.kube.client import KIND_MISSING
from splitter.kube.related_objects import look_around
from splitter.kube.workload_autoscalers import WorkloadAutoscalers

HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICY = f"{ADMISSION}/mutatingadmissionpolicies/splitter-placement"
BINDING = f"{ADMISSION}/mutatingadmissionpolicybindings/splitter-placement"
THERE: dict[str, Raw] = {POLICY: {}, BINDING: {}}
ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str, *, spot: bool) -> NodeState:
    """Return a node in a zone."""
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    return NodeState(name, f"uid-{name}", capacity, labels={ZONE: zone})


NODES = (node("od-a", "a", spot=False), node("spot-a", "a", spot=True), node("spot-b", "b", spot=True))


def db(*templates: str, replicas: int = 2) -> SourceView:
    """Return a StatefulSet with these claim templates."""
    only = StatefulView(replicas, replicas, replicas, ago(3600), claim_templates=templates)
    return replace(free_source(replicas), key=Key(STATEFUL_SET, "shop", "db"), stateful=only)


def claimed(ordinal: int, volume: str) -> dict[str, Raw]:
    """Return the claim of a member, bound to a volume."""
    name = f"data-db-{ordinal}"
    return {f"{CLAIMS}/{name}": {"metadata": metadata(name), "spec": {"volumeName": volume}}}


def volume(name: str, *zones: str) -> dict[str, Raw]:
    """Return a volume that can be attached in these zones; without any, everywhere."""
    spec: Raw = {}
    if zones:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
        spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return {f"{VOLUMES}/{name}": {"metadata": metadata(name), "spec": spec}}


def twins_of(*templates: str, replicas: int = 2, volumes: str = "disposable") -> SourceView:
    """Return one that is to be split into twins."""
    annotations = {"splitter.io/mode": "twins", "splitter.io/volumes": volumes}
    return replace(db(*templates, replicas=replicas), annotations=annotations)


async def seen(
    objects: dict[str, Raw],
    source: SourceView,
    missing: tuple[int, str] = (404, "NotFound"),
    nodes: tuple[NodeState, ...] = NODES,
    message: str = "not here",
    *,
    twins: tuple[str, ...] = (),
) -> RelatedObjects:
    """Return what is found beside a StatefulSet."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path in objects:
            return await json(objects[request.path])(request)
        if request.path == HPAS:
            return await json({"items": []})(request)
        return await refusal(missing[0], missing[1], message)(request)

    async with connected(Script().then(answer)) as client:
        scaling = await WorkloadAutoscalers(client).of("shop", NOW, 0, resources=True)
        return await look_around(client, source, scaling, nodes, twins)


class TestReach:
    async def test_bound_to_a_zone_without_on_demand_nodes(self) -> None:
        """The member stays on spot, and it is said why; its neighbour goes everywhere."""
        objects = THERE | claimed(0, "v0") | volume("v0", "b") | claimed(1, "v1") | volume("v1", "a")
        result = (await seen(objects, db("data"))).reach
        assert (result[0].on_demand, result[0].spot) == (False, True)
        assert result[0].why == ("volume v0 can be attached in zone b only, where there is no on-demand node")
        assert (result[1].on_demand, result[1].spot, result[1].why) == (True, True, "")
        assert text.loads(result[1].terms_json) == [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
        ]

    async def test_all_volumes_have_to_be_attachable(self) -> None:
        """Two in two zones reach no node at all."""
        other = {f"{CLAIMS}/log-db-0": {"metadata": metadata("log-db-0"), "spec": {"volumeName": "w0"}}}
        objects = THERE | claimed(0, "v0") | volume("v0", "a") | other | volume("w0", "b")
        result = (await seen(objects, db("data", "log", replicas=1))).reach[0]
        assert (result.on_demand, result.spot) == (False, False)

    @pytest.mark.parametrize(
        "objects",
        [
            {},
            {f"{CLAIMS}/data-db-0": {"metadata": metadata("data-db-0"), "spec": {}}},
            claimed(0, "v0") | volume("v0"),
            claimed(0, "v0"),
        ],
        ids=["no claim", "not bound", "everywhere", "may not be read"],
    )
    async def test_what_keeps_nobody(self, objects: dict[str, Raw]) -> None:
        """Is not told at all."""
        assert (await seen(THERE | objects, db("data", replicas=1))).reach == {}

    async def test_a_pool_without_nodes_keeps_nobody(self) -> None:
        """An autoscaler may buy one where it is needed."""
        objects = THERE | claimed(0, "v0") | volume("v0", "b")
        around = await seen(objects, db("data", replicas=1), nodes=NODES[1:])
        assert around.reach[0] == Reach(terms_json=around.reach[0].terms_json)

    async def test_many_volumes_with_a_term_for_each_zone(self) -> None:
        """The terms of 20 volumes, each with each, would be a million; 5,000 nodes are asked once."""
        templates = tuple(f"data-{number}" for number in range(20))
        objects: dict[str, Raw] = {}
        for number, template in enumerate(templates):
            keys = (ZONE, f"example.com/zone-{number}")  # no two volumes say the same
            terms = [{"matchExpressions": [{"key": one, "operator": "Exists"}]} for one in keys]
            spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
            objects[f"{VOLUMES}/volume-{number}"] = {"metadata": metadata(f"volume-{number}"), "spec": spec}
            for ordinal in range(4):
                name = f"{template}-db-{ordinal}"
                claim = {"metadata": metadata(name), "spec": {"volumeName": f"volume-{number}"}}
                objects[f"{CLAIMS}/{name}"] = claim
        nodes = tuple(node(f"spot-{number}", "a", spot=True) for number in range(5_000))
        with cpu_below(3.0):  # of which the requests are most
            around = await seen(objects, db(*templates, replicas=4), nodes=nodes)
        assert set(around.reach) == set(range(4))
        assert len(text.loads(around.reach[0].terms_json)) <= 100


class TestSupport:
    async def test_a_crd_of_before(self) -> None:
        """The policy is there, and nothing that it could read."""
        result = (await seen(THERE, db(), (404, ""), message="404 page not found")).unplaceable
        assert result.startswith(
            "this cluster does not know Placements (placements.splitter.io); apply manif"
        )
        assert "annotate splitter.io/mode=twins" in result

    async def test_policy_and_binding_are_there(self) -> None:
        """Then nothing is in the way."""
        assert (await seen(THERE, db())).unplaceable == ""

    @pytest.mark.parametrize(
        ("objects", "missing", "words"),
        [
            ({}, (404, "NotFound"), "apply manifests/admission/placement.yaml"),
            ({POLICY: {}}, (404, "NotFound"), "or its binding, is not there"),
            ({}, (404, KIND_MISSING), "this API server has no MutatingAdmissionPolicy"),
            ({}, (403, "Forbidden"), "splitter may not see whether policy splitter-placement is there"),
        ],
        ids=["no policy", "no binding", "older", "no right"],
    )
    async def test_says_what_is_missing(
        self, objects: dict[str, Raw], missing: tuple[int, str], words: str
    ) -> None:
        """And what to do, and that twins may be asked for."""
        result = (await seen(objects, db(), missing)).unplaceable
        assert words in result
        assert "annotate splitter.io/mode=twins" in result


class TestTakenClaims:
    """A twin mounts whatever has the name of its claim, and deletes it when it goes."""

    @staticmethod
    def claim(name: str, **labels: str) -> dict[str, Raw]:
        """Return a claim of this name."""
        return {f"{CLAIMS}/{name}": {"metadata": metadata(name, labels=labels), "spec": {}}}

    async def test_somebody_elses(self) -> None:
        """The lowest of each twin, of any of its templates; none of more members than there are."""
        there = {
            **self.claim("data-db-on-demand-1"),
            **self.claim("log-db-on-demand-0"),
            **self.claim("data-db-spot-1001"),
            **self.claim("data-db-spot-1002"),
        }
        result = await seen(there, twins_of("data", "log"))
        assert result.taken_claims == {
            Pool.ON_DEMAND: (0, "log-db-on-demand-0"),
            Pool.SPOT: (1, "data-db-spot-1001"),
        }

    async def test_its_own(self) -> None:
        """The StatefulSet controller gives its claims the labels of the selector."""
        ours = self.claim("data-db-on-demand-0", **{"splitter.io/pool": "on-demand"})
        assert (await seen(ours, twins_of("data"))).taken_claims == {}

    async def test_of_twins_that_are_there(self) -> None:
        """Somebody has taken the annotations off since: their volumes are there all the same."""
        there = self.claim("data-db-spot-1001")
        result = await seen(there, db("data", replicas=2), twins=("db-on-demand", "db-spot"))
        assert result.taken_claims == {Pool.SPOT: (1, "data-db-spot-1001")}

    @pytest.mark.parametrize("source", [db("data"), twins_of("data", volumes=""), twins_of()])
    async def test_where_no_twin_has_volumes(self, source: SourceView) -> None:
        """Placed, refused for its volumes, or without any: nobody takes a claim."""
        assert (await seen(self.claim("data-db-on-demand-0"), source)).taken_claims == {}
