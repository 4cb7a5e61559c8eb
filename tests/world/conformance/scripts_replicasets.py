"""What the ReplicaSet controller does: its own pods, those it finds, and which it deletes first."""

from world.conformance import trace
from world.conformance.objects import BROKEN, of_kind, owned_by, pod, reference_to, workload
from world.conformance.scene import Raw, Scene, script

COST = "controller.kubernetes.io/pod-deletion-cost"


def scaled_down(scene: Scene, replicas: int) -> None:
    """Scale the ReplicaSet down and wait until the pods are gone."""
    scene.scale("ReplicaSet", "web", replicas)
    scene.until("the pods to be gone", lambda: len(scene.every("Pod")) == replicas == len(scene.pods()))


@script
def deletion_by_cost(scene: Scene) -> None:
    """Of pods that are ready the one with the lowest pod-deletion-cost is deleted first."""
    scene.replicaset(3)
    cheap, _, dear = scene.ready()
    scene.merge("Pod", cheap, {"metadata": {"annotations": {COST: "-5"}}})
    scene.merge("Pod", dear, {"metadata": {"annotations": {COST: "5"}}})
    scene.noticed()
    scaled_down(scene, 2)
    scene.note("the cheap one went", cheap not in scene.named())
    scaled_down(scene, 1)
    scene.note("the dear one stays", scene.named() == [dear])


@script
def deletion_of_what_is_not_ready_first(scene: Scene) -> None:
    """A pod that is not ready is deleted before a ready one, whatever its deletion cost."""
    scene.replicaset(2)
    old = scene.ready()
    scene.merge("ReplicaSet", "web", {"spec": {"template": {"metadata": {"annotations": {COST: "9"}}}}})
    scene.set_image("ReplicaSet", "web", BROKEN)
    scene.scale("ReplicaSet", "web", 3)
    scene.until("the new one to wait", lambda: len(scene.pods(BROKEN)) == 1)
    scene.until(
        "its image to be missed",
        lambda: bool(scene.pods(BROKEN)[0].get("status", {}).get("containerStatuses")),
    )
    scaled_down(scene, 2)
    scene.note("the ready ones stay", scene.named() == old)


@script
def deletion_of_what_has_no_node_first(scene: Scene) -> None:
    """A pod without a node is deleted before one that has a node and is not ready, and is gone at once."""
    scene.nodes(1, pods=1)
    scene.create(workload("ReplicaSet", "web", 1, scene.template(image=BROKEN)))
    scene.until(
        "the first to be bound", lambda: [bool(p["spec"].get("nodeName")) for p in scene.pods()] == [True]
    )
    bound = scene.named()
    scene.scale("ReplicaSet", "web", 2)
    scene.until("the second to be there", lambda: len(scene.pods()) == 2)
    scaled_down(scene, 1)
    scene.note("the bound one stays", scene.named() == bound)


@script
def deletion_of_the_younger_first(scene: Scene) -> None:
    """Of pods that are ready for very different times the younger one is deleted first."""
    scene.replicaset(1)
    old = scene.ready()
    scene.ground.elapse(15)
    scene.scale("ReplicaSet", "web", 3)
    scene.all_ready(3)
    scaled_down(scene, 1)
    scene.note("the old one stays", scene.named() == old)


@script
def deletion_where_most_are_first(scene: Scene) -> None:
    """Of pods alike of a Deployment one is deleted first whose node has more of them."""
    (full,) = scene.nodes(1, pods=2)
    scene.nodes(1, pods=1)
    scene.deployment(3)
    (alone,) = (raw["metadata"]["name"] for raw in scene.pods() if raw["spec"]["nodeName"] != full)
    scene.scale("Deployment", "web", 2)
    scene.at_rest("Deployment", "web")
    scene.note("the one that is alone stays", alone in scene.ready())


@script
def adoption_of_a_bare_pod(scene: Scene) -> None:
    """A ReplicaSet adopts a bare pod that it selects, instead of making one."""
    scene.create(pod("bare", scene.template()))
    scene.until("it to serve", lambda: scene.ready() == ["bare"])
    scene.replicaset(2)
    scene.note("owner", trace.controller(scene.get("Pod", "bare")))
    scene.note("pods", len(scene.pods()))
    reference = scene.get("Pod", "bare")["metadata"]["ownerReferences"][0]
    scene.note("blocks", [reference["controller"], reference["blockOwnerDeletion"]])


@script
def surplus_after_adoption(scene: Scene) -> None:
    """A pod adopted beyond the number is surplus, and one is deleted: with equal cost the younger."""
    scene.replicaset(1)
    old = scene.ready()
    scene.ground.elapse(10)
    scene.create(pod("bare", scene.template()))
    scene.until("one to be gone", lambda: any(each.deleted for each in scene.past()))
    scene.note("the old one stays", scene.named() == old)
    scene.lives_vary()  # it may be deleted before or after it became ready


@script
def no_adoption_of_what_is_owned(scene: Scene) -> None:
    """A bare pod that is not selected, or is owned, is left alone."""
    config = scene.create(of_kind("ConfigMap", "owner"))
    config |= {"apiVersion": "v1", "kind": "ConfigMap"}
    scene.create(owned_by(pod("owned", scene.template()), config))
    scene.create(pod("other", scene.template(app="other")))
    scene.replicaset(1)
    scene.note("owner", trace.controller(scene.get("Pod", "owned")))
    scene.note("other", trace.controller(scene.get("Pod", "other")))


@script
def adoption_beside_another_owner(scene: Scene) -> None:
    """A bare pod with an owner that is no controller is adopted, and has two owners."""
    config = scene.create(of_kind("ConfigMap", "owner"))
    config |= {"apiVersion": "v1", "kind": "ConfigMap"}
    scene.create(owned_by(pod("bare", scene.template()), config, controller=False))
    scene.until("it to serve", lambda: scene.ready() == ["bare"])
    scene.replicaset(1)
    owners = scene.get("Pod", "bare")["metadata"]["ownerReferences"]
    scene.note("owners", sorted(each["kind"] for each in owners))


@script
def release_by_a_label(scene: Scene) -> None:
    """A pod whose label changes is released, keeps running, and is replaced."""
    scene.replicaset(2)
    taken = scene.ready()[0]
    scene.merge("Pod", taken, {"metadata": {"labels": {"app": "debug"}}})
    scene.until("three to serve", lambda: len(scene.ready()) == 3)
    scene.note("owners", sorted(trace.controller(each) for each in scene.pods()))
    scene.merge("Pod", taken, {"metadata": {"labels": {"app": "web"}}})
    scene.all_ready(2)
    scene.lives_vary()


@script
def owner_taken_off(scene: Scene) -> None:
    """A pod whose owner is taken off is adopted again by the ReplicaSet that selects it."""
    scene.replicaset(1)
    (name,) = scene.ready()
    scene.merge("Pod", name, {"metadata": {"ownerReferences": None}})
    scene.until("it to be adopted", lambda: trace.controller(scene.get("Pod", name)) == "ReplicaSet/web")
    scene.quiet()
    scene.note("pods", scene.named() == [name])
    scene.lives_vary()  # where the adoption is late, another pod is made and taken back


@script
def readoption_by_a_second_replicaset(scene: Scene) -> None:
    """Pods without an owner go to one of two ReplicaSets that select them; none is shared or lost."""
    scene.replicaset(3)
    pods = scene.ready()
    scene.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    scene.gone("ReplicaSet", "web")
    scene.note("owners", sorted({trace.controller(each) for each in scene.pods()}))
    scene.replicaset(3, name="second", image="web:2")
    scene.note("the same pods", scene.ready() == pods)
    scene.note("new owners", sorted({trace.controller(each) for each in scene.pods()}))


@script
def idle_replicaset_ends_orphans(scene: Scene) -> None:
    """A ReplicaSet of 0 replicas adopts what it selects, and deletes it."""
    scene.replicaset(2)
    scene.create(workload("ReplicaSet", "idle", 0, scene.template(image="web:2")))
    scene.quiet()
    scene.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    scene.until("all to be gone", lambda: not scene.every("Pod"))
    scene.note("sizes", scene.sizes())


@script
def idle_deployment_spares_orphans_of_another_hash(scene: Scene) -> None:
    """A Deployment at 0 replicas ends, by its ReplicaSet, the orphans that the ReplicaSet selects only."""
    scene.create(workload("Deployment", "green", 0, scene.template(image="web:2")))
    scene.until("its ReplicaSet to be there", lambda: len(scene.every("ReplicaSet")) == 1)
    scene.create(pod("bare", scene.template()))
    scene.until("it to serve", lambda: scene.ready() == ["bare"])
    scene.quiet()
    hashed = scene.every("ReplicaSet")[0]["metadata"]["labels"]["pod-template-hash"]
    scene.merge("Pod", "bare", {"metadata": {"labels": {"pod-template-hash": hashed}}})
    scene.gone("Pod", "bare")


@script
def failed_pods_are_replaced_and_stay(scene: Scene) -> None:
    """A Failed pod is not counted and not adopted; it is replaced, and stays as it is."""
    scene.replicaset(1)
    (name,) = scene.ready()
    failed = {"status": {"phase": "Failed", "reason": "Terminated", "message": "node shutdown"}}
    scene.merge("Pod", name, failed, "status")
    scene.until("another to serve", lambda: [n for n in scene.ready() if n != name] != [])
    scene.until("it to be counted", lambda: scene.every("ReplicaSet")[0]["status"].get("readyReplicas") == 1)
    scene.note("owner", trace.controller(scene.get("Pod", name)))
    scene.note("size", scene.every("ReplicaSet")[0]["status"]["replicas"])
    scene.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    scene.gone("ReplicaSet", "web")
    scene.note("owners after orphaning", sorted({trace.controller(each) for each in scene.pods()}))
    scene.replicaset(1, name="second")
    scene.note("owners later", sorted((trace.state(p), trace.controller(p)) for p in scene.pods()))
    scene.lives_vary()


@script
def ending_pods_do_not_count(scene: Scene) -> None:
    """A pod that is being deleted does not count: its replacement comes while it still ends."""
    scene.replicaset(1, ends_after="8s")
    (name,) = scene.ready()
    scene.delete("Pod", name)
    scene.until(
        "another to serve while it ends", lambda: len(scene.ready()) == 1 and len(scene.every("Pod")) == 2
    )
    scene.gone("Pod", name)
    scene.at_rest("ReplicaSet", "web")


@script
def daemonset_adopts_what_it_selects(scene: Scene) -> None:
    """A DaemonSet with a wider selector adopts bare pods and keeps one a node."""
    scene.nodes(1)
    scene.create(workload("DaemonSet", "agent", None, scene.template(image="agent:1")))
    scene.at_rest("DaemonSet", "agent")
    agent = scene.ready()
    scene.ground.elapse(1)  # creation is written in whole seconds
    scene.create(pod("bare", scene.template()))
    scene.until("one of them to be gone", lambda: any(each.deleted for each in scene.past()))
    scene.at_rest("DaemonSet", "agent")
    scene.note("the older one stays", scene.named() == agent)
    scene.lives_vary()


@script
def replicaset_template_is_for_new_pods(scene: Scene) -> None:
    """A template that changes in a ReplicaSet changes no pod that is there."""
    scene.replicaset(1)
    old = scene.ready()
    scene.set_image("ReplicaSet", "web", "web:2")
    scene.quiet()
    scene.scale("ReplicaSet", "web", 2)
    scene.at_rest("ReplicaSet", "web")
    scene.note("images", sorted(trace.image(each) for each in scene.pods()))
    scene.note("the old one stays", set(old) <= set(scene.ready()))


@script
def second_controller_is_refused(scene: Scene) -> None:
    """An object has one controller: a second one is refused."""
    scene.replicaset(1)
    scene.replicaset(0, name="second", app="web")
    (name,) = scene.ready()
    owners = [reference_to(_whole(scene, each)) for each in ("web", "second")]
    asked = {"metadata": {"ownerReferences": owners}}
    scene.note("refused", scene.refusal(lambda: scene.merge("Pod", name, asked)))


def _whole(scene: Scene, name: str) -> Raw:
    return {**scene.get("ReplicaSet", name), "apiVersion": "apps/v1", "kind": "ReplicaSet"}
