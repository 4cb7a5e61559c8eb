"""What the StatefulSet controller does."""

from collections.abc import Iterable, Sequence
from typing import Any

from world.conformance import trace
from world.conformance.objects import BROKEN, tolerates, workload
from world.conformance.scene import Raw, Scene, script


def statefulset(scene: Scene, replicas: int, *, parts: Raw | None = None, **spec: Any) -> None:  # noqa: ANN401 (any JSON)
    """Create a StatefulSet and wait until it is at rest."""
    made = workload("StatefulSet", "db", replicas, scene.template(**(parts or {})), serviceName="db", **spec)
    scene.create(made)
    scene.at_rest("StatefulSet", "db")


def first_seen(scene: Scene, states: Iterable[str], after: int = 0) -> list[str]:
    """Return names and states in the order in which they were first seen."""
    wanted = set(states)
    words: list[str] = []
    for change in scene.past()[after:]:
        state = "gone" if change.deleted else trace.state(change.raw)
        words.append(f"{change.raw['metadata']['name']} {state}")
    return [
        word for number, word in enumerate(words) if word.split()[1] in wanted and word not in words[:number]
    ]


def images(scene: Scene) -> list[str]:
    """Return the image of each member."""
    return [f"{raw['metadata']['name']} {trace.image(raw)}" for raw in scene.every("Pod")]


@script
def ordered_members_come_in_order(scene: Scene) -> None:
    """OrderedReady: members come one after the other, each when the one before is ready."""
    statefulset(scene, 3)
    scene.note("order", first_seen(scene, ("waiting", "ready")))


@script
def ordered_members_go_in_order(scene: Scene) -> None:
    """OrderedReady: members go one after the other from the last, each when the one before is gone."""
    statefulset(scene, 3)
    after = len(scene.past())
    scene.scale("StatefulSet", "db", 0)
    scene.at_rest("StatefulSet", "db")
    scene.note("order", first_seen(scene, ("ending", "gone"), after))


@script
def parallel_members(scene: Scene) -> None:
    """Parallel: all members are made and ended at once."""
    statefulset(scene, 3, podManagementPolicy="Parallel")
    seen = [(e.raw["metadata"]["name"], trace.state(e.raw)) for e in scene.past()]
    first_ready = next(number for number, (_, state) in enumerate(seen) if state == "ready")
    scene.note("all there before one is ready", len({name for name, _ in seen[:first_ready]}) == 3)
    after = len(scene.past())
    scene.scale("StatefulSet", "db", 0)
    scene.at_rest("StatefulSet", "db")
    late = scene.past()[after:]
    first_gone = next(number for number, each in enumerate(late) if each.deleted)
    scene.note(
        "all end before one is gone", len({each.raw["metadata"]["name"] for each in late[:first_gone]})
    )


@script
def members_are_updated_in_reverse(scene: Scene) -> None:
    """A rolling update goes from the last member to the first, each when the one before is ready again."""
    statefulset(scene, 3)
    after = len(scene.past())
    scene.set_image("StatefulSet", "db", "web:2")
    scene.at_rest("StatefulSet", "db")
    scene.note("order", _ends(scene, after))
    scene.note("least ready", scene.least_ready(after))
    scene.note("images", images(scene))


def _ends(scene: Scene, after: int) -> Sequence[str]:
    return first_seen(scene, ("ending", "gone"), after)


@script
def partition_keeps_lower_members(scene: Scene) -> None:
    """Members below the partition keep the former template, also when they are deleted."""
    statefulset(scene, 3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    scene.set_image("StatefulSet", "db", "web:2")
    scene.until(
        "the last to be updated",
        lambda: (
            scene.every("StatefulSet")[0]["status"].get("updatedReplicas") == 1
            and len(scene.ready("web:2")) == 1
        ),
    )
    scene.quiet()
    scene.note("images", images(scene))
    uid = scene.get("Pod", "db-0")["metadata"]["uid"]
    scene.delete("Pod", "db-0")
    scene.until(
        "it to be back",
        lambda: "db-0" in scene.ready() and scene.get("Pod", "db-0")["metadata"]["uid"] != uid,
    )
    scene.note("images after a deletion", images(scene))
    status = scene.get("StatefulSet", "db")["status"]
    scene.note("revisions differ", status["currentRevision"] != status["updateRevision"])
    lowered = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    scene.merge("StatefulSet", "db", lowered)
    scene.at_rest("StatefulSet", "db")
    scene.until("one revision", lambda: _one_revision(scene))
    scene.note("images at last", images(scene))


def _one_revision(scene: Scene) -> bool:
    status = scene.get("StatefulSet", "db")["status"]
    return bool(status["currentRevision"] == status["updateRevision"])


@script
def members_are_updated_by_max_unavailable(scene: Scene) -> None:
    """A StatefulSet's maxUnavailable is dropped: its feature gate is off, and members go one by one."""
    how = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    statefulset(scene, 4, updateStrategy=how)
    kept = scene.get("StatefulSet", "db")["spec"]["updateStrategy"]["rollingUpdate"]
    scene.note("is kept", kept.get("maxUnavailable"))
    after = len(scene.past())
    scene.set_image("StatefulSet", "db", "web:2")
    scene.at_rest("StatefulSet", "db")
    scene.note("least ready", scene.least_ready(after))


@script
def update_on_delete(scene: Scene) -> None:
    """OnDelete: a new template is for members that are deleted, and no other."""
    statefulset(scene, 2, updateStrategy={"type": "OnDelete"})
    scene.set_image("StatefulSet", "db", "web:2")
    scene.quiet()
    scene.note("images", images(scene))
    scene.delete("Pod", "db-0")
    scene.until("it to be back", lambda: "db-0" in scene.ready("web:2"))
    scene.note("images after a deletion", images(scene))


@script
def deleted_member_comes_back(scene: Scene) -> None:
    """A member that is deleted comes back under its name, as another pod."""
    statefulset(scene, 2)
    uid = scene.get("Pod", "db-0")["metadata"]["uid"]
    scene.delete("Pod", "db-0")
    scene.until(
        "it to be back",
        lambda: "db-0" in scene.ready() and scene.get("Pod", "db-0")["metadata"]["uid"] != uid,
    )
    scene.at_rest("StatefulSet", "db")
    labels = scene.get("Pod", "db-0")["metadata"]["labels"]
    scene.note("labels", sorted(labels))
    scene.note("its name", labels["statefulset.kubernetes.io/pod-name"])


@script
def ordered_waits_for_a_member_that_is_not_ready(scene: Scene) -> None:
    """OrderedReady: behind a member that is not ready nothing is made, also not what was deleted."""
    statefulset(scene, 3)
    scene.ground.ail("db-0")
    scene.until("it not to be ready", lambda: "db-0" not in scene.ready())
    scene.delete("Pod", "db-2")
    scene.gone("Pod", "db-2")
    scene.scale("StatefulSet", "db", 4)
    scene.quiet(2)
    scene.note("members", [raw["metadata"]["name"] for raw in scene.every("Pod")])
    scene.ground.heal("db-0")
    scene.at_rest("StatefulSet", "db")
    scene.note("members at last", scene.ready())


@script
def ordered_makes_a_lower_member(scene: Scene) -> None:
    """OrderedReady: a lower member that was deleted is made again though a higher one is not ready."""
    statefulset(scene, 3)
    scene.ground.ail("db-2")
    scene.until("it not to be ready", lambda: "db-2" not in scene.ready())
    uid = scene.get("Pod", "db-0")["metadata"]["uid"]
    scene.delete("Pod", "db-0")
    scene.until(
        "it to be back",
        lambda: "db-0" in scene.ready() and scene.get("Pod", "db-0")["metadata"]["uid"] != uid,
    )
    scene.note("ready", scene.ready())


@script
def ordered_scale_down_waits(scene: Scene) -> None:
    """OrderedReady: no member is taken away while one is not ready, but the one that is not."""
    statefulset(scene, 3)
    scene.ground.ail("db-0")
    scene.until("it not to be ready", lambda: "db-0" not in scene.ready())
    scene.scale("StatefulSet", "db", 1)
    scene.ground.elapse(2)
    scene.caught_up()
    scene.note("members", [raw["metadata"]["name"] for raw in scene.pods()])
    scene.ground.heal("db-0")
    scene.at_rest("StatefulSet", "db")


@script
def parallel_does_not_wait(scene: Scene) -> None:
    """Parallel: a member is made again though another one is not ready."""
    statefulset(scene, 3, podManagementPolicy="Parallel")
    scene.ground.ail("db-0")
    scene.until("it not to be ready", lambda: "db-0" not in scene.ready())
    uid = scene.get("Pod", "db-2")["metadata"]["uid"]
    scene.delete("Pod", "db-2")
    scene.until(
        "it to be back",
        lambda: "db-2" in scene.ready() and scene.get("Pod", "db-2")["metadata"]["uid"] != uid,
    )
    scene.note("ready", scene.ready())


@script
def parallel_updates_one_by_one(scene: Scene) -> None:
    """Parallel: an update of the template still goes member by member."""
    statefulset(scene, 3, podManagementPolicy="Parallel")
    after = len(scene.past())
    scene.set_image("StatefulSet", "db", "web:2")
    scene.at_rest("StatefulSet", "db")
    scene.note("order", first_seen(scene, ("ending", "gone"), after))
    scene.note("least ready", scene.least_ready(after))


@script
def broken_update_is_not_mended_by_itself(scene: Scene) -> None:
    """A broken update stops at its first member, and the former template alone does not mend it."""
    statefulset(scene, 2)
    scene.set_image("StatefulSet", "db", BROKEN)
    scene.until("the last to wait", lambda: len(scene.pods(BROKEN)) == 1)
    scene.quiet(3)
    scene.note("images", images(scene))
    scene.set_image("StatefulSet", "db", "web:1")
    scene.ground.elapse(3)
    scene.caught_up()
    scene.note("images after the way back", images(scene))
    if scene.pods(BROKEN):
        scene.delete("Pod", "db-1")
    scene.at_rest("StatefulSet", "db")
    scene.note("images at last", images(scene))
    scene.lives_vary()  # the quick look of the kubelet at the image may come twice


@script
def members_are_adopted(scene: Scene) -> None:
    """A StatefulSet adopts members without an owner by selector and name, and keeps them."""
    statefulset(scene, 2)
    uids = [raw["metadata"]["uid"] for raw in scene.every("Pod")]
    scene.delete("StatefulSet", "db", propagationPolicy="Orphan")
    scene.gone("StatefulSet", "db")
    scene.note("owners", sorted({trace.controller(raw) for raw in scene.pods()}))
    statefulset(scene, 2)
    scene.note("the same pods", uids == [raw["metadata"]["uid"] for raw in scene.every("Pod")])
    scene.note("owners at last", sorted({trace.controller(raw) for raw in scene.pods()}))


@script
def ordinals_begin_later(scene: Scene) -> None:
    """Two StatefulSets that split the ordinals: the second begins at spec.ordinals.start."""
    statefulset(scene, 2, ordinals={"start": 3})
    scene.note("members", scene.ready())
    scene.note("order", first_seen(scene, ("waiting",)))


@script
def pending_member_holds_up(scene: Scene) -> None:
    """A member that finds no node holds up those behind it, and is Pending."""
    scene.nodes(1, pods=1)
    scene.create(workload("StatefulSet", "db", 3, scene.template(), serviceName="db"))
    scene.until("the second to wait", lambda: len(scene.ready()) == 1 and len(scene.pods()) == 2)
    scene.quiet()
    scene.note("members", [raw["metadata"]["name"] for raw in scene.pods()])
    scene.nodes(1)
    scene.at_rest("StatefulSet", "db")


@script
def failed_member_is_made_again(scene: Scene) -> None:
    """A member that Failed is deleted and made again by its controller."""
    statefulset(scene, 1)
    uid = scene.get("Pod", "db-0")["metadata"]["uid"]
    scene.merge("Pod", "db-0", {"status": {"phase": "Failed", "reason": "Terminated"}}, "status")
    scene.until(
        "another to serve",
        lambda: "db-0" in scene.ready() and scene.get("Pod", "db-0")["metadata"]["uid"] != uid,
    )
    scene.at_rest("StatefulSet", "db")
    scene.lives_vary()


@script
def member_is_made_after_the_end_of_the_former(scene: Scene) -> None:
    """The end of a member takes its whole grace, and its successor is made after it."""
    statefulset(scene, 1, parts={"ends_after": "5s"})
    scene.evict("db-0")
    scene.until("it to be ending", lambda: trace.is_ending(scene.get("Pod", "db-0")))
    scene.until("the next to serve", lambda: scene.ready() == ["db-0"])
    scene.note(
        "order", [trace.state(e.raw) if not e.deleted else "gone" for e in scene.past()][-6:].count("gone")
    )
    scene.at_rest("StatefulSet", "db")


@script
def statefulset_is_mostly_immutable(scene: Scene) -> None:
    """Of a StatefulSet replicas, template, strategy and minReadySeconds may change, and little else."""
    statefulset(scene, 1)
    for what, change in (
        ("podManagementPolicy", {"podManagementPolicy": "Parallel"}),
        ("serviceName", {"serviceName": "other"}),
        ("selector", {"selector": {"matchLabels": {"app": "db"}}}),
        ("minReadySeconds", {"minReadySeconds": 1}),
        ("tolerations", {"template": {"spec": {"tolerations": list(tolerates("any"))}}}),
    ):
        scene.note(what, _refused(scene, {"spec": change}))


def _refused(scene: Scene, asked: Raw) -> str:
    return scene.refusal(lambda: scene.merge("StatefulSet", "db", asked, dryRun="All"))
