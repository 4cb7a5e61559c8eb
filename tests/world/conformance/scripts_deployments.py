"""What the Deployment controller does."""

from typing import Any

from world.conformance import trace
from world.conformance.objects import BROKEN, of_kind, owned_by, rolling, workload
from world.conformance.scene import Raw, Scene, script

DESIRED = "deployment.kubernetes.io/desired-replicas"
REVISION = "deployment.kubernetes.io/revision"


def condition(raw: Raw, kind: str) -> str:
    """Return status and reason of a condition, "none" where there is none."""
    for each in raw.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return f"{each['status']} {each.get('reason', '')}"
    return "none"


def stuck(scene: Scene, replicas: int = 4, surge: int = 1, **spec: Any) -> None:  # noqa: ANN401 (any JSON)
    """Have a Deployment whose rollout waits for an image that never comes."""
    scene.deployment(replicas, strategy=rolling(surge, 0), **spec)
    scene.set_image("Deployment", "web", BROKEN)
    scene.until(
        "the surge pods to wait for their image",
        lambda: len(scene.pods(BROKEN)) == surge and scene.set_of(BROKEN)["status"].get("replicas") == surge,
    )


@script
def deployment_is_scaled_up_and_down(scene: Scene) -> None:
    """A Deployment that is scaled scales its one ReplicaSet, and keeps the pods it can keep."""
    scene.deployment(2)
    before = set(scene.ready())
    scene.scale("Deployment", "web", 5)
    scene.at_rest("Deployment", "web")
    scene.note("kept", before <= set(scene.ready()))
    mark = scene.mark()
    scene.scale("Deployment", "web", 1)
    scene.at_rest("Deployment", "web")
    scene.note("least ready", scene.least_ready(mark))
    scene.note("sizes", trace.sizes(scene.past("ReplicaSet"), scene.named("ReplicaSet")[0]))


@script
def deployment_is_scaled_to_0_and_back(scene: Scene) -> None:
    """At 0 replicas the ReplicaSet stays, and serves again when the Deployment is scaled up."""
    scene.deployment(2)
    sets = scene.named("ReplicaSet")
    scene.scale("Deployment", "web", 0)
    scene.at_rest("Deployment", "web")
    scene.note("available", condition(scene.get("Deployment", "web"), "Available"))
    scene.scale("Deployment", "web", 2)
    scene.at_rest("Deployment", "web")
    scene.note("the same ReplicaSet", sets == scene.named("ReplicaSet"))


@script
def paused_deployment_ignores_its_template(scene: Scene) -> None:
    """A paused Deployment makes no ReplicaSet of a new template, and counts no pod as updated."""
    scene.deployment(2)
    scene.merge("Deployment", "web", {"spec": {"paused": True}})
    scene.set_image("Deployment", "web", "web:2")
    scene.until(
        "the change to be observed",
        lambda: (
            (web := scene.every("Deployment")[0])["status"]["observedGeneration"]
            == web["metadata"]["generation"]
            and condition(web, "Progressing") == "Unknown DeploymentPaused"
        ),
    )
    scene.quiet()
    web = scene.get("Deployment", "web")
    scene.note("updated", web["status"].get("updatedReplicas", 0))
    scene.note("sizes", scene.sizes())
    scene.note("progressing", condition(web, "Progressing"))


@script
def paused_deployment_is_scaled(scene: Scene) -> None:
    """A paused Deployment with one ReplicaSet is scaled all the same."""
    scene.deployment(2, paused=False)
    scene.merge("Deployment", "web", {"spec": {"paused": True}})
    scene.scale("Deployment", "web", 4)
    scene.all_ready(4)
    scene.scale("Deployment", "web", 1)
    scene.all_ready(1)
    scene.note("sizes", scene.sizes())


@script
def paused_deployment_is_created(scene: Scene) -> None:
    """A paused Deployment that never ran makes no ReplicaSet."""
    scene.create(workload("Deployment", "web", 2, scene.template(), paused=True))
    scene.until("it to be observed", lambda: bool(scene.every("Deployment")[0].get("status")))
    scene.quiet()
    scene.note("ReplicaSets", len(scene.every("ReplicaSet")))
    scene.merge("Deployment", "web", {"spec": {"paused": False}})
    scene.at_rest("Deployment", "web")


@script
def paused_in_mid_roll_is_scaled_proportionally(scene: Scene) -> None:
    """A Deployment paused in mid-roll and scaled shares the new replicas out by the ReplicaSets' sizes."""
    stuck(scene, replicas=6, surge=2)
    scene.note("before", scene.sizes())
    scene.merge("Deployment", "web", {"spec": {"paused": True}})
    scene.scale("Deployment", "web", 12)
    scene.until("all to be shared out", lambda: sum(scene.sizes().values()) == 14)
    scene.until("the old pods to serve", lambda: len(scene.ready()) == scene.sizes()["web:1"])
    scene.note("up", scene.sizes())
    scene.scale("Deployment", "web", 3)
    scene.until("all to be taken back", lambda: sum(scene.sizes().values()) == 5)
    scene.until("the pods to be gone", lambda: len(scene.every("Pod")) == 5)
    scene.note("down", scene.sizes())


@script
def scaled_in_mid_roll(scene: Scene) -> None:
    """A Deployment scaled in mid-roll, not paused, shares out in the same way."""
    stuck(scene, replicas=4, surge=1)
    scene.scale("Deployment", "web", 8)
    scene.until("all to be shared out", lambda: sum(scene.sizes().values()) == 9)
    scene.until("the old pods to serve", lambda: len(scene.ready()) == scene.sizes()["web:1"])
    scene.quiet()
    scene.note("sizes", scene.sizes())


@script
def foreign_desired_replicas_is_a_scaling_event(scene: Scene) -> None:
    """A desired-replicas on an active ReplicaSet that is not the Deployment's number is a scaling event.

    With two active ReplicaSets what is too much is taken from the larger one, whether its pods serve or not.
    """
    stuck(scene, replicas=4, surge=1)
    old = scene.set_of("web:1")["metadata"]["name"]
    marked = {"metadata": {"annotations": {DESIRED: "9"}}, "spec": {"replicas": 9}}
    scene.merge("ReplicaSet", old, marked)
    scene.until(
        "the Deployment to have answered",
        lambda: scene.set_of("web:1")["metadata"]["annotations"][DESIRED] == "4",
    )
    scene.until("the pods to be as asked", lambda: len(scene.every("Pod")) == sum(scene.sizes().values()))
    scene.quiet()
    scene.note("sizes", scene.sizes())
    scene.lives_vary()


@script
def foreign_scale_of_a_replicaset_is_set_back(scene: Scene) -> None:
    """A ReplicaSet scaled by a foreign hand while its Deployment is at rest is set back."""
    scene.deployment(2)
    name = scene.named("ReplicaSet")[0]
    scene.scale("ReplicaSet", name, 4)
    scene.until("it to be set back", lambda: trace.sizes(scene.past("ReplicaSet"), name)[-2:] == ["4", "2"])
    scene.at_rest("Deployment", "web")
    scene.lives_vary()


@script
def rollout_with_surge(scene: Scene) -> None:
    """With maxSurge 1 and maxUnavailable 0 never fewer serve, and one more is asked for at most."""
    scene.deployment(3, strategy=rolling(1, 0))
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:2")
    scene.at_rest("Deployment", "web")
    scene.note("least ready", scene.least_ready(mark))
    scene.note("most asked", scene.most_asked())
    for image in ("web:1", "web:2"):
        sizes = trace.sizes(scene.past("ReplicaSet"), scene.set_of(image)["metadata"]["name"])
        scene.note(f"sizes of {image}", sizes)


@script
def rollout_without_surge(scene: Scene) -> None:
    """With maxSurge 0 and maxUnavailable 1 one goes before one comes."""
    scene.deployment(3, strategy=rolling(0, 1))
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:2")
    scene.at_rest("Deployment", "web")
    scene.note("least ready", scene.least_ready(mark))
    scene.note("most asked", scene.most_asked())
    old = trace.sizes(scene.past("ReplicaSet"), scene.set_of("web:1")["metadata"]["name"])
    scene.note("sizes of web:1", old)


@script
def rollout_by_percentages(scene: Scene) -> None:
    """Percentages: surge is rounded up, unavailable down; 25 % of 6 are 2 and 1."""
    scene.deployment(6, strategy=rolling("25%", "25%"))
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:2")
    scene.at_rest("Deployment", "web")
    scene.note("at least 5 ready", scene.least_ready(mark) >= 5)
    scene.note("most asked", scene.most_asked())


@script
def rollout_with_all_unavailable(scene: Scene) -> None:
    """With maxUnavailable 100 % and no surge all pods go at once."""
    scene.deployment(3, strategy=rolling(0, "100%"))
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:2")
    scene.at_rest("Deployment", "web")
    scene.note("least ready", scene.least_ready(mark))
    scene.note("most asked", scene.most_asked())


@script
def rollout_by_recreation(scene: Scene) -> None:
    """Recreate ends all pods of the old template before the first of the new one is made."""
    scene.deployment(2, strategy={"type": "Recreate"})
    scene.set_image("Deployment", "web", "web:2")
    scene.at_rest("Deployment", "web")
    changes = scene.past()
    first_new = next(number for number, each in enumerate(changes) if trace.image(each.raw) == "web:2")
    old_gone = [n for n, each in enumerate(changes) if each.deleted and trace.image(each.raw) == "web:1"]
    scene.note("all old gone before the first new one", max(old_gone) < first_new)


@script
def rollout_of_a_broken_image(scene: Scene) -> None:
    """A rollout of an image that is never pulled stops at its surge, and no pod that serves is lost."""
    stuck(scene, replicas=4, surge=1)
    scene.quiet()
    scene.note("sizes", scene.sizes())
    scene.note("least ready", scene.least_ready(scene.mark()))
    scene.note("available", condition(scene.get("Deployment", "web"), "Available"))


@script
def rollout_exceeds_its_progress_deadline(scene: Scene) -> None:
    """Without progress for progressDeadlineSeconds a Deployment says so, and goes on waiting."""
    stuck(scene, replicas=2, surge=1, progressDeadlineSeconds=1)
    said = "False ProgressDeadlineExceeded"
    scene.until("it to say so", lambda: condition(scene.every("Deployment")[0], "Progressing") == said)
    scene.note("sizes", scene.sizes())
    scene.set_image("Deployment", "web", "web:3")
    scene.at_rest("Deployment", "web")
    scene.note("progressing", condition(scene.get("Deployment", "web"), "Progressing"))


@script
def rolled_back_in_mid_roll(scene: Scene) -> None:
    """Rolled back in mid-roll, the old ReplicaSet is the newest again and keeps its pods."""
    stuck(scene, replicas=3, surge=1)
    before = scene.ready()
    scene.set_image("Deployment", "web", "web:1")
    scene.at_rest("Deployment", "web")
    scene.note("the same pods", before == scene.ready())
    scene.note(
        "revisions", {trace.image(raw): raw["metadata"]["annotations"][REVISION] for raw in sets(scene)}
    )
    scene.note("sizes", scene.sizes())


def sets(scene: Scene) -> list[Raw]:
    """Return the ReplicaSets."""
    return scene.every("ReplicaSet")


@script
def rollout_is_superseded(scene: Scene) -> None:
    """A third template in mid-roll: the second one's pods, which never served, go first."""
    stuck(scene, replicas=3, surge=1)
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:3")
    scene.at_rest("Deployment", "web")
    scene.note("least ready", scene.least_ready(mark))
    scene.note("most asked", scene.most_asked())
    scene.note("sizes", scene.sizes())


@script
def unhealthy_old_pods_go_first(scene: Scene) -> None:
    """Old pods that do not serve are cleaned up before those that do, also where none may be missing."""
    scene.deployment(3, strategy=rolling(1, 1))
    scene.set_image("Deployment", "web", BROKEN)
    scene.until("the new ones to wait", lambda: len(scene.pods(BROKEN)) == 2 and len(scene.every("Pod")) == 4)
    mark = scene.mark()
    scene.set_image("Deployment", "web", "web:3")
    scene.at_rest("Deployment", "web")
    scene.note("at least 2 ready", scene.least_ready(mark) >= 2)
    scene.lives_vary()


@script
def resumed_deployment_rolls_out(scene: Scene) -> None:
    """What changed while a Deployment was paused is rolled out when it is resumed."""
    scene.deployment(2, strategy=rolling(1, 0))
    scene.merge("Deployment", "web", {"spec": {"paused": True}})
    scene.set_image("Deployment", "web", "web:2")
    scene.merge("Deployment", "web", {"spec": {"paused": None}})
    scene.at_rest("Deployment", "web")
    scene.note("sizes", scene.sizes())


@script
def old_replicasets_are_deleted(scene: Scene) -> None:
    """Old ReplicaSets beyond revisionHistoryLimit are deleted."""
    scene.deployment(1, revisionHistoryLimit=1)
    for image in ("web:2", "web:3"):
        scene.set_image("Deployment", "web", image)
        scene.at_rest("Deployment", "web")
    scene.until("the oldest to be deleted", lambda: len(sets(scene)) == 2)
    scene.note("sizes", scene.sizes())
    scene.lives_vary()


@script
def available_after_min_ready_seconds(scene: Scene) -> None:
    """Pods count as available minReadySeconds after they became ready."""
    scene.create(workload("Deployment", "web", 1, scene.template(), minReadySeconds=8))
    seen = scene.past
    scene.at_rest("Deployment", "web")
    statuses = [each.raw.get("status", {}) for each in seen("Deployment")]
    scene.note("ready before available", any(
        each.get("readyReplicas") == 1 and not each.get("availableReplicas") for each in statuses
    ))  # fmt: skip


@script
def deployment_adopts_a_replicaset(scene: Scene) -> None:
    """A Deployment adopts a ReplicaSet without an owner that it selects and that has its template."""
    scene.deployment(2)
    pods = scene.ready()
    name = scene.named("ReplicaSet")[0]
    scene.delete("Deployment", "web", propagationPolicy="Orphan")
    scene.gone("Deployment", "web")
    scene.deployment(2)
    scene.note("the same pods", pods == scene.ready())
    scene.note("the same ReplicaSet", [name] == scene.named("ReplicaSet"))
    scene.note("owner", trace.controller(scene.get("ReplicaSet", name)))


@script
def paused_deployment_adopts_a_replicaset(scene: Scene) -> None:
    """A paused Deployment adopts ReplicaSets too, and scales them to its own number."""
    scene.deployment(3)
    pods = set(scene.ready())
    name = scene.named("ReplicaSet")[0]
    scene.delete("Deployment", "web", propagationPolicy="Orphan")
    scene.gone("Deployment", "web")
    scene.create(workload("Deployment", "web", 2, scene.template(), paused=True))
    scene.all_ready(2)
    scene.note("pods kept", pods >= set(scene.ready()))
    scene.note("owner", trace.controller(scene.get("ReplicaSet", name)))


@script
def deployment_releases_a_replicaset(scene: Scene) -> None:
    """A Deployment releases a ReplicaSet that it does not select any more; it then needs another."""
    scene.deployment(1)
    name = scene.named("ReplicaSet")[0]
    scene.merge("ReplicaSet", name, {"metadata": {"labels": {"app": "other"}}})
    scene.until("it to be released", lambda: trace.controller(scene.get("ReplicaSet", name)) == "")
    scene.until("another to be made", lambda: len(sets(scene)) == 2)
    scene.until("both to serve", lambda: len(scene.ready()) == 2)
    scene.at_rest("Deployment", "web")
    owned = sorted(trace.controller(raw) for raw in sets(scene))
    scene.note("owners", owned)


@script
def two_deployments_with_one_selector(scene: Scene) -> None:
    """Of two Deployments with one selector each keeps to the ReplicaSets that it owns."""
    scene.deployment(2, "blue", strategy=rolling(1, 0))
    pods = scene.ready()
    scene.create(workload("Deployment", "green", 1, scene.template(image="web:2")))
    scene.at_rest("Deployment", "green")
    scene.quiet()
    scene.note("blue keeps its pods", set(pods) <= set(scene.ready()))


@script
def replicaset_of_a_deployment_that_does_not_select_it(scene: Scene) -> None:
    """A ReplicaSet that names a Deployment which does not select it is not scaled by it."""
    web = scene.deployment(1)
    other = workload("ReplicaSet", "other", 2, scene.template(app="other"), app="other")
    other["metadata"]["labels"] = {"app": "other"}
    scene.create(owned_by(other, web))
    scene.until("it to be released", lambda: trace.controller(scene.get("ReplicaSet", "other")) == "")
    scene.until("its pods to serve", lambda: len(scene.ready("", "ReplicaSet/other")) == 2)
    scene.note("size", scene.get("ReplicaSet", "other")["spec"]["replicas"])


@script
def template_annotation_makes_a_rollout(scene: Scene) -> None:
    """A template that differs by an annotation only is another template."""
    scene.deployment(1, strategy=rolling(1, 0))
    annotated = {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}}
    scene.merge("Deployment", "web", annotated)
    scene.at_rest("Deployment", "web")
    scene.note("ReplicaSets", len(sets(scene)))
    scene.note("pods", len(scene.ready()))


@script
def replicaset_carries_desired_and_max_replicas(scene: Scene) -> None:
    """The numbers of a Deployment's ReplicaSets are written on them: desired and at most."""
    scene.deployment(4, strategy=rolling("25%", 0))
    marks = sets(scene)[0]["metadata"]["annotations"]
    keys = (DESIRED, "deployment.kubernetes.io/max-replicas", REVISION)
    scene.note("annotations", {key: marks[key] for key in keys})
    scene.note(
        "revision of the Deployment", scene.get("Deployment", "web")["metadata"]["annotations"][REVISION]
    )
    has_hash = [
        "pod-template-hash" in raw["metadata"]["labels"] for raw in (*sets(scene), *scene.every("Pod"))
    ]
    scene.note("all have the hash", all(has_hash))
    scene.note(
        "the selector has it", "pod-template-hash" in sets(scene)[0]["spec"]["selector"]["matchLabels"]
    )


@script
def deleted_pod_is_replaced(scene: Scene) -> None:
    """A pod of a Deployment that is deleted is replaced; nothing else moves."""
    scene.deployment(2)
    kept, lost = scene.ready()
    scene.delete("Pod", lost)
    scene.at_rest("Deployment", "web")
    scene.note("the other one stays", kept in scene.ready())
    scene.note("the lost one is another", lost not in scene.named())


@script
def quota_refuses_the_pods_of_a_deployment(scene: Scene) -> None:
    """A quota that refuses pods makes ReplicaFailure on ReplicaSet and Deployment, with the quota's words."""
    scene.create(of_kind("ResourceQuota", "few", spec={"hard": {"pods": "2"}}))
    scene.until("the quota to count", lambda: "hard" in scene.get("ResourceQuota", "few").get("status", {}))
    scene.create(workload("Deployment", "web", 3, scene.template()))
    scene.until("it to be said", lambda: condition(scene.every("Deployment")[0], "ReplicaFailure") != "none")
    scene.until(
        "the others to be counted",
        lambda: scene.every("Deployment")[0]["status"].get("availableReplicas") == 2,
    )
    scene.note("of the Deployment", condition(scene.every("Deployment")[0], "ReplicaFailure"))
    scene.note("of the ReplicaSet", condition(sets(scene)[0], "ReplicaFailure"))
    failure = next(
        each for each in sets(scene)[0]["status"]["conditions"] if each["type"] == "ReplicaFailure"
    )
    scene.note("words", failure["message"].partition("exceeded quota")[2])


@script
def recreated_with_another_template(scene: Scene) -> None:
    """A Deployment made again with another template adopts the former ReplicaSet, and rolls from it."""
    scene.deployment(2, strategy=rolling(1, 0))
    scene.delete("Deployment", "web", propagationPolicy="Orphan")
    scene.gone("Deployment", "web")
    mark = scene.mark()
    scene.deployment(2, image="web:2", strategy=rolling(1, 0))
    scene.note("least ready", scene.least_ready(mark))
    scene.note("sizes", scene.sizes())
    revisions = {trace.image(raw): raw["metadata"]["annotations"][REVISION] for raw in sets(scene)}
    scene.note("revisions", revisions)


@script
def deployment_takes_a_replicaset_made_by_hand(scene: Scene) -> None:
    """A ReplicaSet without an owner whose template is a Deployment's becomes its newest one."""
    made = workload("ReplicaSet", "by-hand", 2, scene.template())
    made["metadata"]["labels"] = {"app": "web"}
    scene.create(made)
    scene.at_rest("ReplicaSet", "by-hand")
    pods = scene.ready()
    scene.deployment(2, strategy=rolling(1, 0))
    scene.note("ReplicaSets", scene.named("ReplicaSet"))
    scene.note("the same pods", pods == scene.ready())
    (taken,) = sets(scene)
    scene.note("owner", trace.controller(taken))
    scene.note("hash on it", "pod-template-hash" in taken["metadata"]["labels"])
    scene.note("desired", taken["metadata"]["annotations"].get(DESIRED))


@script
def deployment_does_not_take_a_replicaset_of_another_label(scene: Scene) -> None:
    """A ReplicaSet that the selector does not match, by its own labels, is not adopted."""
    scene.create(workload("ReplicaSet", "by-hand", 1, scene.template()))
    scene.at_rest("ReplicaSet", "by-hand")
    scene.deployment(1, strategy=rolling(1, 0))
    scene.until("both to serve", lambda: len(scene.ready()) == 2)
    scene.note("owner", trace.controller(scene.get("ReplicaSet", "by-hand")))
    scene.note("owners", sorted(trace.controller(raw) for raw in sets(scene)))


@script
def pod_is_taken_out_by_its_hash(scene: Scene) -> None:
    """A pod whose pod-template-hash is changed is released and replaced; the Deployment counts it no more."""
    scene.deployment(2)
    taken = scene.ready()[0]
    scene.merge("Pod", taken, {"metadata": {"labels": {"pod-template-hash": "debug"}}})
    scene.until("three to serve", lambda: len(scene.ready()) == 3)
    scene.at_rest("Deployment", "web")
    scene.note("owner", trace.controller(scene.get("Pod", taken)))
    scene.scale("Deployment", "web", 0)
    scene.until("the others to be gone", lambda: scene.named() == [taken])


@script
def finalizers_of_the_pod_template(scene: Scene) -> None:
    """Pods get the finalizers of their template, and stay Terminating until these are taken off."""
    made = scene.template()
    made["metadata"]["finalizers"] = ["example.com/held"]
    scene.create(workload("Deployment", "web", 1, made))
    scene.at_rest("Deployment", "web")
    (name,) = scene.ready()
    scene.delete("Pod", name)
    scene.until("another to serve", lambda: len(scene.ready()) == 1)
    scene.ground.elapse(2)
    scene.caught_up()
    scene.note("the first", trace.state(scene.get("Pod", name)))
    scene.merge("Pod", name, {"metadata": {"finalizers": None}})
    scene.gone("Pod", name)


@script
def scale_down_with_pods_that_are_not_ready(scene: Scene) -> None:
    """In mid-roll scaled down, a stuck rollout gives back by the ReplicaSets' sizes, and serves on."""
    stuck(scene, replicas=5, surge=2)
    mark = scene.mark()
    scene.scale("Deployment", "web", 2)
    scene.until("all to be taken back", lambda: sum(scene.sizes().values()) <= 4)
    scene.until("the pods to be gone", lambda: len(scene.every("Pod")) == sum(scene.sizes().values()))
    scene.quiet()
    scene.note("sizes", scene.sizes())
    scene.note("at least 2 ready", scene.least_ready(mark) >= 2)
