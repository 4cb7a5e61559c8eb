"""Both kustomizations, applied and taken away as a user does, in a cluster of their own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.admission import checked, steadily
from e2e.support.installed import NAMESPACE, pod_template, running, settings, wait_available
from e2e.support.terminal import Terminal, reported
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import DEADLINE_S, JsonObject, Shop, manifest
from lab.sandbox import Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
FIRST = 'Run "splitter uninstall -A" first'
# What no policy can keep: policies. They go last, so a second `kubectl delete -k` is not refused.
POLICY = "validatingadmissionpolicy.admissionregistration.k8s.io/splitter"
POLICIES = {
    f"{POLICY}-{name}"
    for name in ("own-account", "wrong-values", "ignored-keys", "keep-crd", "keep-controller", "priority")
}
CLUSTER_WIDE, NAMESPACED = str(bundled_path("manifests")), str(bundled_path("examples/namespaced"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sandbox]:
    """Yield a cluster with machines and nothing else."""
    with Sandbox.start() as sandbox:
        sandbox.fleet.add("on-demand", 2)
        sandbox.fleet.add("spot", 3)
        yield sandbox


def may(cluster: Sandbox, verb: str, group: str, resource: str, namespace: str) -> bool:
    """Ask the API server whether splitter's account may do something in a namespace."""
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    account = f"system:serviceaccount:{NAMESPACE}:splitter"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "resourceAttributes": attributes},
    }
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.fixture(scope="class")
def person(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """Return the shell of somebody who may do everything."""
    return Terminal(cluster.kubeconfig, tmp_path_factory.mktemp("person"))


@pytest.fixture(scope="class")
def installed(cluster: Sandbox, person: Terminal) -> Iterator[Sandbox]:
    """Yield the cluster with `kubectl apply -k manifests`."""
    yield from applied(cluster, person, CLUSTER_WIDE)


@pytest.fixture(scope="class")
def namespaced(cluster: Sandbox, person: Terminal) -> Iterator[Sandbox]:
    """Yield the cluster with `kubectl apply -k examples/namespaced`."""
    for namespace in ("shop", "other"):
        cluster.kubectl("create", "namespace", namespace)
    yield from applied(cluster, person, NAMESPACED)


def applied(cluster: Sandbox, person: Terminal, folder: str) -> Iterator[Sandbox]:
    """Install a kustomization; afterwards leave as a user does, and nothing is left."""
    apply(cluster, folder)
    yield cluster
    reported(person.splitter("uninstall", "-A", "--timeout", "60"))
    wait_until(
        lambda: steadily(lambda: not kept(cluster)), what="the policies to let it go", deadline_s=DEADLINE_S
    )
    cluster.kubectl("delete", "-k", folder)
    assert not existing(cluster)


def apply(cluster: Sandbox, folder: str) -> None:
    """Apply a kustomization, and wait until its last policy is in force."""
    cluster.kubectl("apply", "-k", folder)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/splits.splitter.io")
    wait_until(
        lambda: steadily(lambda: len(kept(cluster)) > 1),
        what="the policies to be in force",
        deadline_s=DEADLINE_S,
    )


def kept(cluster: Sandbox) -> list[str]:
    """Return what would be refused to whoever deletes it, of the CRD and the controller."""
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/splits.splitter.io"
    collected = []
    for path in (crd, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/splitter"):
        try:
            cluster.api.request("DELETE", path, body={"dryRun": ["All"]})
        except SandboxError as refusal:
            collected += [path] if FIRST in str(refusal) else []
    return collected


def existing(cluster: Sandbox) -> set[str]:
    """Return what is there of an installation, as kind/name, without its Namespace and what is in it."""
    kinds = "crd,clusterrole,clusterrolebinding,priorityclass,validatingadmissionpolicy,role,rolebinding"
    labels = ("-l", "app.kubernetes.io/name=splitter")
    return set(cluster.kubectl("get", kinds, "-A", *labels, "-o", "name").split())


class TestClusterWide:
    def test_its_pods_obey_the_restricted_standard(self, installed: Sandbox) -> None:
        """The namespace enforces "restricted", refuses a pod that falls short of it, and takes splitter's."""
        wait_available(installed)
        pod = pod_template(installed)["spec"]
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert (pod["enableServiceLinks"], pod["automountServiceAccountToken"]) == (False, True)
        container["securityContext"]["allowPrivilegeEscalation"] = True
        lax = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lax"}, "spec": pod}
        with pytest.raises(SandboxError, match=r'violates PodSecurity "restricted'):
            installed.kubectl("create", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(lax))

    def test_a_drain_is_not_held_up(self, installed: Sandbox) -> None:
        """The budget counts the controller's pods, and lets one go."""
        wait_available(installed)
        path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/splitter"
        replicas = installed.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/splitter")["spec"][
            "replicas"
        ]
        installed.kubectl(
            "wait",
            "-n",
            NAMESPACE,
            "--for=jsonpath={.status.disruptionsAllowed}=1",
            "--timeout=60s",
            "pdb/splitter",
        )
        assert installed.api.get(path)["status"]["expectedPods"] == replicas

    def test_it_splits_and_gives_back(self, installed: Sandbox, tmp_path: Path) -> None:
        """With the account and the settings that were applied, and nothing else."""
        with running(installed, tmp_path) as controller:
            for shop in open_shop(installed, controller, "anywhere"):
                shop.deploy(replicas=3, annotations=ASKED)
                shop.label()
                shop.wait_split(on_demand=1, spot=2)
                shop.unlabel()
                shop.wait_given_back()


# What a tenant may write and name as splitter's own; a Role called so is kept wherever it is.
LIKE_IT = (
    ("deployment", "splitter", ("--image=web:1",)),
    ("configmap", "splitter-settings", ()),
    ("serviceaccount", "splitter", ()),
    ("role", "splitter-tenant", ("--verb=get", "--resource=pods")),
    ("rolebinding", "splitter-tenant", ("--role=splitter-tenant", "--user=me")),
)


class TestTenants:
    def test_what_only_looks_like_it_may_go(self, installed: Sandbox) -> None:
        """Labelled and named as splitter's, but in another namespace: its owner may delete it, and that."""
        installed.kubectl("create", "namespace", "splitter-tenant")
        label = "app.kubernetes.io/name=splitter"
        for kind, name, options in LIKE_IT:
            installed.kubectl("-n", "splitter-tenant", "create", kind, name, *options)
            installed.kubectl("-n", "splitter-tenant", "label", "--overwrite", kind, name, label)
        installed.kubectl("label", "namespace", "splitter-tenant", label)
        assert len(kept(installed)) == 2
        for kind, name, _ in LIKE_IT:
            installed.kubectl("-n", "splitter-tenant", "delete", kind, name)
        installed.kubectl("delete", "namespace", "splitter-tenant")

    def test_what_is_it_may_not(self, installed: Sandbox) -> None:
        """Whatever of it is deleted by itself is refused, in splitter's namespace and in others."""
        for namespace, *what in (
            (NAMESPACE, "deployment", "splitter"),
            (NAMESPACE, "configmap", "splitter-settings"),
            (NAMESPACE, "serviceaccount", "splitter"),
            (NAMESPACE, "role", "splitter-lease"),
            ("default", "role", "splitter-events"),
            ("kube-system", "rolebinding", "splitter-autoscaler-status"),
            ("default", "clusterrole", "splitter"),
            ("default", "priorityclass", "splitter"),
            ("default", "crd", "placements.splitter.io"),
            ("default", "namespace", NAMESPACE),
        ):
            with pytest.raises(SandboxError, match=FIRST):
                installed.kubectl("-n", namespace, "delete", *what, "--dry-run=server")

    def test_its_priority_is_for_nobody_else(self, installed: Sandbox) -> None:
        """A pod of another namespace is refused splitter's class; other classes, and none, are free."""
        wait_available(installed)
        for options, fault in (
            ({"priorityClassName": "splitter"}, "this priority class is for splitter's own pods only"),
            ({"priority": 1_000_000_000}, "must not be provided in pod spec"),
            ({"priorityClassName": "system-node-critical"}, ""),
            ({"priorityClassName": "splitter-placeholder"}, ""),
            ({}, ""),
        ):
            pod = {"containers": [{"name": "a", "image": "web:1"}], **options}
            raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hurried"}, "spec": pod}
            attempt = ("create", "-n", "default", "--dry-run=server", "-f", "-")
            if fault:
                with pytest.raises(SandboxError, match=fault):
                    installed.kubectl(*attempt, stdin=json.dumps(raw))
            else:
                installed.kubectl(*attempt, stdin=json.dumps(raw))
        own = pod_template(installed)["spec"]
        assert own["priorityClassName"] == "splitter"
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own"}, "spec": own}
        installed.kubectl("create", "-n", NAMESPACE, "--dry-run=server", "-f", "-", stdin=json.dumps(raw))

    def test_a_workload_of_that_priority_gets_no_pods(self, installed: Sandbox) -> None:
        """Its owner reads why at the ReplicaSet, as of any pod that is refused."""
        made = manifest("hurried", 1)
        made["spec"]["template"]["spec"]["priorityClassName"] = "splitter"
        installed.kubectl("create", "-n", "default", "-f", "-", stdin=json.dumps(made))

        def says_why() -> bool:
            collected = installed.api.list(
                "/apis/apps/v1/namespaces/default/replicasets", labels="app=hurried"
            )
            return any("for splitter's own pods only" in json.dumps(raw.get("status")) for raw in collected)

        wait_until(says_why, what="the ReplicaSet to say why", deadline_s=DEADLINE_S)
        installed.kubectl("delete", "-n", "default", "deployment", "hurried")

    def test_the_policies_have_no_mistake_of_types(self, installed: Sandbox) -> None:
        """The API server finds nothing to complain about in the expressions of any of them."""
        for name in POLICIES:
            status = checked(installed, name.rpartition("/")[2])["status"]
            assert "expressionWarnings" not in json.dumps(status)


class TestLeaving:
    """`kubectl delete -k` before anything was given back."""

    def test_it_is_refused_what_gives_back(
        self, installed: Sandbox, person: Terminal, tmp_path: Path
    ) -> None:
        """It says what to run, and takes nothing that is needed for it; done that, everything goes."""
        with running(installed, tmp_path) as controller:
            for shop in open_shop(installed, controller, "stays"):
                shop.deploy(replicas=3, annotations=ASKED)
                shop.label()
                shop.wait_split(on_demand=1, spot=2)
                before = existing(installed)
                with shop.watch() as watched:
                    with pytest.raises(SandboxError, match=FIRST):
                        installed.kubectl("delete", "-k", CLUSTER_WIDE)
                    assert before - existing(installed) == POLICIES
                    assert wait_available(installed)
                    assert shop.split() is not None
                    reported(person.splitter("uninstall", "-A", "--timeout", "60"))
                    assert watched.lowest() >= 3
                assert shop.deployments() == {"web"}
        apply(installed, CLUSTER_WIDE)


class TestNamespaced:
    def test_it_has_no_rights_elsewhere(self, namespaced: Sandbox) -> None:
        """To workloads of its namespaces it may do what it must, to others nothing; nodes it may read."""
        rights = (("patch", "apps", "deployments"), ("create", "apps", "replicasets"), ("delete", "", "pods"))
        for right in rights:
            assert may(namespaced, *right, "shop")
            assert not may(namespaced, *right, "other")
        assert may(namespaced, "watch", "", "nodes", "")
        assert not may(namespaced, "list", "", "namespaces", "")
        assert self.bound_cluster_wide(namespaced) == [
            (["nodes"], ["get", "list", "watch"]),
            (["nodeclaims"], ["list", "watch"]),
            (["persistentvolumes"], ["get"]),
            (["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"], ["get"]),
            (["selfsubjectaccessreviews"], ["create"]),
        ]

    @staticmethod
    def bound_cluster_wide(cluster: Sandbox) -> list[tuple[list[str], list[str]]]:
        """Return the (resources, verbs) of the ClusterRoles bound to splitter's account everywhere."""
        api = "/apis/rbac.authorization.k8s.io/v1"

        def names_it(binding: JsonObject) -> bool:
            return any(who.get("namespace") == NAMESPACE for who in binding.get("subjects", ()))

        bound = [
            raw["roleRef"]["name"] for raw in cluster.api.list(f"{api}/clusterrolebindings") if names_it(raw)
        ]
        rules = [rule for name in bound for rule in cluster.api.get(f"{api}/clusterroles/{name}")["rules"]]
        return [(rule["resources"], rule["verbs"]) for rule in rules]

    def test_it_splits_in_its_namespaces_only(self, namespaced: Sandbox, tmp_path: Path) -> None:
        """A label in `shop` splits and gives back; the same label elsewhere is nobody's business."""
        assert "watch_namespaces: [shop]" in settings(namespaced)
        with running(namespaced, tmp_path) as controller:
            shop = Shop(namespaced, "shop", controller.check)
            elsewhere = manifest("web", 3, labels={"splitter.io/split": "enabled"})
            namespaced.kubectl("apply", "-n", "other", "-f", "-", stdin=json.dumps(elsewhere))
            shop.deploy(replicas=3, annotations=ASKED)
            shop.label()
            shop.wait_split(on_demand=1, spot=2)
            shop.unlabel()
            shop.wait_given_back()
        collected = namespaced.api.list("/apis/apps/v1/namespaces/other/deployments")
        assert [(raw["metadata"]["name"], raw["spec"].get("paused")) for raw in collected] == [("web", None)]
