"""Owner references, and what the garbage collector does with them."""

from world.conformance import trace
from world.conformance.ground import Policy
from world.conformance.objects import of_kind, owned_by, pod, reference_to, workload
from world.conformance.scene import Raw, Scene, script


def owner(scene: Scene, name: str = "owner") -> Raw:
    """Create something that may own."""
    return {**scene.create(of_kind("ConfigMap", name)), "apiVersion": "v1", "kind": "ConfigMap"}


def orphan_finalizers(raw: Raw) -> list[str]:
    """Return the finalizers."""
    return list(raw["metadata"].get("finalizers") or [])


@script
def deletion_in_the_background(scene: Scene) -> None:
    """Deletion in the background: the owner goes at once, its ReplicaSets and pods after it."""
    scene.deployment(2)
    scene.delete("Deployment", "web", propagationPolicy="Background")
    scene.note("the Deployment", scene.refusal(lambda: scene.get("Deployment", "web")))
    scene.until("all to be gone", lambda: not (scene.every("Pod") or scene.every("ReplicaSet")))


@script
def deletion_by_default(scene: Scene) -> None:
    """Without a policy asked for, workloads of apps/v1 are deleted in the background."""
    scene.deployment(1)
    scene.delete("Deployment", "web")
    scene.until("all to be gone", lambda: not (scene.every("Pod") or scene.every("ReplicaSet")))


@script
def deletion_with_orphans(scene: Scene) -> None:
    """Deletion with orphans: dependents lose the reference, and only then the owner goes."""
    scene.deployment(2)
    pods = scene.ready()
    scene.delete("Deployment", "web", propagationPolicy="Orphan")
    scene.gone("Deployment", "web")
    seen = scene.past("Deployment")
    scene.note("finalizers meanwhile", orphan_finalizers(next(e.raw for e in seen if trace.is_ending(e.raw))))
    scene.quiet()
    (left,) = scene.every("ReplicaSet")
    scene.note("references", left["metadata"].get("ownerReferences"))
    scene.note("the same pods", pods == scene.ready())
    scene.note(
        "owner of the pods", trace.controller(scene.pods()[0]) == f"ReplicaSet/{left['metadata']['name']}"
    )


@script
def deletion_of_a_replicaset_with_orphans(scene: Scene) -> None:
    """Orphans of a ReplicaSet keep serving and have no owner."""
    scene.replicaset(2)
    scene.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    scene.gone("ReplicaSet", "web")
    scene.quiet()
    scene.note("owners", [each["metadata"].get("ownerReferences") for each in scene.pods()])


@script
def replicaset_of_a_deployment_is_orphaned(scene: Scene) -> None:
    """A Deployment whose ReplicaSet is deleted with orphans makes another one, which adopts the pods."""
    scene.deployment(2)
    pods = scene.ready()
    (name,) = scene.named("ReplicaSet")
    first = scene.get("ReplicaSet", name)["metadata"]["uid"]
    scene.delete("ReplicaSet", name, propagationPolicy="Orphan")
    scene.until(
        "another to be made",
        lambda: [raw for raw in scene.every("ReplicaSet") if raw["metadata"]["uid"] != first] != [],
    )
    scene.at_rest("Deployment", "web")
    scene.note("the pods that serve stay", set(scene.ready()) == set(pods))
    scene.note("the same name", [name] == scene.named("ReplicaSet"))
    scene.lives_vary()  # where an orphan is seen late, another pod is made and taken back


@script
def deletion_in_the_foreground(scene: Scene) -> None:
    """Deletion in the foreground: the owner stays, marked, until what blocks its deletion is gone."""
    scene.replicaset(2, ends_after="5s")
    scene.delete("ReplicaSet", "web", propagationPolicy="Foreground")
    web = scene.get("ReplicaSet", "web")
    scene.note("is marked", [trace.is_ending(web), orphan_finalizers(web)])
    scene.gone("ReplicaSet", "web")
    scene.note("pods left", len(scene.every("Pod")))


@script
def replicaset_in_deletion_makes_no_pods(scene: Scene) -> None:
    """A pod deleted of a ReplicaSet that is being deleted itself is not replaced."""
    scene.replicaset(1)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    scene.merge("ReplicaSet", "web", held)
    scene.delete("ReplicaSet", "web", propagationPolicy="Background")
    scene.noticed()
    (name,) = scene.ready()
    scene.delete("Pod", name)
    scene.gone("Pod", name)
    scene.quiet()
    scene.note("pods", len(scene.every("Pod")))
    scene.merge("ReplicaSet", "web", {"metadata": {"finalizers": None}})
    scene.gone("ReplicaSet", "web")


@script
def dependent_of_nothing_is_deleted(scene: Scene) -> None:
    """A dependent whose owner does not exist, by its uid, is deleted."""
    made = owner(scene)
    scene.delete("ConfigMap", "owner")
    scene.create(owned_by(pod("lost", scene.template()), made))
    scene.gone("Pod", "lost")
    scene.lives_vary()


@script
def one_of_two_owners_goes(scene: Scene) -> None:
    """A dependent of two owners loses the reference to the one that goes, and stays."""
    first, second = owner(scene, "first"), owner(scene, "second")
    bare = pod("bare", scene.template())
    references = [reference_to(first), reference_to(second, controller=False)]
    scene.create({**bare, "metadata": {**bare["metadata"], "ownerReferences": references}})
    scene.until("it to serve", lambda: scene.ready() == ["bare"])
    scene.delete("ConfigMap", "first", propagationPolicy="Background")
    scene.until(
        "the reference to be taken off",
        lambda: [e["name"] for e in scene.get("Pod", "bare")["metadata"]["ownerReferences"]] == ["second"],
    )
    scene.quiet()
    scene.lives_vary()


@script
def owner_of_another_name_is_absent(scene: Scene) -> None:
    """An owner whose uid is that of another name is absent: the dependent is deleted."""
    made = owner(scene)
    renamed = {**made, "metadata": {**made["metadata"], "name": "other"}}
    scene.create(owned_by(pod("lost", scene.template()), renamed))
    scene.gone("Pod", "lost")
    scene.lives_vary()


@script
def orphaning_is_refused_by_a_policy(scene: Scene) -> None:
    """A policy that refuses to take owners off: the owner hangs in its deletion, and nothing else moves."""
    scene.replicaset(1)

    def judge(operation: str, new: Raw, _old: Raw) -> str:
        bare = operation == "UPDATE" and not new["metadata"].get("ownerReferences")
        return "bare pods are forbidden" if bare else ""

    policy = Policy(
        name="no-bare-pods",
        group="",
        resource="pods",
        operations=("UPDATE",),
        judge=judge,
        holds="has(object.metadata.ownerReferences) && size(object.metadata.ownerReferences) > 0",
        message="bare pods are forbidden",
    )
    scene.ground.admit(policy)
    (name,) = scene.ready()
    off = {"metadata": {"ownerReferences": None}}
    scene.until(
        "the policy to be in force",
        lambda: scene.refusal(lambda: scene.merge("Pod", name, off, dryRun="All")) != "accepted",
    )
    scene.note("refused", scene.refusal(lambda: scene.merge("Pod", name, off)))
    scene.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    scene.quiet(2)
    web = scene.get("ReplicaSet", "web")
    scene.note("hangs", [trace.is_ending(web), orphan_finalizers(web)])
    scene.note("pod", trace.controller(scene.get("Pod", name)))


@script
def references_stay_to_the_end(scene: Scene) -> None:
    """References are taken off by their controller's release only: a pod that is deleted keeps them."""
    scene.replicaset(1)
    scene.delete("ReplicaSet", "web", propagationPolicy="Background")
    scene.until("all to be gone", lambda: not scene.every("Pod"))
    scene.note("to the end", trace.controller(scene.past()[-1].raw))


@script
def same_name_is_not_same_owner(scene: Scene) -> None:
    """A ReplicaSet created with the name of a deleted one does not inherit its pods."""
    scene.replicaset(1, ends_after="1s")
    first = scene.named()
    scene.delete("ReplicaSet", "web", propagationPolicy="Background")
    scene.create(workload("ReplicaSet", "web", 1, scene.template()))
    scene.at_rest("ReplicaSet", "web")
    scene.until("the first to be gone", lambda: first[0] not in scene.named())
    scene.all_ready(1)
    scene.lives_vary()
