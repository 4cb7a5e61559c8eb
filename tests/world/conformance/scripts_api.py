"""What the API server does by itself: writes and their rules, watches, lists, refusals."""

from typing import Any

from world.conformance import trace
from world.conformance.ground import Policy
from world.conformance.objects import labelled, of_kind, pod, workload
from world.conformance.scene import APPLY, MERGE, STRATEGIC, Raw, Scene, script

IMPOSSIBLE = "00000000-0000-0000-0000-000000000000"


def config(scene: Scene, name: str = "settings", **data: str) -> Raw:
    """Create a ConfigMap and return it whole."""
    return {**scene.create(of_kind("ConfigMap", name, data=data)), "apiVersion": "v1", "kind": "ConfigMap"}


def idle(scene: Scene, name: str = "web", **spec: Any) -> Raw:  # noqa: ANN401 (any JSON)
    """Create a Deployment that makes no pods."""
    scene.end_varies()
    scene.create(workload("Deployment", name, 0, scene.template(), **spec))
    return of_kind("Deployment", name)


def managers(raw: Raw) -> list[str]:
    """Return who manages fields, and how."""
    entries = raw["metadata"].get("managedFields") or []
    return sorted(
        f"{each['manager']} {each['operation']} {each.get('subresource', '')}".strip() for each in entries
    )


@script
def apply_conflict_and_force(scene: Scene) -> None:
    """An apply of a field that another applied differently is a conflict; with force it is taken."""
    made = of_kind("ConfigMap", "settings")
    scene.apply({**made, "data": {"a": "1"}}, "first")
    other = {**made, "data": {"a": "2"}}
    scene.note("refused", scene.refusal(lambda: scene.apply(other, "second"), message=True))
    taken = scene.apply(other, "second", force=True)
    scene.note("data", taken["data"])
    scene.note("managers", managers(taken))


@script
def apply_shared_field(scene: Scene) -> None:
    """Two managers that apply the same value share the field; one that gives it up leaves it to the other."""
    made = of_kind("ConfigMap", "settings")
    scene.apply({**made, "data": {"a": "1", "b": "1"}}, "first")
    scene.apply({**made, "data": {"a": "1"}}, "second")
    scene.note("given up by the first", scene.apply({**made, "data": {"b": "1"}}, "first")["data"])
    scene.note("given up by both", scene.apply({**made, "data": {}}, "second").get("data"))
    scene.note("dropped whole", scene.apply(made, "first").get("data"))


@script
def apply_drops_what_is_left_out(scene: Scene) -> None:
    """A field that its only manager leaves out of its next apply is removed."""
    made = of_kind("ConfigMap", "settings")
    scene.apply({**made, "data": {"a": "1", "b": "2"}}, "first")
    scene.merge("ConfigMap", "settings", {"data": {"c": "3"}}, fieldManager="second")
    scene.note("data", scene.apply({**made, "data": {"b": "2"}}, "first")["data"])


@script
def apply_after_an_update(scene: Scene) -> None:
    """An apply of a field that a plain update wrote takes it with force, and conflicts without."""
    scene.ground.request(
        "POST",
        scene.path("ConfigMap"),
        query={"fieldManager": "maker"},
        body=of_kind("ConfigMap", "s", data={"a": "1"}),
    )
    other = {**of_kind("ConfigMap", "s"), "data": {"a": "2"}}
    scene.note("refused", scene.refusal(lambda: scene.apply(other, "second")))
    scene.note("forced", managers(scene.apply(other, "second", force=True)))
    scene.note("same value", scene.refusal(lambda: scene.apply(other, "third")))


@script
def apply_after_a_foreign_edit(scene: Scene) -> None:
    """A field that is updated by another hand goes to that manager; the applier's next apply conflicts."""
    made = of_kind("ConfigMap", "settings")
    scene.apply({**made, "data": {"a": "1"}}, "first")
    edited = scene.merge("ConfigMap", "settings", {"data": {"a": "2"}}, fieldManager="hand")
    scene.note("managers", managers(edited))
    scene.note("refused", scene.refusal(lambda: scene.apply({**made, "data": {"a": "1"}}, "first")))
    left = scene.apply(made, "first")
    scene.note("left to the hand", left["data"])


@script
def apply_keyed_list(scene: Scene) -> None:
    """Items of a list with keys are merged by the key: each manager keeps its own."""
    idle(scene)

    def applied(manager: str, name: str, value: str) -> Raw:
        item = {"name": name, "value": value}
        container = {"name": "web", "env": [item]}
        spec = {"template": {"spec": {"containers": [container]}}}
        return scene.apply({**of_kind("Deployment", "web"), "spec": spec}, manager, force=True)

    applied("first", "A", "1")
    both = applied("second", "B", "2")
    scene.note("both", both["spec"]["template"]["spec"]["containers"][0]["env"])
    moved = applied("first", "C", "3")
    scene.note("after a change", moved["spec"]["template"]["spec"]["containers"][0]["env"])


@script
def apply_atomic_list(scene: Scene) -> None:
    """Tolerations are one list that is replaced whole: a second applier conflicts."""
    idle(scene)

    def applied(manager: str, key: str) -> str:
        spec = {"template": {"spec": {"tolerations": [{"key": key, "operator": "Exists"}]}}}
        return scene.refusal(lambda: scene.apply({**of_kind("Deployment", "web"), "spec": spec}, manager))

    scene.note("first", applied("first", "a"))
    scene.note("second", applied("second", "b"))
    left = scene.get("Deployment", "web")["spec"]["template"]["spec"]["tolerations"]
    scene.note("left", [each["key"] for each in left])


@script
def apply_creates_and_repeats(scene: Scene) -> None:
    """An apply makes what does not exist, and an apply of the same again changes nothing."""
    made = {**of_kind("ConfigMap", "settings"), "data": {"a": "1"}}
    first = scene.apply(made, "first")
    again = scene.apply(made, "first")
    same = first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    scene.note("the same version", same)
    absent = {**made, "metadata": {"name": "absent", "uid": IMPOSSIBLE}}
    scene.note("uid of what is not there", scene.refusal(lambda: scene.apply(absent, "first")))
    scene.note("uid that does not exist", scene.refusal(
        lambda: scene.apply({**made, "metadata": {"name": "settings", "uid": IMPOSSIBLE}}, "first")
    ))  # fmt: skip


@script
def apply_is_checked(scene: Scene) -> None:
    """An apply with managedFields is refused; one without a manager too."""
    made = of_kind("ConfigMap", "settings")
    whole = scene.apply({**made, "data": {"a": "1"}}, "first")
    back = {**made, "metadata": whole["metadata"], "data": {"a": "1"}}
    scene.note("with managedFields", scene.refusal(lambda: scene.apply(back, "first")))
    scene.note("without a manager", scene.refusal(lambda: scene.patch(APPLY, "ConfigMap", "settings", made)))


@script
def status_is_a_subresource(scene: Scene) -> None:
    """A status is written by its subresource only, raises no generation, and changes nothing else."""
    idle(scene)
    scene.at_rest("Deployment", "web")
    before = scene.get("Deployment", "web")
    conditions = [{"type": "Tried", "status": "True", "reason": "Conformance", "message": ""}]
    asked = {**of_kind("Deployment", "web"), "status": {"conditions": conditions}}
    after = scene.apply(asked, "second", subresource="status")
    scene.note("generation", after["metadata"]["generation"] - before["metadata"]["generation"])
    scene.note("written", "Tried" in [each["type"] for each in after["status"]["conditions"]])
    scene.note("managers", [each for each in managers(after) if each.startswith("second")])
    ignored = scene.merge("Deployment", "web", {"status": {"replicas": 7}})
    scene.note("by the main resource", ignored["status"].get("replicas", 0))
    spec = scene.merge("Deployment", "web", {"spec": {"replicas": 7}}, "status")
    scene.note("spec by the status", spec["spec"]["replicas"])


@script
def merge_patch(scene: Scene) -> None:
    """In a merge patch null removes a field, and a list is replaced whole."""
    config(scene, a="1", b="2")
    scene.note("null", scene.merge("ConfigMap", "settings", {"data": {"a": None, "c": "3"}})["data"])
    version = scene.get("ConfigMap", "settings")["metadata"]["resourceVersion"]
    same = scene.merge("ConfigMap", "settings", {"data": {"b": "2"}, "nonsense": True})
    scene.note("nothing new", same["metadata"]["resourceVersion"] == version)
    held = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
    scene.merge("ConfigMap", "settings", held)
    less = scene.merge("ConfigMap", "settings", {"metadata": {"finalizers": ["example.com/c"]}})
    scene.note("list", less["metadata"]["finalizers"])
    none = scene.merge("ConfigMap", "settings", {"metadata": {"finalizers": None}})
    scene.note("removed", none["metadata"].get("finalizers"))
    scene.note("of none", scene.refusal(lambda: scene.merge("ConfigMap", "none", {"data": {}})))


@script
def strategic_merge_patch(scene: Scene) -> None:
    """A strategic merge patch merges containers by name."""
    idle(scene)
    more = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    both = scene.patch(STRATEGIC, "Deployment", "web", more)
    matching = both["spec"]["template"]["spec"]["containers"]
    scene.note("containers", sorted(each["name"] for each in matching))
    whole = scene.patch(MERGE, "Deployment", "web", more)
    scene.note("by a merge patch", [e["name"] for e in whole["spec"]["template"]["spec"]["containers"]])


@script
def resource_version_conflict(scene: Scene) -> None:
    """A write with a resourceVersion that is not the present one is a conflict, by PUT and by PATCH."""
    old = config(scene, a="1")
    scene.merge("ConfigMap", "settings", {"data": {"a": "2"}})
    scene.note("put", scene.refusal(lambda: scene.replace({**old, "data": {"a": "3"}}), message=True))
    version = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    scene.note("patch", scene.refusal(lambda: scene.merge("ConfigMap", "settings", version)))
    scene.note("without", scene.refusal(lambda: scene.merge("ConfigMap", "settings", {"data": {"a": "3"}})))
    another = {**old, "metadata": {**old["metadata"], "uid": IMPOSSIBLE}}
    del another["metadata"]["resourceVersion"]
    scene.note("another uid", scene.refusal(lambda: scene.replace(another)))


@script
def generation(scene: Scene) -> None:
    """The generation is raised by the spec, not by labels or a write that changes nothing."""
    idle(scene)
    scene.at_rest("Deployment", "web")

    def raised(body: Raw) -> int:
        before = scene.get("Deployment", "web")["metadata"]["generation"]
        return int(scene.merge("Deployment", "web", body)["metadata"]["generation"]) - int(before)

    scene.note("by a label", raised({"metadata": {"labels": {"a": "b"}}}))
    scene.note("by the spec", raised({"spec": {"paused": True}}))
    scene.note("by the same spec", raised({"spec": {"paused": True}}))
    scene.note("asked for", raised({"metadata": {"generation": 99}}))


@script
def dry_run(scene: Scene) -> None:
    """A dry run is judged and answered as if it were done, and nothing is kept."""
    made = workload("Deployment", "web", 0, scene.template())
    answer = scene.create(made, dryRun="All")
    scene.note("answered", ["uid" in answer["metadata"], answer["spec"]["progressDeadlineSeconds"]])
    scene.note("kept", scene.refusal(lambda: scene.get("Deployment", "web")))
    idle(scene)
    patched = scene.merge("Deployment", "web", {"spec": {"replicas": 9}}, dryRun="All")
    scene.note("patched", [patched["spec"]["replicas"], scene.get("Deployment", "web")["spec"]["replicas"]])
    scene.note("exists", scene.refusal(lambda: scene.create(made, dryRun="All")))
    bad = {"spec": {"replicas": -1}}
    scene.note("invalid", scene.refusal(lambda: scene.merge("Deployment", "web", bad, dryRun="All")))
    scene.delete("Deployment", "web", dryRun=["All"])
    scene.note("deleted", scene.refusal(lambda: scene.get("Deployment", "web")))


@script
def deletion_with_preconditions(scene: Scene) -> None:
    """A deletion with a precondition that does not hold is a conflict."""
    made = config(scene, a="1")
    changed = scene.merge("ConfigMap", "settings", {"data": {"a": "2"}})

    def deleted(**preconditions: str) -> str:
        return scene.refusal(lambda: scene.delete("ConfigMap", "settings", preconditions=preconditions))

    scene.note("another uid", deleted(uid=IMPOSSIBLE))
    scene.note("an old version", deleted(resourceVersion=made["metadata"]["resourceVersion"]))
    scene.note("both right", deleted(
        uid=made["metadata"]["uid"], resourceVersion=changed["metadata"]["resourceVersion"]
    ))  # fmt: skip
    scene.note("gone", deleted())


@script
def plain_refusals(scene: Scene) -> None:
    """What exists is not created again, what does not exist is not found, and names are checked."""
    config(scene)
    scene.note("exists", scene.refusal(lambda: config(scene), message=True))
    scene.note("none", scene.refusal(lambda: scene.get("ConfigMap", "none"), message=True))
    scene.note("deleted", scene.refusal(lambda: scene.delete("ConfigMap", "none")))
    scene.note("bad name", scene.refusal(lambda: config(scene, "No Name")))
    version = {**of_kind("ConfigMap", "other"), "metadata": {"name": "other", "resourceVersion": "1"}}
    scene.note("with a version", scene.refusal(lambda: scene.create(version)))
    elsewhere = "/api/v1/namespaces/there-is-no-such/configmaps"
    asked = scene.refusal(lambda: scene.ground.request("POST", elsewhere, body=of_kind("ConfigMap", "a")))
    scene.note("no namespace", asked)


@script
def generated_name(scene: Scene) -> None:
    """With generateName the server adds 5 letters."""
    made = scene.create({**of_kind("ConfigMap", "x"), "metadata": {"generateName": "settings-"}})
    scene.note("letters", len(made["metadata"]["name"].removeprefix("settings-")))


@script
def selector_is_immutable(scene: Scene) -> None:
    """A selector may not change, has to select the template, and a template's label may not leave it."""
    idle(scene)
    other = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    scene.note("changed", scene.refusal(lambda: scene.merge("Deployment", "web", other)))
    label = {"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}
    scene.note("unselected", scene.refusal(lambda: scene.merge("Deployment", "web", label)))
    made = workload("Deployment", "bad", 1, scene.template(app="other"))
    scene.note("made so", scene.refusal(lambda: scene.create(made)))


@script
def pod_is_mostly_immutable(scene: Scene) -> None:
    """A field of a pod that is there may not change, but for image, tolerations added, and metadata."""
    scene.create(pod("web", scene.template()))
    scene.until("it to serve", lambda: scene.ready() == ["web"])
    selector = {"spec": {"nodeSelector": {"a": "b"}}}
    scene.note("nodeSelector", scene.refusal(lambda: scene.merge("Pod", "web", selector)))
    label = {"metadata": {"labels": {"a": "b"}}}
    scene.note("label", scene.refusal(lambda: scene.merge("Pod", "web", label)))
    borne = [*scene.get("Pod", "web")["spec"]["tolerations"], {"key": "a", "operator": "Exists"}]
    scene.note(
        "toleration", scene.refusal(lambda: scene.merge("Pod", "web", {"spec": {"tolerations": borne}}))
    )
    scene.note("node", scene.refusal(lambda: scene.merge("Pod", "web", {"spec": {"nodeName": "other"}})))


def events_as_words(events: list[Raw]) -> list[str]:
    """Return events as words, with what they are about."""
    return [f"{each['type']} {each['object']['metadata'].get('name', '')}".strip() for each in events]


@script
def watch_by_a_selector(scene: Scene) -> None:
    """A watch with a selector tells of an object that begins to match as ADDED, and ceases as DELETED."""
    version = scene.listed("ConfigMap")["metadata"]["resourceVersion"]
    scene.create(labelled(of_kind("ConfigMap", "in"), a="yes"))
    scene.create(of_kind("ConfigMap", "out"))
    scene.merge("ConfigMap", "in", {"data": {"b": "1"}})
    scene.merge("ConfigMap", "out", {"metadata": {"labels": {"a": "yes"}}})
    scene.merge("ConfigMap", "in", {"metadata": {"labels": {"a": "no"}}})
    scene.merge("ConfigMap", "in", {"data": {"b": "2"}})
    scene.delete("ConfigMap", "out")
    query = {"labelSelector": "a=yes", "resourceVersion": version}
    events = scene.ground.watch(scene.path("ConfigMap"), query)
    scene.note("events", events_as_words(events))
    labels = [each["object"]["metadata"]["labels"] for each in events if each["type"] == "DELETED"]
    scene.note("labels at the end", labels)


@script
def watch_from_a_version(scene: Scene) -> None:
    """A watch goes on from a resourceVersion: it tells what came after it, and nothing before."""
    first = config(scene, "first")
    config(scene, "second")
    scene.merge("ConfigMap", "second", {"data": {"a": "1"}})
    scene.delete("ConfigMap", "first")
    query = {
        "resourceVersion": first["metadata"]["resourceVersion"],
        "fieldSelector": "metadata.name!=kube-root-ca.crt",
    }
    events = scene.ground.watch(scene.path("ConfigMap"), query)
    scene.note("events", events_as_words(events))
    newer = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    scene.note("in order", newer == sorted(newer))


@script
def watch_from_the_beginning(scene: Scene) -> None:
    """A watch without a resourceVersion begins with what is there, as ADDED."""
    config(scene, "first")
    query = {"fieldSelector": "metadata.name=first"}
    scene.note("events", events_as_words(scene.ground.watch(scene.path("ConfigMap"), query)))


@script
def watch_from_a_forgotten_version(scene: Scene) -> None:
    """A watch from a version that is forgotten ends with an ERROR event, 410 Expired."""
    path, version = scene.ground.forgotten()
    (event, *_) = scene.ground.watch(path, {"resourceVersion": version})
    scene.note("event", [event["type"], event["object"]["code"], event["object"]["reason"]])


@script
def watch_bookmarks(scene: Scene) -> None:
    """Bookmarks carry nothing but a kind and a resourceVersion."""
    config(scene, "first")
    query = {
        "allowWatchBookmarks": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan",
        "fieldSelector": "metadata.name=first",
    }  # fmt: skip
    events = scene.ground.watch(scene.path("ConfigMap"), query)
    scene.note("events", [each["type"] for each in events][:2])
    mark: Raw = next((each["object"] for each in events if each["type"] == "BOOKMARK"), {})
    scene.note("kind", mark.get("kind"))
    scene.note("metadata", sorted(key for key, value in mark.get("metadata", {}).items() if value))
    scene.note("initial", mark.get("metadata", {}).get("annotations"))


@script
def list_in_pages(scene: Scene) -> None:
    """A list with a limit goes on by its continue token, with one resourceVersion, to the end."""
    for number in range(5):
        scene.create(labelled(of_kind("ConfigMap", f"c-{number}"), paged="yes"))
    first = scene.listed("ConfigMap", limit="2", labelSelector="paged=yes")
    config(scene, "c-9")
    pages = [first]
    while token := pages[-1]["metadata"].get("continue"):
        more = {"limit": "2", "labelSelector": "paged=yes", "continue": token}
        pages.append(scene.listed("ConfigMap", **more))
    scene.note("pages", [[raw["metadata"]["name"] for raw in page["items"]] for page in pages])
    scene.note("one version", len({page["metadata"]["resourceVersion"] for page in pages}))
    scene.note("bad token", scene.refusal(lambda: scene.listed("ConfigMap", **{"continue": "nonsense"})))


@script
def lists_by_labels(scene: Scene) -> None:
    """Label selectors: equality, sets, existence, and what is absent."""
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2", "y": "1"}), ("c", {"y": "2"})):
        scene.create(labelled(of_kind("ConfigMap", name), own="yes", **labels))
    for selector in ("x=1", "x!=1", "x in (1,2)", "x notin (1)", "y", "!y", "x=2,y=1"):
        matching = scene.listed("ConfigMap", labelSelector=f"own=yes,{selector}")["items"]
        scene.note(selector, [raw["metadata"]["name"] for raw in matching])
    scene.note("malformed", scene.refusal(lambda: scene.listed("ConfigMap", labelSelector="x in 1")))
    scene.note("unknown field", scene.refusal(lambda: scene.listed("ConfigMap", fieldSelector="data.a=1")))


@script
def lists_by_node(scene: Scene) -> None:
    """Pods are listed by their node."""
    scene.create(pod("web", scene.template()))
    scene.all_ready(1)
    node = scene.get("Pod", "web")["spec"]["nodeName"]
    matching = scene.listed("Pod", fieldSelector=f"spec.nodeName={node}")["items"]
    scene.note("there", [raw["metadata"]["name"] for raw in matching])
    scene.note("elsewhere", scene.listed("Pod", fieldSelector="spec.nodeName=other")["items"])


@script
def finalizers(scene: Scene) -> None:
    """An object with a finalizer is marked by its deletion, and goes when the last finalizer does."""
    config(scene)
    scene.merge("ConfigMap", "settings", {"metadata": {"finalizers": ["example.com/held"]}})
    answer = scene.delete("ConfigMap", "settings")
    scene.note("marked", trace.is_ending(answer))
    scene.note("again", scene.refusal(lambda: scene.delete("ConfigMap", "settings")))
    scene.note("still there", scene.refusal(lambda: scene.get("ConfigMap", "settings")))
    more = {"metadata": {"finalizers": ["example.com/held", "example.com/more"]}}
    scene.note("one more", scene.refusal(lambda: scene.merge("ConfigMap", "settings", more)))
    scene.merge("ConfigMap", "settings", {"metadata": {"finalizers": None}})
    scene.note("gone", scene.refusal(lambda: scene.get("ConfigMap", "settings")))


@script
def deletion_of_pods(scene: Scene) -> None:
    """A pod with a node ends by its grace; without a node, or with grace 0, it is gone at once."""
    scene.create(pod("bound", scene.template(ends_after="15s")))
    scene.all_ready(1)
    answer = scene.delete("Pod", "bound")
    scene.note("marked", [trace.is_ending(answer), answer["metadata"].get("deletionGracePeriodSeconds")])
    scene.note(
        "shorter",
        scene.delete("Pod", "bound", gracePeriodSeconds=3)["metadata"]["deletionGracePeriodSeconds"],
    )
    scene.delete("Pod", "bound", gracePeriodSeconds=0)
    scene.note("gone", scene.refusal(lambda: scene.get("Pod", "bound")))
    scene.home = "nowhere"
    scene.create(pod("unbound", scene.template()))
    scene.until("it to wait", lambda: bool(scene.get("Pod", "unbound")["status"].get("conditions")))
    scene.delete("Pod", "unbound")
    scene.note("unbound", scene.refusal(lambda: scene.get("Pod", "unbound")))


@script
def scale_subresource(scene: Scene) -> None:
    """The scale subresource shows and sets replicas, and raises the generation."""
    idle(scene)
    before = scene.get("Deployment", "web")["metadata"]["generation"]
    scale = scene.ground.request("GET", scene.path("Deployment", "web", "scale"))
    scene.note("kind", [scale["apiVersion"], scale["kind"], scale["spec"], scale["status"].get("selector")])
    scene.note("set", scene.scale("Deployment", "web", 1)["spec"])
    scene.at_rest("Deployment", "web")
    after = scene.get("Deployment", "web")
    scene.note("generation", after["metadata"]["generation"] - before)
    old = scene.ground.request("GET", scene.path("Deployment", "web", "scale"))
    scene.merge("Deployment", "web", {"metadata": {"labels": {"a": "b"}}})
    scene.note("conflict", scene.refusal(lambda: scene.ground.request(
        "PUT", scene.path("Deployment", "web", "scale"), body={**old, "spec": {"replicas": 2}}
    )))  # fmt: skip


@script
def quota_on_pods(scene: Scene) -> None:
    """A quota on pods refuses the one too many with 403, and counts what is there."""
    scene.create(of_kind("ResourceQuota", "few", spec={"hard": {"pods": "1"}}))
    scene.until("the quota to count", lambda: "hard" in scene.get("ResourceQuota", "few").get("status", {}))
    scene.create(pod("first", scene.template()))
    refused = scene.refusal(lambda: scene.create(pod("second", scene.template())), message=True)
    scene.note("refused", refused)
    scene.note("dry run", scene.refusal(lambda: scene.create(pod("second", scene.template()), dryRun="All")))
    scene.note("used", scene.get("ResourceQuota", "few")["status"]["used"])
    scene.delete("Pod", "first", gracePeriodSeconds=0)
    scene.until("room again", lambda: scene.get("ResourceQuota", "few")["status"]["used"] == {"pods": "0"})
    scene.create(pod("second", scene.template()))
    scene.all_ready(1)
    scene.lives_vary()


@script
def quota_on_requests(scene: Scene) -> None:
    """A quota on requests refuses pods that make none, and the sum that is too much."""
    scene.create(of_kind("ResourceQuota", "few", spec={"hard": {"requests.cpu": "1"}}))
    scene.until("the quota to count", lambda: "hard" in scene.get("ResourceQuota", "few").get("status", {}))
    scene.note("none", scene.refusal(lambda: scene.create(pod("none", scene.template())), message=True))

    def asking(name: str, cpu: str) -> Raw:
        made = pod(name, scene.template())
        container = {**made["spec"]["containers"][0], "resources": {"requests": {"cpu": cpu}}}
        return scene.create({**made, "spec": {**made["spec"], "containers": [container]}})

    asking("first", "600m")
    scene.note("too much", scene.refusal(lambda: asking("second", "600m"), message=True))
    scene.all_ready(1)


@script
def policy_refuses(scene: Scene) -> None:
    """A policy that does not hold refuses with 422 and its message, in a dry run too."""

    def judge(_operation: str, new: Raw, _old: Raw) -> str:
        replicas = new["spec"]["replicas"]
        return "at least two replicas" if replicas < 2 else ""

    policy = Policy(
        "two-replicas", "apps", "deployments", ("CREATE", "UPDATE"), judge,
        holds="object.spec.replicas >= 2", message="at least two replicas",
    )  # fmt: skip
    scene.ground.admit(policy)
    scene.lives_vary()
    few, enough = (workload("Deployment", "web", count, scene.template()) for count in (1, 2))
    scene.until(
        "the policy to be in force",
        lambda: scene.refusal(lambda: scene.create(few, dryRun="All")) != "accepted",
    )
    scene.note(
        "refused",
        scene.refusal(lambda: scene.create(few), message=True).replace(scene.namespace, "NAMESPACE"),
    )
    scene.create(enough)
    scene.at_rest("Deployment", "web")
    scene.note("update", scene.refusal(lambda: scene.merge("Deployment", "web", {"spec": {"replicas": 1}})))
    scene.note("scale", scene.refusal(lambda: scene.scale("Deployment", "web", 1)))  # another resource
    scene.end_varies()


@script
def policy_mutates(scene: Scene) -> None:
    """A mutating policy changes what is created, before it is stored and before others judge it."""
    scene.end_varies()

    def judge(_operation: str, new: Raw, _old: Raw) -> str:
        new["metadata"].setdefault("labels", {})["team"] = "shop"
        return ""

    policy = Policy(
        "team-label", "apps", "deployments", ("CREATE",), judge,
        sets='Object{metadata: Object.metadata{labels: {"team": "shop"}}}',
    )  # fmt: skip
    scene.ground.admit(policy)
    made = workload("Deployment", "web", 0, scene.template())

    def label(raw: Raw) -> str | None:
        matching: str | None = (raw["metadata"].get("labels") or {}).get("team")
        return matching

    scene.until("the policy to be in force", lambda: label(scene.create(made, dryRun="All")) == "shop")
    scene.create(made)
    scene.note("label", label(scene.get("Deployment", "web")))
    scene.merge("Deployment", "web", {"metadata": {"labels": {"team": None}}})
    scene.note("after an update", label(scene.get("Deployment", "web")))


@script
def rights(scene: Scene) -> None:
    """Rights: what no rule allows is 403, by verb, resource and subresource."""
    user = f"reader-{scene.namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    scene.create({**of_kind("Role", "reader"), "rules": rules})
    bound = {
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    }
    scene.create({**of_kind("RoleBinding", "reader"), **bound})
    config(scene)

    def asked(method: str, path: str, body: object = None) -> str:
        return scene.refusal(lambda: scene.ground.request(method, path, body=body, user=user)).replace(
            user, "USER"
        )

    path = scene.path("ConfigMap", "settings")
    scene.until("the rule to count", lambda: asked("GET", path) == "accepted")
    scene.note("get", asked("GET", path))
    scene.note("list", asked("GET", scene.path("ConfigMap")))
    scene.note("delete", asked("DELETE", path))
    scene.note("create", asked("POST", scene.path("ConfigMap"), of_kind("ConfigMap", "other")))
    scene.note("of another kind", asked("GET", scene.path("Pod")))
    scene.note("of all namespaces", asked("GET", "/api/v1/configmaps"))
    scene.note("of what is not there", asked("GET", scene.path("Pod", "none")))
    message = scene.refusal(
        lambda: scene.ground.request("GET", scene.path("Pod", "none"), user=user), message=True
    )
    scene.note("message", message.replace(user, "USER"))


@script
def namespace_in_deletion(scene: Scene) -> None:
    """In a namespace that is being deleted nothing is created: 403."""
    name = f"{scene.namespace}-ends"
    scene.create({**of_kind("Namespace", name), "spec": {}})
    path = f"/api/v1/namespaces/{name}/configmaps"
    scene.ground.request("POST", path, body={**of_kind("ConfigMap", "held"), "metadata": {
        "name": "held", "finalizers": ["example.com/held"],
    }})  # fmt: skip
    scene.ground.request("DELETE", f"/api/v1/namespaces/{name}")
    asked = scene.refusal(lambda: scene.ground.request("POST", path, body=of_kind("ConfigMap", "late")))
    scene.note("refused", asked)
    scene.note("phase", scene.ground.request("GET", f"/api/v1/namespaces/{name}")["status"]["phase"])
    scene.ground.request("PATCH", f"{path}/held", body={"metadata": {"finalizers": None}}, content_type=MERGE)
    scene.until(
        "it to be gone",
        lambda: (
            scene.refusal(lambda: scene.ground.request("GET", f"/api/v1/namespaces/{name}")) != "accepted"
        ),
    )


@script
def unknown_fields_are_dropped(scene: Scene) -> None:
    """Unknown fields are dropped without a word where they are not asked to be checked."""
    scene.end_varies()
    made = workload("Deployment", "web", 0, scene.template(), nonsense=True)
    scene.note("kept", "nonsense" in scene.create(made)["spec"])


@script
def defaults(scene: Scene) -> None:
    """Defaults are filled in when an object is written."""
    idle(scene)
    spec = scene.get("Deployment", "web")["spec"]
    names = ("progressDeadlineSeconds", "revisionHistoryLimit", "strategy")
    scene.note("of a Deployment", {name: spec[name] for name in names})
    inner = spec["template"]["spec"]
    inner_names = ("restartPolicy", "terminationGracePeriodSeconds", "dnsPolicy", "schedulerName")
    scene.note("of a pod", {name: inner[name] for name in inner_names})
    scene.note("of a container", inner["containers"][0]["imagePullPolicy"])


@script
def apply_gives_up_replicas(scene: Scene) -> None:
    """A number of replicas that is given up falls back to 1, unless another manages it by then."""
    scene.end_varies()
    made = workload("Deployment", "web", 0, scene.template())
    without = {**made, "spec": {name: value for name, value in made["spec"].items() if name != "replicas"}}
    scene.apply(made, "owner")
    shared = {**of_kind("Deployment", "web"), "spec": {"replicas": 0}}
    scene.apply(shared, "autoscaler")
    scene.note("given up to another", scene.apply(without, "owner", dryRun="All")["spec"]["replicas"])
    scene.apply(of_kind("Deployment", "web"), "autoscaler")
    scene.note("given up by the last", scene.apply(without, "owner", dryRun="All")["spec"]["replicas"])


@script
def scale_has_a_manager_of_its_own(scene: Scene) -> None:
    """Replicas set by the scale subresource are managed by who set them: another apply conflicts."""
    scene.end_varies()
    made = workload("Deployment", "web", 0, scene.template())
    scene.apply(made, "owner")
    changed = {"spec": {"replicas": 2}}
    scene.merge("Deployment", "web", changed, "scale", fieldManager="autoscaler", dryRun="All")
    scene.merge("Deployment", "web", {"spec": {"replicas": 1}}, "scale", fieldManager="autoscaler")
    web = scene.get("Deployment", "web")
    scene.note("managers", [each for each in managers(web) if "kube-controller-manager" not in each])
    scene.note("refused", scene.refusal(lambda: scene.apply(made, "owner")))
    scene.at_rest("Deployment", "web")
