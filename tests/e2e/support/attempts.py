"""What splitter's own account must not do: `ATTEMPTS`, each with words of the sentence that refuses it.

The account may do everything in the namespace of the test (`own_account.staged`): the policy alone answers.
"""

from collections.abc import Callable

from e2e.support.own_account import (
    OURS,
    STRATEGIC,
    Stage,
    adopting_like,
    contained,
    guarding,
    image,
    labelled,
    metadata,
    orphaning,
    others,
    owner_of,
    owner_off,
    parked_like,
    placeholder,
    same,
    split_of,
    twin_of,
    written_by,
)
from lab.fixtures.shop import JsonObject, manifest
from lab.sandbox import PatchKind

CREATES_TWINS = "creates twins only"
DELETES_TWINS = "deletes twins only"
OWN_WORKLOADS = "changes only its twins"
OF_A_SOURCE = "changes of a source only the mark splitter.io/taken-over and the pause"
TWIN_STAYS = "leaves a twin its labels and its controller"
WAY_BACK = "creates ReplicaSets only that adopt pods for the Deployment that controls them"
DELETES_PARKED = "deletes ReplicaSets only that have no replicas"
CHANGES_SETS = "changes only ReplicaSets that a Deployment controls or that are parked"
SCALES_PARKED = "scales parked ReplicaSets only"
PARKS = "parks a ReplicaSet by taking labels off"
GIVES_BACK = "gives a parked ReplicaSet labels back"
EVICTS_THIS = "evicts pods with their UID only, and with the time that they are given to end"
ONLY_COST = "changes the deletion cost of a pod and, of one that a ReplicaSet has made, the labels"
PLACEHOLDERS = "creates no pods but placeholders"
IN_BACKGROUND = "deletes in the background, what depends on it too"
LEFT_OUT = "writes nothing of this kind in its own namespace, nor in those that it leaves alone"
DELETES_PODS = "deletes only its placeholders, pods that a ReplicaSet or a StatefulSet"
BUDGETS = "writes and deletes PodDisruptionBudgets only that a Split controls"
OWNED_SPLITS = "writes a Split only as a part of the source"

MORE_THAN_A_PLACEHOLDER: dict[str, JsonObject] = {
    "a node": {"nodeName": "on-demand-0"},
    "the node's processes": {"hostPID": True},
    "the node's network": {"hostNetwork": True},
    "the node's memory": {"hostIPC": True},
    "the node's disk": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
    "a Secret": {"volumes": [{"name": "s", "secret": {"secretName": "any"}}]},
    "another account": {"serviceAccountName": "other"},
    "a token": {"automountServiceAccountToken": True},
    "what may be a token": {"automountServiceAccountToken": None},
    "another priority": {"priorityClassName": "system-cluster-critical"},
    "no priority": {"priorityClassName": None},
    "a root user": {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}},
    "any user": {"securityContext": {}},
    "an init container": {"initContainers": contained(name="first")["containers"]},
    "more rights than its process": contained(security={"allowPrivilegeEscalation": True}),
    "perhaps more rights than its process": contained(security={"allowPrivilegeEscalation": None}),
    "a capability": contained(security={"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
    "all capabilities": contained(security={"capabilities": {}}),
    "a root container": contained(security={"runAsUser": 0, "runAsNonRoot": False}),
    "a command": contained(command=["sh"]),
    "arguments": contained(args=["-c"]),
    "a hook": contained(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}),
    "a probe": contained(livenessProbe={"exec": {"command": ["sh"]}}),
    "a Secret in a variable": contained(
        env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": "any", "key": "k"}}}]
    ),
    "Secrets in variables": contained(envFrom=[{"secretRef": {"name": "any"}}]),
}
ATTEMPTS: dict[str, tuple[str, Callable[[Stage], object]]] = {
    # --- Deployments and StatefulSets that are nobody's business ---
    "create a workload": (CREATES_TWINS, lambda s: s.create("deployments", manifest("evil", 1))),
    "create a twin that nobody controls": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("web", "web-spot-2", controller=False)),
    ),
    "create a twin under another name": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("web", "evil")),
    ),
    "create a twin of a DaemonSet": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("daemonset", "daemonset-spot", kind="DaemonSet")),
    ),
    "create a twin of a path": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("../../shop/deployments/web", "web-spot")),
    ),
    "create a twin of a StatefulSet of another kind": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("statefulset", "statefulset-spot", kind="StatefulSet")),
    ),
    "create a twin of an older API": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("plain", "plain-spot", apiVersion="apps/v1beta1")),
    ),
    "create a twin of somebody's API": (
        CREATES_TWINS,
        lambda s: s.create("deployments", twin_of("plain", "plain-spot", apiVersion="apps.example/v1")),
    ),
    "apply a workload": (
        CREATES_TWINS,
        lambda s: s.patch("deployments", "evil", manifest("evil", 1), PatchKind.APPLY),
    ),
    "change an image": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", image(), STRATEGIC)),
    "scale": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", {"spec": {"replicas": 0}})),
    "pause": (OWN_WORKLOADS, lambda s: s.patch("deployments", "plain", {"spec": {"paused": True}})),
    "label it a source": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(labels={"splitter.io/split": "enabled"})),
    ),
    "mark it taken over": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(annotations={"splitter.io/taken-over": "{}"})),
    ),
    "label it a twin": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "plain", metadata(labels={"splitter.io/pool": "spot"})),
    ),
    # --- what a tenant calls a twin ---
    "change what is not called as a twin": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "copied", image(), STRATEGIC),
    ),
    "delete what is not called as a twin": (DELETES_TWINS, lambda s: s.delete("deployments", "copied")),
    "change what is called as the twin of another": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "other-spot", image(), STRATEGIC),
    ),
    "scale what is called as the twin of another": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "other-spot", {"spec": {"replicas": 3}}),
    ),
    "delete what is called as the twin of another": (
        DELETES_TWINS,
        lambda s: s.delete("deployments", "other-spot"),
    ),
    "change a Deployment that is a StatefulSet's": (
        OWN_WORKLOADS,
        lambda s: s.patch("deployments", "statefulset-spot", image(), STRATEGIC),
    ),
    "delete a Deployment that is a StatefulSet's": (
        DELETES_TWINS,
        lambda s: s.delete("deployments", "statefulset-spot"),
    ),
    "delete it": (DELETES_TWINS, lambda s: s.delete("deployments", "plain")),
    "change a StatefulSet's image": (
        OWN_WORKLOADS,
        lambda s: s.patch("statefulsets", "statefulset", image(), STRATEGIC),
    ),
    "scale a StatefulSet": (
        OWN_WORKLOADS,
        lambda s: s.patch("statefulsets", "statefulset", {"spec": {"replicas": 0}}),
    ),
    "delete a StatefulSet": (DELETES_TWINS, lambda s: s.delete("statefulsets", "statefulset")),
    # --- a source ---
    "delete a source": (DELETES_TWINS, lambda s: s.delete("deployments", "web")),
    "change a source's image": (OF_A_SOURCE, lambda s: s.patch("deployments", "web", image(), STRATEGIC)),
    "scale a source": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", {"spec": {"replicas": 0}}),
    ),
    "change a source's strategy": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", {"spec": {"strategy": None, "minReadySeconds": 9}}),
    ),
    "change a source's labels": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(labels={"splitter.io/split": None})),
    ),
    "change a source's annotations": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(annotations={"splitter.io/spot-max": "9"})),
    ),
    "put a finalizer on a source": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(finalizers=["splitter.io/keep"])),
    ),
    "save a Deployment's count": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(annotations={"splitter.io/replicas": "4"})),
    ),
    "give a source an owner": (
        OF_A_SOURCE,
        lambda s: s.patch("deployments", "web", metadata(ownerReferences=[owner_of("plain")])),
    ),
    "replace a source": (
        OF_A_SOURCE,
        lambda s: s.put("deployments", "web", {**manifest("web", 4), "metadata": same(s, "web")}),
    ),
    "forget who wrote a source": (
        OF_A_SOURCE,
        lambda s: written_by(s, "deployments", "web", lambda _: [{}]),
    ),
    "forget one who wrote a source": (
        OF_A_SOURCE,
        lambda s: written_by(s, "deployments", "web", lambda all_: [e for e in all_ if e != others(all_)[0]]),
    ),
    "invent one who wrote a source": (
        OF_A_SOURCE,
        lambda s: written_by(
            s, "deployments", "web", lambda all_: [*all_, {**others(all_)[0], "manager": "evil"}]
        ),
    ),
    "have another own more of a source": (
        OF_A_SOURCE,
        lambda s: written_by(
            s,
            "deployments",
            "web",
            lambda all_: [
                {**e, "fieldsV1": {**e["fieldsV1"], "f:spec": {"f:revisionHistoryLimit": {}}}}
                if e in others(all_)
                else e
                for e in all_
            ],
        ),
    ),
    # --- a twin ---
    "take a twin's label": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(labels={"splitter.io/split": None})),
    ),
    "turn a twin into the other": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(labels={"splitter.io/pool": "on-demand"})),
    ),
    "take a twin's controller": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(ownerReferences=None)),
    ),
    "give a twin another controller": (
        TWIN_STAYS,
        lambda s: s.patch("deployments", "web-spot", metadata(ownerReferences=[owner_of("plain")])),
    ),
    # --- ReplicaSets ---
    "create a ReplicaSet with replicas": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, replicas=1)),
    ),
    "create a ReplicaSet that is not parked": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, labels={"app": "web"})),
    ),
    "create a ReplicaSet under another name": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, name="evil")),
    ),
    "create a ReplicaSet of nobody's": (
        WAY_BACK,
        lambda s: s.create("replicasets", parked_like(s, ownerReferences=[])),
    ),
    "create a ReplicaSet of an older API": (
        WAY_BACK,
        lambda s: s.create(
            "replicasets",
            parked_like(s, ownerReferences=[{**owner_of("web", "apps/v1beta1"), "controller": False}]),
        ),
    ),
    "create a ReplicaSet that adopts under another name": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, name="evil-1")),
    ),
    "create a ReplicaSet that adopts and is called parked": (
        WAY_BACK,
        lambda s: s.create("replicasets", labelled(adopting_like(s), "parked")),
    ),
    "create a ReplicaSet that adopts and is called a twin": (
        WAY_BACK,
        lambda s: s.create("replicasets", labelled(adopting_like(s), "twin")),
    ),
    "create a ReplicaSet that adopts for a StatefulSet": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, kind="StatefulSet")),
    ),
    "create a ReplicaSet that adopts for nobody": (
        WAY_BACK,
        lambda s: s.create("replicasets", adopting_like(s, controller=False)),
    ),
    "orphan the pods of whatever ReplicaSet": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "{attached}", propagationPolicy="Orphan", preconditions=None),
    ),
    "orphan the pods of a ReplicaSet as it may be": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "{attached}", propagationPolicy="Orphan"),
    ),
    "orphan the pods of nobody's ReplicaSet": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", "lone", **orphaning(s, "lone")),
    ),
    "delete a twin's ReplicaSet with its pods": (
        DELETES_PARKED,
        lambda s: s.delete("replicasets", s.names["of_twin"]),
    ),
    "forget who wrote a ReplicaSet": (
        CHANGES_SETS,
        lambda s: written_by(s, "replicasets", "{attached}", lambda _: [{}]),
    ),
    "delete a twin and leave its ReplicaSets": (
        IN_BACKGROUND,
        lambda s: s.delete("deployments", "web-spot", propagationPolicy="Orphan"),
    ),
    "delete a Split and leave its guard": (
        IN_BACKGROUND,
        lambda s: s.delete("splits", "web", propagationPolicy="Orphan"),
    ),
    "create a budget that lets nothing go": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, spec={"minAvailable": "100%"})),
    ),
    "create a budget of the pods of another workload": (
        BUDGETS,
        lambda s: s.create(
            "poddisruptionbudgets",
            guarding(s, spec={"selector": {"matchLabels": {"splitter.io/source": "plain"}}}),
        ),
    ),
    "create a budget under the name of another Split": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, metadata={"name": "plain-guard"})),
    ),
    "create a budget of nobody's": (
        BUDGETS,
        lambda s: s.create(
            "poddisruptionbudgets",
            guarding(s, metadata={"ownerReferences": [], "labels": {"splitter.io/source": "web"}}),
        ),
    ),
    "create a budget of another name": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, metadata={"name": "blocking"})),
    ),
    "create a budget of all pods": (
        BUDGETS,
        lambda s: s.create("poddisruptionbudgets", guarding(s, spec={"selector": {}})),
    ),
    "change a user's budget": (
        BUDGETS,
        lambda s: s.patch("poddisruptionbudgets", "users", {"spec": {"maxUnavailable": 2}}),
    ),
    "delete a user's budget": (BUDGETS, lambda s: s.delete("poddisruptionbudgets", "users")),
    "delete a ReplicaSet": (DELETES_PARKED, lambda s: s.delete("replicasets", "{attached}")),
    "delete a ReplicaSet of nobody's": (DELETES_PARKED, lambda s: s.delete("replicasets", "lone")),
    "park a ReplicaSet of nobody's": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "lone", metadata(labels={"splitter.io/split": "parked"})),
    ),
    "change a ReplicaSet's image": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "{attached}", image(), STRATEGIC),
    ),
    "change a parked ReplicaSet's image": (
        CHANGES_SETS,
        lambda s: s.patch("replicasets", "{parked}", image(), STRATEGIC),
    ),
    "annotate a ReplicaSet": (
        CHANGES_SETS,
        lambda s: s.patch(
            "replicasets",
            "{attached}",
            metadata(annotations={"deployment.kubernetes.io/revision": "9"}),
        ),
    ),
    "scale a ReplicaSet": (
        SCALES_PARKED,
        lambda s: s.patch("replicasets", "{attached}", {"spec": {"replicas": 0}}),
    ),
    "relabel a ReplicaSet": (
        PARKS,
        lambda s: s.patch("replicasets", "{attached}", metadata(labels={"app": "evil"})),
    ),
    "take a ReplicaSet from its Deployment": (
        PARKS,
        lambda s: s.patch(
            "replicasets",
            "{attached}",
            metadata(ownerReferences=None, labels={"splitter.io/split": "parked"}),
        ),
    ),
    "give a parked ReplicaSet a controller": (
        GIVES_BACK,
        lambda s: s.patch("replicasets", "{parked}", metadata(ownerReferences=[owner_of("plain")])),
    ),
    "give a parked ReplicaSet back with labels of another": (
        GIVES_BACK,
        lambda s: s.patch(
            "replicasets", "{parked}", metadata(labels={"splitter.io/split": None, "tier": "evil"})
        ),
    ),
    "give a parked ReplicaSet other labels": (
        GIVES_BACK,
        lambda s: s.patch("replicasets", "{parked}", metadata(labels={"app": "evil"})),
    ),
    # --- pods ---
    "create a pod": (PLACEHOLDERS, lambda s: s.create("pods", placeholder(s, ownerReferences=[]))),
    "create a pod of a Deployment": (
        PLACEHOLDERS,
        lambda s: s.create("pods", placeholder(s, ownerReferences=[owner_of("plain")])),
    ),
    "create a pod with two owners": (
        PLACEHOLDERS,
        lambda s: s.create(
            "pods",
            placeholder(
                s,
                ownerReferences=[
                    *placeholder(s)["metadata"]["ownerReferences"],
                    {**owner_of("plain"), "controller": False},
                ],
            ),
        ),
    ),
    "create a pod without the label": (PLACEHOLDERS, lambda s: s.create("pods", placeholder(s, labels={}))),
    "create a placeholder that cannot go": (
        PLACEHOLDERS,
        lambda s: s.create("pods", placeholder(s, finalizers=["splitter.io/keep"])),
    ),
    **{
        f"create a placeholder with {what}": (
            PLACEHOLDERS,
            lambda s, spec=spec: s.create("pods", placeholder(s, spec)),  # type: ignore[misc]
        )
        for what, spec in MORE_THAN_A_PLACEHOLDER.items()
    },
    **{
        f"label {what}": (
            ONLY_COST,
            lambda s, name=name: s.patch("pods", name, metadata(labels=OURS)),  # type: ignore[misc]
        )
        for what, name in {
            "a bare pod": "bare",
            "a DaemonSet's pod": "{daemon}",
            "a StatefulSet's pod": "{stateful}",
        }.items()
    },
    "delete a pod that is labelled and that no ReplicaSet has made": (
        DELETES_PODS,
        lambda s: s.delete("pods", "labelled"),
    ),
    "delete a pod that a ReplicaSet has let go by force": (
        DELETES_PODS,
        lambda s: s.delete("pods", "loose", gracePeriodSeconds=0),
    ),
    "forget who wrote a pod": (
        ONLY_COST,
        lambda s: written_by(s, "pods", "{pod}", lambda _: [{}]),
    ),
    "evict a pod under whatever UID": (EVICTS_THIS, lambda s: s.evict("{pod}", preconditions=None)),
    "evict a pod by force": (EVICTS_THIS, lambda s: s.evict("{pod}", gracePeriodSeconds=0)),
    "evict a DaemonSet's pod by force": (EVICTS_THIS, lambda s: s.evict("{daemon}", gracePeriodSeconds=0)),
    "change a pod's image": (
        ONLY_COST,
        lambda s: s.patch(
            "pods", "{pod}", {"spec": {"containers": [{"name": "web", "image": "evil:1"}]}}, STRATEGIC
        ),
    ),
    "relabel a pod": (ONLY_COST, lambda s: s.patch("pods", "{pod}", metadata(labels={"app": None}))),
    "change a pod's hash": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(labels={"pod-template-hash": "evil"})),
    ),
    "annotate a pod": (ONLY_COST, lambda s: s.patch("pods", "{pod}", metadata(annotations={"a": "b"}))),
    "take the owner off a pod": (
        ONLY_COST,
        lambda s: s.patch_for_good("pods", "{pod}", owner_off(s), STRATEGIC),
    ),
    "give a pod another owner in a dry run": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(ownerReferences=[owner_of("plain")])),
    ),
    "relabel a pod whose owner is taken off in a dry run": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(ownerReferences=None, labels={"app": "evil"})),
    ),
    "put a finalizer on a pod": (
        ONLY_COST,
        lambda s: s.patch("pods", "{pod}", metadata(finalizers=["splitter.io/keep"])),
    ),
    "delete a bare pod": (DELETES_PODS, lambda s: s.delete("pods", "bare")),
    "delete a DaemonSet's pod": (DELETES_PODS, lambda s: s.delete("pods", "{daemon}")),
    "delete a pod by force": (DELETES_PODS, lambda s: s.delete("pods", "{pod}", gracePeriodSeconds=0)),
    "delete a pod under whatever UID": (
        DELETES_PODS,
        lambda s: s.delete("pods", "{pod}", preconditions=None),
    ),
    # --- Splits ---
    "create a Split of nobody's": (
        OWNED_SPLITS,
        lambda s: s.create("splits", split_of(s, "plain", owner="web")),
    ),
    "create a Split under another name": (
        OWNED_SPLITS,
        lambda s: s.create("splits", split_of(s, "web", owner="web", name="other")),
    ),
    "create a Split of a path": (
        OWNED_SPLITS,
        lambda s: s.create("splits", split_of(s, "../../shop/splits/web", owner="web", name="other")),
    ),
    "create a Split of an older API": (
        OWNED_SPLITS,
        lambda s: s.create("splits", split_of(s, "plain", owner="web", name="plain", api="apps/v1beta1")),
    ),
    "take a Split from its source": (
        OWNED_SPLITS,
        lambda s: s.patch("splits", "web", metadata(ownerReferences=[owner_of("plain")])),
    ),
}
