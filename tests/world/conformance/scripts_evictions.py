"""The eviction API and disruption budgets."""

from collections.abc import Callable
from typing import Any

from world.conformance import trace
from world.conformance.objects import CRASHING, budget, pod
from world.conformance.scene import Raw, Scene, script


def guarded(scene: Scene, replicas: int, **spec: Any) -> list[str]:  # noqa: ANN401 (any JSON)
    """Have a ReplicaSet with a budget, wait until it allows what it says, and return the pods."""
    scene.replicaset(replicas)
    scene.create(budget("guard", **spec))
    observed(scene, lambda status: status.get("expectedPods") == replicas == status.get("currentHealthy"))
    return scene.ready()


def observed(scene: Scene, holds: Callable[[Raw], bool], name: str = "guard") -> Raw:
    """Wait until a budget's status says something, of its present generation, and return it."""

    def status() -> Raw:
        raw = scene.get("PodDisruptionBudget", name)
        status: Raw = raw.get("status", {})
        return status if status.get("observedGeneration") == raw["metadata"]["generation"] else {}

    scene.until("the budget to be counted", lambda: bool(status()) and holds(status()))
    return status()


def counted(status: Raw) -> Raw:
    """Return a budget's counts."""
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return {name: status.get(name, 0) for name in names}


@script
def eviction_without_a_budget(scene: Scene) -> None:
    """An eviction without a budget deletes the pod with its grace, and it is replaced."""
    scene.replicaset(1)
    (name,) = scene.ready()
    scene.note("answer", scene.evict(name).get("status"))
    scene.until("another to serve", lambda: scene.ready() not in ([], [name]))
    scene.at_rest("ReplicaSet", "web")


@script
def eviction_within_a_budget(scene: Scene) -> None:
    """A budget allows as many evictions as it says; the next is refused with 429."""
    first, second, _ = guarded(scene, 3, minAvailable=2)
    scene.note("counts", counted(observed(scene, lambda status: status["disruptionsAllowed"] == 1)))
    scene.evict(first)
    scene.note("next", scene.refusal(lambda: scene.evict(second), message=True))
    scene.at_rest("ReplicaSet", "web")
    scene.note("after it", counted(observed(scene, lambda status: status["disruptionsAllowed"] == 1)))


@script
def eviction_is_refused(scene: Scene) -> None:
    """An eviction that is refused changes nothing."""
    (name,) = guarded(scene, 1, minAvailable=1)
    scene.note("refused", scene.refusal(lambda: scene.evict(name), message=True))
    scene.quiet()
    scene.note("ready", len(scene.ready()))


@script
def deletion_asks_no_budget(scene: Scene) -> None:
    """A deletion asks no budget."""
    (name,) = guarded(scene, 1, minAvailable=1)
    scene.delete("Pod", name)
    scene.gone("Pod", name)
    scene.at_rest("ReplicaSet", "web")


@script
def unhealthy_pod_eviction_by_default(scene: Scene) -> None:
    """IfHealthyBudget: a pod that is not ready is evicted if the ready ones are enough, else it is not."""
    _with_a_broken_pod(scene, minAvailable=2)
    scene.note("enough", scene.refusal(lambda: scene.evict("broken")))
    scene.gone("Pod", "broken")


@script
def unhealthy_pod_eviction_with_too_few(scene: Scene) -> None:
    """IfHealthyBudget: where the ready ones are too few, a pod that is not ready is not evicted either."""
    _with_a_broken_pod(scene, minAvailable=3)
    scene.note("too few", scene.refusal(lambda: scene.evict("broken")))


@script
def unhealthy_pod_eviction_always(scene: Scene) -> None:
    """AlwaysAllow: a pod that is running and not ready is evicted, whatever the budget says."""
    _with_a_broken_pod(scene, minAvailable=3, unhealthyPodEvictionPolicy="AlwaysAllow")
    scene.note("a ready one", scene.refusal(lambda: scene.evict("web-0")))
    scene.note("the broken one", scene.refusal(lambda: scene.evict("broken")))
    scene.gone("Pod", "broken")


def _with_a_broken_pod(scene: Scene, **spec: Any) -> None:  # noqa: ANN401 (any JSON)
    for number in range(2):
        scene.create(pod(f"web-{number}", scene.template()))
    scene.create(pod("broken", scene.template(image=CRASHING)))
    scene.create(budget("guard", **spec))
    scene.until(
        "the broken one to run",
        lambda: len(scene.ready()) == 2 and scene.get("Pod", "broken")["status"]["phase"] == "Running",
    )
    scene.note("counts", counted(observed(scene, lambda status: status.get("currentHealthy") == 2)))


@script
def pending_pod_is_evicted(scene: Scene) -> None:
    """A pod that is Pending is evicted, whatever the budget says."""
    scene.create(pod("web", scene.template()))
    scene.home = "nowhere"
    scene.create(pod("pending", scene.template()))
    scene.create(budget("guard", minAvailable=2))
    scene.until("the other to serve", lambda: scene.ready() == ["web"])
    scene.note("counts", counted(observed(scene, lambda status: status.get("currentHealthy") == 1)))
    scene.note("evicted", scene.refusal(lambda: scene.evict("pending")))
    scene.gone("Pod", "pending")


@script
def two_budgets(scene: Scene) -> None:
    """A pod of two budgets cannot be evicted: 500."""
    (name,) = guarded(scene, 1, minAvailable=0)
    scene.create(budget("second", minAvailable=0))
    observed(scene, lambda status: status["expectedPods"] == 1, "second")
    scene.note("refused", scene.refusal(lambda: scene.evict(name), message=True))


@script
def budget_min_available_in_percent(scene: Scene) -> None:
    """A budget's minAvailable in percent is rounded up, of the pods that the controllers want."""
    guarded(scene, 3, minAvailable="50%")
    scene.note("counts", counted(observed(scene, lambda status: status["expectedPods"] == 3)))


@script
def budget_max_unavailable(scene: Scene) -> None:
    """A budget's maxUnavailable counts from the controller's scale, and in percent is rounded up."""
    guarded(scene, 3, maxUnavailable="50%")
    scene.note("counts", counted(observed(scene, lambda status: status["expectedPods"] == 3)))
    scene.merge("PodDisruptionBudget", "guard", {"spec": {"maxUnavailable": 0}})
    none = observed(scene, lambda status: status["desiredHealthy"] == 3)
    scene.note("counts at 0", counted(none))
    scene.note("evicted", scene.refusal(lambda: scene.evict(scene.ready()[0])))


@script
def budget_of_a_deployment(scene: Scene) -> None:
    """The scale of a Deployment counts, not that of its ReplicaSets."""
    scene.deployment(2)
    scene.create(budget("guard", maxUnavailable=1))
    scene.note("counts", counted(observed(scene, lambda status: status["expectedPods"] == 2)))
    scene.scale("Deployment", "web", 3)
    scene.at_rest("Deployment", "web")
    scene.note("scaled", counted(observed(scene, lambda status: status["currentHealthy"] == 3)))


@script
def budget_of_bare_pods(scene: Scene) -> None:
    """A maxUnavailable of pods without a controller cannot be counted: no disruption is allowed."""
    scene.create(pod("bare", scene.template()))
    scene.all_ready(1)
    scene.create(budget("guard", maxUnavailable=1))
    scene.until("it to be said", lambda: bool(_sync_failed(scene)))
    scene.note("condition", _sync_failed(scene))
    scene.note("refused", scene.refusal(lambda: scene.evict("bare")))


def _sync_failed(scene: Scene) -> list[str]:
    status = scene.get("PodDisruptionBudget", "guard").get("status", {})
    return [f"{each['type']} {each['status']} {each['reason']}" for each in status.get("conditions") or []]


@script
def ending_pods_are_not_healthy(scene: Scene) -> None:
    """A pod that is being deleted is not healthy, and does not count as one that disturbs for ever."""
    scene.replicaset(2, ends_after="20s")
    scene.create(budget("guard", minAvailable=1))
    observed(scene, lambda status: status.get("currentHealthy") == 2)
    first, second = scene.ready()
    scene.evict(first)
    scene.note("next", scene.refusal(lambda: scene.evict(second)))
    scene.until("another to serve", lambda: len(scene.ready()) == 2)
    status = observed(scene, lambda status: status["currentHealthy"] == 2)
    scene.note("counts", counted(status))
    scene.gone("Pod", first)


@script
def eviction_with_preconditions(scene: Scene) -> None:
    """An eviction of another pod of that name, by uid, is a conflict; of none is not found."""
    scene.create(pod("web", scene.template()))
    scene.all_ready(1)
    other = {"uid": "00000000-0000-0000-0000-000000000000"}
    scene.note("of another", scene.refusal(lambda: scene.evict("web", preconditions=other)))
    scene.note("of none", scene.refusal(lambda: scene.evict("none")))
    uid = {"uid": scene.get("Pod", "web")["metadata"]["uid"]}
    scene.note("of it", scene.refusal(lambda: scene.evict("web", preconditions=uid)))
    scene.gone("Pod", "web")


@script
def eviction_dry_run(scene: Scene) -> None:
    """A dry run of an eviction is answered as the eviction would be, and ends nothing."""
    first, _ = guarded(scene, 2, minAvailable=1)
    observed(scene, lambda status: status["disruptionsAllowed"] == 1)
    scene.note("allowed", scene.refusal(lambda: scene.evict(first, dryRun=["All"])))
    scene.quiet()
    scene.merge("PodDisruptionBudget", "guard", {"spec": {"minAvailable": 2}})
    observed(scene, lambda status: status["disruptionsAllowed"] == 0)
    scene.note("refused", scene.refusal(lambda: scene.evict(first, dryRun=["All"])))
    scene.note("ready", len(scene.ready()))


@script
def eviction_twice(scene: Scene) -> None:
    """A pod that is being deleted may be evicted again: nothing more happens."""
    scene.create(pod("web", scene.template(ends_after="8s")))
    scene.all_ready(1)
    scene.evict("web")
    scene.note("again", scene.refusal(lambda: scene.evict("web")))
    scene.gone("Pod", "web")


@script
def finished_pod_is_evicted(scene: Scene) -> None:
    """A finished pod may be evicted, whatever the budget says."""
    guarded(scene, 1, minAvailable=1)
    (name,) = scene.ready()
    scene.merge("Pod", name, {"status": {"phase": "Failed"}}, "status")
    scene.note("evicted", scene.refusal(lambda: scene.evict(name)))
    scene.until("another to serve", lambda: len(scene.ready()) == 1 and scene.ready() != [name])
    scene.note("state", trace.state(scene.pods()[0]))
    scene.lives_vary()
