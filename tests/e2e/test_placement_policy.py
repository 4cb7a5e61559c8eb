"""Pods of a StatefulSet in placement mode are born with their node affinity, by ordinal; no other is touched.

The policy alone answers: no controller runs, and the Placements are written by the tests. It is in force with
`failurePolicy: Fail`, so that what it cannot do is seen; the one that is installed lets such pods pass.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from e2e.support.admission import steadily
from lab.fixtures.placed import needs_placement
from lab.fixtures.shop import DEADLINE_S, JsonObject
from lab.sandbox import ApiError, PatchKind, Sandbox
from lab.sandbox.waiting import wait_until
from splitter.admission import placement_policy
from splitter.assembly import node_presets_of
from splitter.bundled import bundled_path
from splitter.core.desired.scheduling import add_tolerations, prefer_node_affinity, require_node_affinity
from splitter.core.nodes.capacity import PRESETS, Preset, classify
from splitter.core.nodes.facts import CapacityClass, Taint
from splitter.core.placeable import Runs, runs
from splitter.kube.placement_writer import placement
from splitter.settings import Settings

pytestmark = [pytest.mark.e2e, needs_placement]

POOL = "splitter.io/pool"
GKE, KARPENTER = "cloud.google.com/gke-spot", "karpenter.sh/capacity-type"
INDEX = "apps.kubernetes.io/pod-index"
PROVIDER = "example.com/provider"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = node_presets_of(Settings())
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
ZONE_A = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
NAME = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}


class Cluster:
    """A cluster with the policy in force and one namespace after the other."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.namespace = ""
        self.reported: dict[str, tuple[str, Runs]] = {}
        self._count = 0

    def enter(self) -> None:
        """Go on in a fresh namespace."""
        self._count += 1
        self.reported = {}
        self.namespace = f"placed-{self._count}"
        self.sandbox.api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_until(lambda: self.sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S)

    def statefulset(self, name: str = "db", replicas: int = 0, pod: Mapping[str, Any] | None = None) -> str:
        """Create a StatefulSet and return its UID."""
        labels = {"app": name}
        container = {"name": "db", "image": "db:1"}
        spec = {
            "serviceName": name,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **(pod or {})}},
        }
        body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets"
        uid: str = self.sandbox.api.create(path, body)["metadata"]["uid"]
        return uid

    def place(
        self, uid: str, ordinals: Sequence[int] | None, name: str = "db", spot_labels: Sequence[str] = ()
    ) -> None:
        """Tell the policy the ordinals of a StatefulSet, beside what it has been told here; None: no more."""
        if ordinals is None:
            del self.reported[uid]
        else:
            self.reported[uid] = (name, runs(ordinals))
        body = placement(self.namespace, self.reported, spot_labels)
        del body["metadata"]["ownerReferences"]
        path = f"/apis/splitter.io/v1alpha1/namespaces/{self.namespace}/placements/splitter-placement"
        self.sandbox.api.patch(path, body, kind=PatchKind.APPLY)

    def born(
        self,
        uid: str,
        ordinal: int | str = 0,
        spec: Mapping[str, Any] | None = None,
        *,
        name: str = "db",
        kind: str = "StatefulSet",
        labels: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """Return a pod as it would be born, made as the StatefulSet controller makes it."""
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{ordinal}",
                "labels": {"app": name, INDEX: str(ordinal), **(labels or {})},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": "db", "image": "db:1"}], **(spec or {})},
        }
        query = {"dryRun": "All"}
        return self.sandbox.api.request("POST", self.pods, body=body, query=query)

    @property
    def pods(self) -> str:
        """Return where the pods are."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pool(self, uid: str, ordinal: int = 0, **more: Any) -> str | None:  # noqa: ANN401 (what `born` takes)
        """Return the pool that a new pod would be of; None for one that the policy does not touch."""
        pod = self.born(uid, ordinal, **more)
        pool: str | None = pod["metadata"]["labels"].get(POOL)
        if pool is None:
            assert "affinity" not in pod["spec"]
        return pool

    def until_born(self, uid: str, ordinal: int, spec: JsonObject, affinity: object) -> None:
        """Wait until a new pod of a StatefulSet gets this affinity."""
        wait_until(
            lambda: canonical(self.born(uid, ordinal, spec)["spec"].get("affinity")) == canonical(affinity),
            what="the Placement to be heard of",
            deadline_s=DEADLINE_S,
        )

    def until_placed(self, uid: str, **more: Any) -> None:  # noqa: ANN401 (what `born` takes)
        """Wait until the policy has heard of a StatefulSet: it follows Placements by a watch."""

        def is_placed() -> bool:
            try:
                return self.pool(uid, **more) is not None
            except ApiError:  # a policy that has not listed the Placements yet refuses
                return False

        wait_until(lambda: steadily(is_placed), what="the Placement to be heard of", deadline_s=DEADLINE_S)


def asks_by(term: Mapping[str, Any]) -> str:
    """Return the label that a node selector term of ours is about."""
    label: str = term["matchExpressions"][0]["key"]
    return label


def in_force(sandbox: Sandbox, failure: str) -> None:
    """Apply the policy, with what is to become of pods that it cannot judge."""
    made = placement_policy(NODES)
    spec: Any = made[0]["spec"]
    spec["failurePolicy"] = failure
    for one in made:
        sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(one))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster of this module's own, for the policy is everybody's."""
    with Sandbox.start(root=tmp_path_factory.mktemp("placement")) as sandbox:
        sandbox.kubectl("apply", "-f", str(bundled_path("manifests/crd.yaml")))
        crds = ("crd/splits.splitter.io", "crd/placements.splitter.io")
        sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *crds)
        in_force(sandbox, "Fail")
        yield Cluster(sandbox)


@pytest.fixture
def cluster(whole: Cluster) -> Cluster:
    """Return the cluster, in a fresh namespace."""
    whole.enter()
    return whole


@pytest.fixture
def placed(cluster: Cluster) -> str:
    """Return the UID of a StatefulSet whose ordinals 0 and 2 are to be on on-demand."""
    uid = cluster.statefulset()
    cluster.place(uid, [0, 2])
    cluster.until_placed(uid)
    return uid


OWN_AFFINITIES: dict[str, JsonObject] = {
    "none": {},
    "of pods only": {"podAntiAffinity": {PREFERRED: []}},
    "one term": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [SSD]}]}}},
    "several terms": {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [SSD, ZONE_A]},
                    {"matchExpressions": [SSD], "matchFields": [NAME]},
                    {"matchFields": [NAME]},
                ]
            }
        }
    },
    "one empty term": {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, {"matchExpressions": [SSD]}]}},
    },
    "empty terms only": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}},
    "wishes": {
        "nodeAffinity": {PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [SSD]}}]},
        "podAffinity": {
            REQUIRED: [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        },
    },
    "both": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]},
            PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [SSD]}}],
        },
    },
}


def canonical(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Return JSON with the lists that have no order sorted, and empty things left out."""
    if isinstance(value, Mapping):
        by_name = {key: canonical(one) for key, one in value.items()}
        return {key: one for key, one in by_name.items() if one not in ({}, [], None)}
    if isinstance(value, list):
        return sorted((canonical(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


class TestAffinity:
    """The pod gets what the templates give a twin's pod, beside all that its user asks for."""

    @pytest.mark.parametrize("own", OWN_AFFINITIES)
    def test_on_demand(self, cluster: Cluster, placed: str, own: str) -> None:
        """An ordinal of the set must not stand on spot, within each of the user's own terms."""
        spec = {"affinity": OWN_AFFINITIES[own]} if OWN_AFFINITIES[own] else {}
        pod = cluster.born(placed, 2, spec)
        wanted = require_node_affinity(spec, NODES.on_demand_terms)
        assert canonical(pod["spec"]["affinity"]) == canonical(wanted["affinity"])
        assert pod["metadata"]["labels"][POOL] == "on-demand"
        assert all(one["key"].startswith("node.kubernetes.io/") for one in pod["spec"]["tolerations"])

    @pytest.mark.parametrize("own", OWN_AFFINITIES)
    def test_spot(self, cluster: Cluster, placed: str, own: str) -> None:
        """Any other prefers spot with the highest weight, and keeps what its user requires."""
        spec = {"affinity": OWN_AFFINITIES[own]} if OWN_AFFINITIES[own] else {}
        pod = cluster.born(placed, 1, spec)
        wanted = prefer_node_affinity(spec, NODES.spot_terms)
        assert canonical(pod["spec"]["affinity"]) == canonical(wanted["affinity"])
        assert pod["metadata"]["labels"][POOL] == "spot"

    @pytest.mark.parametrize("own", OWN_AFFINITIES)
    def test_spot_nodes_that_were_seen(self, cluster: Cluster, placed: str, own: str) -> None:
        """Only they are asked for; what must not be stood on is the same."""
        spec = {"affinity": OWN_AFFINITIES[own]} if OWN_AFFINITIES[own] else {}
        cluster.place(placed, [0, 2], spot_labels=[GKE, "nobody.example.com/knows", KARPENTER])
        wanted = prefer_node_affinity(
            spec, [term for term in NODES.spot_terms if asks_by(term) in {GKE, KARPENTER}]
        )
        cluster.until_born(placed, 1, spec, wanted["affinity"])
        kept_away = require_node_affinity(spec, NODES.on_demand_terms)
        assert canonical(cluster.born(placed, 2, spec)["spec"]["affinity"]) == canonical(
            kept_away["affinity"]
        )

    def test_labels_that_the_policy_does_not_know(self, cluster: Cluster, placed: str) -> None:
        """They are none: it asks for everything that it knows."""
        cluster.place(placed, [0, 2], spot_labels=[KARPENTER])
        few = prefer_node_affinity({}, [term for term in NODES.spot_terms if asks_by(term) == KARPENTER])
        cluster.until_born(placed, 1, {}, few["affinity"])
        cluster.place(placed, [0, 2], spot_labels=["nobody.example.com/knows"])
        cluster.until_born(placed, 1, {}, prefer_node_affinity({}, NODES.spot_terms)["affinity"])

    @pytest.mark.parametrize(
        "own",
        [
            [],
            [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}],
            [dict(one) for one in NODES.spot_tolerations[:2]],
            [{"operator": "Exists"}],
        ],
    )
    def test_tolerations(self, cluster: Cluster, placed: str, own: list[JsonObject]) -> None:
        """Spot's taints are tolerated beside what the user tolerates, each once."""
        untouched = cluster.born("nobody", 1, {"tolerations": own})["spec"].get("tolerations", [])
        wanted = add_tolerations({"tolerations": untouched}, NODES.spot_tolerations)["tolerations"]
        assert cluster.born(placed, 1, {"tolerations": own})["spec"]["tolerations"] == wanted

    @pytest.mark.parametrize("ordinal", [0, 1])
    def test_again(self, cluster: Cluster, placed: str, ordinal: int) -> None:
        """A pod that has been placed already is left as it is."""
        once = cluster.born(placed, ordinal)
        again = cluster.born(placed, ordinal, once["spec"], labels=once["metadata"]["labels"])
        assert again["spec"] == once["spec"]

    def test_nothing_else_is_changed(self, cluster: Cluster, placed: str) -> None:
        """But for affinity, tolerations and the label, it is the pod that the StatefulSet made."""
        bare = {"automountServiceAccountToken": False}  # whose volume has a random name
        before, after = cluster.born("nobody", 1, bare), cluster.born(placed, 1, bare)
        for pod in (before, after):
            for field in ("affinity", "tolerations"):
                pod["spec"].pop(field, None)
            pod["metadata"]["labels"].pop(POOL, None)
            for field in ("uid", "creationTimestamp", "ownerReferences", "managedFields"):
                pod["metadata"].pop(field, None)
        assert before == after


class TestOrdinals:
    def test_the_set_decides(self, cluster: Cluster, placed: str) -> None:
        """Those of the set are on-demand; all others are spot, also those that it was never told of."""
        pools = [cluster.pool(placed, ordinal) for ordinal in (0, 1, 2, 3, 10, 2000)]
        assert pools == ["on-demand", "spot", "on-demand", "spot", "spot", "spot"]

    def test_empty_set(self, cluster: Cluster) -> None:
        """With nobody in the set, all are spot."""
        uid = cluster.statefulset()
        cluster.place(uid, [])
        cluster.until_placed(uid)
        assert cluster.pool(uid, 0) == "spot"

    def test_changed_set(self, cluster: Cluster, placed: str) -> None:
        """The next pod of an ordinal that entered the set is on-demand; without a set nobody is placed."""
        cluster.place(placed, [0, 1, 2])
        wait_until(lambda: cluster.pool(placed, 1) == "on-demand", what="the set", deadline_s=DEADLINE_S)
        cluster.place(placed, None)
        wait_until(lambda: cluster.pool(placed, 1) is None, what="the end of the set", deadline_s=DEADLINE_S)
        assert cluster.pool(placed, 0) is None

    def test_placement_gone(self, cluster: Cluster, placed: str) -> None:
        """Without the Placement, pods are born as they always were."""
        cluster.sandbox.kubectl("delete", "placement", "splitter-placement", "-n", cluster.namespace)
        wait_until(
            lambda: cluster.pool(placed) is None, what="the end of the Placement", deadline_s=DEADLINE_S
        )

    def test_an_ordinal_that_is_none(self, cluster: Cluster, placed: str) -> None:
        """A pod that cannot be judged is born unsplit, as installed; the tests' own policy refuses it."""
        with pytest.raises(ApiError, match="splitter-placement"):
            cluster.born(placed, "first")
        in_force(cluster.sandbox, "Ignore")
        try:

            def reconciles() -> bool:
                try:
                    return POOL not in cluster.born(placed, "first")["metadata"]["labels"]
                except ApiError:
                    return False

            wait_until(reconciles, what="the pod to pass", deadline_s=DEADLINE_S)
        finally:
            in_force(cluster.sandbox, "Fail")


class TestTarget:
    """Exactly the pods of the StatefulSets that the Placement names."""

    def test_two_in_one_namespace(self, cluster: Cluster) -> None:
        """Each by its own set, however alike their names are."""
        uids = {name: cluster.statefulset(name) for name in ("db", "db-2", "cache")}
        cluster.place(uids["db"], [0], "db")
        cluster.place(uids["db-2"], [1], "db-2")
        for name in ("db", "db-2"):
            cluster.until_placed(uids[name], name=name)
        pools = {name: [cluster.pool(uid, n, name=name) for n in (0, 1)] for name, uid in uids.items()}
        assert pools == {"db": ["on-demand", "spot"], "db-2": ["spot", "on-demand"], "cache": [None, None]}

    def test_a_namesake(self, cluster: Cluster, placed: str) -> None:
        """A StatefulSet of the same name, created anew, is another one, until the Placement says so."""
        assert cluster.pool(placed) == "on-demand"
        assert cluster.pool("another-uid") is None

    def test_other_kinds(self, cluster: Cluster, placed: str) -> None:
        """Not what another controller makes, even if it carries the labels."""
        assert cluster.pool(placed, kind="ReplicaSet") is None

    def test_other_placements(self, cluster: Cluster, placed: str) -> None:
        """A copy under another name says nothing."""
        other = cluster.statefulset("other")
        body = placement(cluster.namespace, {other: ("other", runs([0]))})
        body["metadata"] = {"name": "copy", "namespace": cluster.namespace}
        cluster.sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        cluster.place(placed, [1])
        wait_until(lambda: cluster.pool(placed) == "spot", what="the set", deadline_s=DEADLINE_S)
        assert cluster.pool(other, name="other") is None

    def test_other_namespaces(self, cluster: Cluster, placed: str) -> None:
        """Not a pod of another namespace."""
        cluster.enter()
        assert cluster.pool(placed) is None

    def test_plain_pods(self, cluster: Cluster, placed: str) -> None:
        """Not a pod without an ordinal."""
        assert placed
        body = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        pod = cluster.sandbox.api.request("POST", cluster.pods, body=body, query={"dryRun": "All"})
        assert "affinity" not in pod["spec"]
        assert cluster.sandbox.api.list(cluster.pods) == []


def nodes_of(preset: Preset) -> Iterator[tuple[str, dict[str, str], list[JsonObject]]]:
    """Yield the pool, labels and taints of a spot and an on-demand node as a provider makes them."""
    taints = [
        {"key": taint.key, "value": taint.value or "true", "effect": taint.effect}
        for taint in preset.tolerated
    ]
    for pool, marks in (("spot", preset.spot), ("on-demand", preset.on_demand)):
        mark = next(iter(marks), None)
        labels = {mark.key: next(iter(mark.values), "true")} if mark else {}
        if pool == "on-demand" or labels:
            yield pool, labels, taints if pool == "spot" else []


class TestNodes:
    """Real StatefulSets, scheduled on nodes as each provider labels and taints them."""

    def test_every_provider(self, cluster: Cluster) -> None:
        """Ordinal 0 stands on an on-demand node, 1 on a spot node, and on on-demand when spot is gone."""
        sandbox, providers = cluster.sandbox, [one for one in PRESETS if one.spot]
        expected, spot_nodes = {}, []
        for preset in providers:
            for pool, labels, taints in nodes_of(preset):
                seen = classify(labels, [Taint(one["key"], one["value"]) for one in taints])
                assert (seen is CapacityClass.SPOT) == (pool == "spot")
                [node] = add_node(sandbox, preset.name, labels, taints)
                expected[f"{preset.name}-{0 if pool == 'on-demand' else 1}"] = node
                spot_nodes += [node] if pool == "spot" else []
            uid = cluster.statefulset(preset.name)
            cluster.place(uid, [0], preset.name)
            cluster.until_placed(uid, name=preset.name)
        for preset in providers:
            scale(cluster, preset)
        wait_until(lambda: stand(cluster) == expected, what="the pods", deadline_s=DEADLINE_S)
        sandbox.fleet.kill(spot_nodes)
        again = {name: expected[f"{name[:-1]}0"] for name in expected}

        def stand_again() -> bool:
            where = stand(cluster)
            for name, node in where.items():
                if node in spot_nodes:  # the dead; and a scheduler that has not heard yet binds others there
                    sandbox.api.delete(f"{cluster.pods}/{name}", grace_period_s=0, missing_ok=True)
            return where == again

        wait_until(stand_again, what="all pods on on-demand", deadline_s=DEADLINE_S)


def add_node(
    sandbox: Sandbox, provider: str, labels: Mapping[str, str], taints: list[JsonObject]
) -> tuple[str, ...]:
    """Add a machine of a provider, without the label that machines of the sandbox have."""
    mine = {**labels, PROVIDER: provider}
    names = sandbox.fleet.add("on-demand", 1, labels=mine, taints=taints)
    if "karpenter.sh/capacity-type" not in labels:
        for name in names:
            unlabelled = {"metadata": {"labels": {"karpenter.sh/capacity-type": None}}}
            sandbox.api.patch(f"/api/v1/nodes/{name}", unlabelled)
    return names


def scale(cluster: Cluster, preset: Preset) -> None:
    """Give a StatefulSet two replicas, on its provider's nodes and off everybody else's."""
    spec = {"replicas": 2, "template": {"spec": {"nodeSelector": {PROVIDER: preset.name}}}}
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets/{preset.name}"
    cluster.sandbox.api.patch(path, {"spec": spec})


def stand(cluster: Cluster) -> dict[str, str]:
    """Return the node of each pod that is up."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in cluster.sandbox.api.list(cluster.pods)
        if "deletionTimestamp" not in pod["metadata"]
    }
