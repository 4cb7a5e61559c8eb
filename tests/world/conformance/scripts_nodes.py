"""Scheduler, taints, kubelets that fall silent, and nodes that go."""

from world.conformance import trace
from world.conformance.objects import BROKEN, CRASHING, no_execute, of_kind, pod, tolerates, workload
from world.conformance.scene import Scene, script

SLOW_S = 150.0  # pods of a node that is gone are collected within a minute


def unscheduled(scene: Scene) -> list[str]:
    """Return why pods have no node."""
    return sorted(
        each["reason"]
        for raw in scene.pods()
        for each in raw.get("status", {}).get("conditions") or []
        if each["type"] == "PodScheduled" and each["status"] == "False"
    )


@script
def pod_that_fits_nowhere(scene: Scene) -> None:
    """A pod that fits no node is Pending, with PodScheduled False, Unschedulable."""
    scene.home = "nowhere"
    scene.create(pod("web", scene.template()))
    scene.until("it to be said", lambda: unscheduled(scene) != [])
    scene.note("why", unscheduled(scene))
    scene.note("phase", scene.get("Pod", "web")["status"]["phase"])


@script
def new_node_takes_pending_pods(scene: Scene) -> None:
    """Pods that wait for room are bound when a node with room comes."""
    scene.nodes(1, pods=1)
    scene.create(workload("ReplicaSet", "web", 2, scene.template()))
    scene.until("one to serve, one to wait", lambda: len(scene.ready()) == 1 and len(unscheduled(scene)) == 1)
    scene.quiet()
    scene.nodes(1, pods=1)
    scene.at_rest("ReplicaSet", "web")
    scene.note("nodes", len({raw["spec"]["nodeName"] for raw in scene.pods()}))


@script
def taint_no_schedule(scene: Scene) -> None:
    """A taint NoSchedule keeps new pods away and leaves those that are there."""
    (node,) = scene.nodes(1)
    scene.replicaset(1)
    scene.taint(node, [no_execute("example.com/kept", "NoSchedule")])
    scene.noticed()
    scene.scale("ReplicaSet", "web", 2)
    scene.until("the second to wait", lambda: unscheduled(scene) == ["Unschedulable"])
    scene.quiet()
    scene.note("ready", len(scene.ready()))
    borne = tolerates("example.com/kept", effect="NoSchedule")
    scene.create(pod("tolerant", scene.template(app="other", spec={"tolerations": borne})))
    scene.until("who bears it to serve", lambda: "tolerant" in scene.ready())


@script
def cordon(scene: Scene) -> None:
    """A cordoned node keeps its pods and gets no more, and gets them again when it is uncordoned."""
    (node,) = scene.nodes(1)
    scene.replicaset(1)
    scene.merge("Node", node, {"spec": {"unschedulable": True}})
    scene.noticed()
    scene.scale("ReplicaSet", "web", 2)
    scene.until("the second to wait", lambda: unscheduled(scene) == ["Unschedulable"])
    scene.quiet()
    scene.note("ready", len(scene.ready()))
    scene.merge("Node", node, {"spec": {"unschedulable": None}})
    scene.at_rest("ReplicaSet", "web")


@script
def taint_no_execute(scene: Scene) -> None:
    """A taint NoExecute ends pods that do not bear it at once, and not those that do."""
    (node,) = scene.nodes(1)
    scene.create(pod("fragile", scene.template()))
    borne = {"tolerations": tolerates("example.com/out")}
    scene.create(pod("tolerant", scene.template(spec=borne)))
    scene.all_ready(2)
    scene.taint(node, [no_execute("example.com/out")])
    scene.gone("Pod", "fragile")
    scene.quiet()
    scene.note("left", scene.ready())


@script
def taint_no_execute_for_seconds(scene: Scene) -> None:
    """With tolerationSeconds a pod bears the taint for so long, and is spared when it goes before."""
    (node,) = scene.nodes(1)
    for name, seconds in (("short", 1), ("long", 20)):
        borne = {"tolerations": tolerates("example.com/out", seconds)}
        scene.create(pod(name, scene.template(spec=borne)))
    scene.all_ready(2)
    scene.taint(node, [no_execute("example.com/out")])
    scene.gone("Pod", "short")
    scene.note("left", scene.ready())
    scene.taint(node, [])
    scene.quiet(22)
    scene.note("left later", scene.ready())


@script
def default_tolerations(scene: Scene) -> None:
    """Pods get tolerations of 300 s for nodes that are not ready or unreachable."""
    scene.create(pod("web", scene.template()))
    given = scene.get("Pod", "web")["spec"]["tolerations"]
    scene.note(
        "tolerations", sorted((each["key"], each["effect"], each["tolerationSeconds"]) for each in given)
    )
    scene.until("it to serve", lambda: scene.ready() == ["web"])


@script
def silent_node(scene: Scene) -> None:
    """A silent node's pods are not ready, are deleted when their toleration ends, and stay Terminating.

    A ReplicaSet replaces them.
    """
    (node,) = scene.nodes(1)
    borne = {"tolerations": tolerates("node.kubernetes.io/unreachable", 2)}
    scene.create(workload("ReplicaSet", "web", 1, scene.template(spec=borne)))
    scene.at_rest("ReplicaSet", "web")
    (lost,) = scene.ready()
    scene.ground.silence(node)
    scene.until("its pod not to be ready", lambda: lost not in scene.ready())
    scene.nodes(1)
    scene.until("it to be replaced", lambda: len(scene.ready()) == 1)
    scene.quiet(2)
    scene.note("the lost one", trace.state(scene.get("Pod", lost)))
    taints = scene.ground.request("GET", f"/api/v1/nodes/{node}")["spec"]["taints"]
    scene.note("taints", sorted((each["key"], each["effect"]) for each in taints))
    scene.note("replicas", scene.every("ReplicaSet")[0]["status"]["replicas"])


@script
def silent_node_of_a_statefulset(scene: Scene) -> None:
    """A member of a StatefulSet on a silent node is not replaced while its pod object is there."""
    (node,) = scene.nodes(1)
    borne = {"tolerations": tolerates("node.kubernetes.io/unreachable", 1)}
    scene.create(workload("StatefulSet", "db", 1, scene.template(spec=borne)))
    scene.at_rest("StatefulSet", "db")
    lost = scene.get("Pod", "db-0")["metadata"]["uid"]
    scene.ground.silence(node)
    scene.nodes(1)
    scene.until("it to be deleted", lambda: trace.is_ending(scene.get("Pod", "db-0")))
    scene.quiet(2)
    scene.note("the same pod", scene.get("Pod", "db-0")["metadata"]["uid"] == lost)
    scene.delete("Pod", "db-0", gracePeriodSeconds=0)
    scene.at_rest("StatefulSet", "db")


@script
def vanished_node(scene: Scene) -> None:
    """Pods of a node that is gone stay Running and Ready until they are collected, 40 s later or more."""
    (node,) = scene.nodes(1)
    scene.create(workload("ReplicaSet", "web", 2, scene.template()))
    scene.at_rest("ReplicaSet", "web")
    lost = scene.ready()
    scene.ground.vanish(node)
    scene.nodes(1)
    scene.ground.elapse(20)
    scene.caught_up()
    scene.note("ready meanwhile", scene.ready() == lost)
    scene.until("them to be collected", lambda: not set(lost) & set(scene.named()), SLOW_S)
    scene.at_rest("ReplicaSet", "web")
    scene.lives_vary()


@script
def pod_of_a_vanished_node_is_deleted(scene: Scene) -> None:
    """A pod of a node that is gone can be deleted by hand with grace 0, and only so."""
    (node,) = scene.nodes(1)
    scene.create(pod("web", scene.template()))
    scene.all_ready(1)
    scene.ground.vanish(node)
    scene.delete("Pod", "web")
    scene.quiet(2)
    scene.note("without", trace.state(scene.get("Pod", "web")))
    scene.delete("Pod", "web", gracePeriodSeconds=0)
    scene.gone("Pod", "web")
    scene.lives_vary()


@script
def required_anti_affinity(scene: Scene) -> None:
    """Required anti-affinity: one pod a node, and the next waits."""
    scene.nodes(2)
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    scene.create(workload("ReplicaSet", "web", 3, scene.template(spec={"affinity": apart})))
    scene.until("two to serve", lambda: len(scene.ready()) == 2 and unscheduled(scene) == ["Unschedulable"])
    scene.quiet()
    scene.note("nodes", len({raw["spec"].get("nodeName") for raw in scene.pods() if trace.is_ready(raw)}))


@script
def topology_spread(scene: Scene) -> None:
    """Topology spread with DoNotSchedule: no more than maxSkew between nodes."""
    scene.nodes(2)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    only = {"topologySpreadConstraints": [spread]}
    scene.create(workload("ReplicaSet", "web", 4, scene.template(spec=only)))
    scene.at_rest("ReplicaSet", "web")
    nodes = [raw["spec"]["nodeName"] for raw in scene.pods()]
    scene.note("on each", sorted(nodes.count(name) for name in set(nodes)))


@script
def required_node_affinity(scene: Scene) -> None:
    """Required node affinity: In, NotIn and Exists of a node's labels."""
    scene.nodes(1)
    (other,) = scene.nodes(1)
    scene.merge("Node", other, {"metadata": {"labels": {"pool": "spot"}}})
    scene.noticed()
    for name, how in (
        ("in", {"operator": "In", "values": ["spot"]}),
        ("absent", {"operator": "DoesNotExist"}),
    ):
        terms = [{"matchExpressions": [{"key": "pool", **how}]}]
        needs = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
        scene.create(pod(name, scene.template(spec={"affinity": needs})))
    scene.all_ready(2)
    scene.note("on it", [raw["spec"]["nodeName"] == other for raw in scene.pods()])


def _create_when_known(scene: Scene, priority: str) -> None:
    """Create a pod of a priority; admission hears of a class by a watch."""
    made = pod("high", scene.template(spec={"priorityClassName": priority}))
    asked = {"dryRun": "All"}
    scene.until(
        "the class to be known", lambda: scene.refusal(lambda: scene.create(made, **asked)) == "accepted"
    )
    scene.create(made)


@script
def preemption(scene: Scene) -> None:
    """A pod of higher priority takes the place of one of lower priority, which is deleted."""
    scene.nodes(1, pods=1)
    scene.create(pod("low", scene.template()))
    scene.all_ready(1)
    high = f"high-{scene.namespace}"
    scene.create(of_kind("PriorityClass", high, value=1000))
    _create_when_known(scene, high)
    scene.gone("Pod", "low")
    scene.all_ready(1)
    scene.note("left", scene.ready())
    scene.note("priority", scene.get("Pod", "high")["spec"]["priority"])
    scene.ground.request("DELETE", scene.path("PriorityClass", high))


@script
def no_preemption(scene: Scene) -> None:
    """With preemptionPolicy Never a pod of higher priority waits."""
    scene.nodes(1, pods=1)
    scene.create(pod("low", scene.template()))
    scene.all_ready(1)
    meek = f"meek-{scene.namespace}"
    scene.create({**of_kind("PriorityClass", meek, value=1000), "preemptionPolicy": "Never"})
    _create_when_known(scene, meek)
    scene.until("it to wait", lambda: unscheduled(scene) == ["Unschedulable"])
    scene.quiet()
    scene.note("ready", scene.ready())
    scene.ground.request("DELETE", scene.path("PriorityClass", meek))


@script
def room_by_requests(scene: Scene) -> None:
    """Requests count: a pod that asks for more than a node has left waits."""
    (node,) = scene.nodes(1)
    scene.note(
        "cpu of a node", scene.ground.request("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]
    )
    for name, cpu in (("large", "7500m"), ("small", "400m"), ("middle", "1")):
        made = pod(name, scene.template())
        container = {**made["spec"]["containers"][0], "resources": {"requests": {"cpu": cpu}}}
        scene.create({**made, "spec": {**made["spec"], "containers": [container]}})
        _placed_or_waits(scene, name)
    scene.note("ready", scene.ready())


def _placed_or_waits(scene: Scene, name: str) -> None:
    scene.until("it to be placed or to wait", lambda: name in scene.ready() or unscheduled(scene) != [])


@script
def image_is_never_pulled(scene: Scene) -> None:
    """A pod whose image is never pulled is Pending with ErrImagePull or ImagePullBackOff, for ever."""
    scene.create(pod("web", scene.template(image=BROKEN)))
    scene.until("it to be missed", lambda: bool(_waits_for(scene)))
    scene.note("why", _waits_for(scene) & {"ErrImagePull", "ImagePullBackOff"} != set())
    scene.note("phase", scene.get("Pod", "web")["status"]["phase"])


@script
def container_crashes(scene: Scene) -> None:
    """A container that ends again and again: the pod is Running, not ready, in CrashLoopBackOff."""
    scene.create(pod("web", scene.template(image=CRASHING)))
    scene.until("it to crash", lambda: _waits_for(scene) == {"CrashLoopBackOff"})
    scene.note("phase", scene.get("Pod", "web")["status"]["phase"])

    def restarts() -> int:
        statuses = scene.every("Pod")[0]["status"]["containerStatuses"]
        return int(statuses[0]["restartCount"])

    scene.until("it to be started again", lambda: restarts() > 0)


def _waits_for(scene: Scene) -> set[str]:
    statuses = [each for raw in scene.pods() for each in raw.get("status", {}).get("containerStatuses") or []]
    return {each["state"]["waiting"]["reason"] for each in statuses if "waiting" in each.get("state", {})}


@script
def pod_takes_no_node_twice(scene: Scene) -> None:
    """A pod that is bound stays on its node, also when the node no longer fits it."""
    (node,) = scene.nodes(1)
    scene.create(pod("web", scene.template()))
    scene.all_ready(1)
    scene.merge("Node", node, {"metadata": {"labels": {"conformance": "other"}}})
    scene.quiet()
    scene.note("node", scene.get("Pod", "web")["spec"]["nodeName"] == node)


@script
def node_comes_back(scene: Scene) -> None:
    """Pods of a silent node that bear it are not ready, and are ready again when it is back."""
    (node,) = scene.nodes(1)
    scene.create(workload("ReplicaSet", "web", 1, scene.template()))
    scene.at_rest("ReplicaSet", "web")
    pods = scene.named()
    scene.ground.silence(node)
    scene.until("its pod not to be ready", lambda: scene.ready() == [])
    scene.quiet()
    scene.note("replicas", scene.every("ReplicaSet")[0]["status"].get("readyReplicas", 0))
    scene.ground.hear(node)
    scene.at_rest("ReplicaSet", "web")
    scene.note("the same pods", scene.ready() == pods)
    taints = scene.ground.request("GET", f"/api/v1/nodes/{node}")["spec"].get("taints", [])
    scene.note("taints", taints)
