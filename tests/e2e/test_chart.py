"""The Helm chart with a real Helm: what it renders, and its life in a cluster while a workload is split."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.support.helm import CHART, NAMESPACE, RELEASE, Helm, UninstallJob
from e2e.support.installed import running, settings, wait_available
from e2e.support.namespaces import GOING_S, open_shop
from e2e.support.shop import DEADLINE_S, JsonObject, Shop
from splitter.bundled import bundled_path
from splitter.sandbox import Sandbox
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
N = 3
KEEP = "helm.sh/resource-policy"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/splits.splitter.io"
INSTALL = ("install", RELEASE, str(CHART), "--namespace", NAMESPACE)
UPGRADE = ("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE)
UNINSTALL = ("uninstall", RELEASE, "--namespace", NAMESPACE)

Objects = dict[tuple[str, str, str], JsonObject]


def objects(text: str) -> Objects:
    """Return manifests by kind, namespace and name; hooks, which are no part of a release, are left out."""
    found: Objects = {}
    for raw in filter(None, yaml.safe_load_all(text)):
        metadata = raw["metadata"]
        if "helm.sh/hook" not in metadata.get("annotations", {}):
            found[raw["kind"], metadata.get("namespace", ""), metadata["name"]] = raw
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sandbox]:
    """Yield a cluster with machines and nothing else; Helm's namespace is there, and restricted."""
    with Sandbox.start() as sandbox:
        sandbox.fleet.add("on-demand", 2)
        sandbox.fleet.add("spot", 3)
        sandbox.kubectl("create", "namespace", NAMESPACE)
        sandbox.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        yield sandbox


@pytest.fixture
def helm(cluster: Sandbox, tmp_path: Path) -> Helm:
    """Return Helm for the cluster."""
    return Helm(cluster, tmp_path)


@pytest.fixture
def renders(tmp_path: Path) -> Helm:
    """Return Helm without a cluster."""
    return Helm(None, tmp_path)


def kustomized(sandbox: Sandbox, folder: str) -> Objects:
    """Return what a kustomization makes; the namespace is left out, which Helm's users make themselves."""
    found = objects(sandbox.kubectl("kustomize", str(bundled_path(folder))))
    del found["Namespace", "", NAMESPACE]
    return found


def unmarked(rendered: Objects) -> Objects:
    """Take from both CRDs the one mark that tells Helm to keep them."""
    for kind in ("splits", "placements"):
        metadata = rendered["CustomResourceDefinition", "", f"{kind}.splitter.io"]["metadata"]
        annotations = metadata.pop("annotations")
        assert {KEEP: annotations.pop(KEEP)} == {KEEP: "keep"}
        if annotations:
            metadata["annotations"] = annotations
    return rendered


class TestRendering:
    @pytest.mark.parametrize("values", [(), ("--set", "watchNamespaces={shop,cart},settings.grace_s=60")])
    def test_is_linted(self, renders: Helm, values: tuple[str, ...]) -> None:
        """`helm lint --strict` has nothing to say, cluster-wide and namespaced."""
        assert "0 chart(s) failed" in renders("lint", "--strict", str(CHART), *values)

    def test_is_the_kustomization(self, renders: Helm, cluster: Sandbox) -> None:
        """With no values it is `kubectl kustomize manifests`, object for object; the CRD is to be kept."""
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE))
        assert unmarked(rendered) == kustomized(cluster, "manifests")

    def test_namespaced_is_the_other_kustomization(self, renders: Helm, cluster: Sandbox) -> None:
        """With `watchNamespaces` it is `kubectl kustomize examples/namespaced`."""
        values = ("--set", "watchNamespaces={shop}")
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *values))
        wanted = kustomized(cluster, "examples/namespaced")
        assert rendered.keys() == wanted.keys()
        controller = ("Deployment", NAMESPACE, "splitter")
        template = rendered[controller]["spec"]["template"]["metadata"]
        assert set(template.pop("annotations")) == {"checksum/settings"}
        for found in (rendered, wanted):
            file = found["ConfigMap", NAMESPACE, "splitter-settings"]["data"]
            file["settings.yaml"] = yaml.safe_load(file["settings.yaml"])
        unmarked(rendered)
        for kind in ("Role", "RoleBinding"):
            assert wanted[kind, "shop", "splitter"]["metadata"]["labels"].pop("splitter.io/watched") == "true"
        assert rendered == wanted

    def test_values_reach_the_controller(self, renders: Helm) -> None:
        """Each value changes what it says, and another namespace is the namespace everywhere."""
        values = {
            "image.repository": "registry.example/splitter",
            "image.tag": "1.2.3",
            "image.pullPolicy": "Always",
            "imagePullSecrets[0].name": "pull",
            "settings.grace_s": "60",
            "replicas": "0",
            "resources.requests.memory": "1Gi",
            "nodeSelector.pool": "system",
            "podLabels.team": "platform",
            "podAnnotations.told": "yes",
            "priorityClass.create": "false",
            "priorityClass.name": "system",
            "networkPolicy.apiServerCidrs[0]": "10.0.0.1/32",
            "podDisruptionBudget.enabled": "false",
            "crds.install": "false",
            "admission.enabled": "false",
            "admission.placement": "true",
            "uninstall.enabled": "false",
        }
        told = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        text = renders("template", RELEASE, str(CHART), "--namespace", "elsewhere", *told)
        found = objects(text)
        deployment = found["Deployment", "elsewhere", "splitter"]["spec"]
        pod = deployment["template"]["spec"]
        [container] = pod["containers"]
        assert deployment["replicas"] == 0
        assert container["image"] == "registry.example/splitter:1.2.3"
        assert container["imagePullPolicy"] == "Always"
        assert container["resources"] == {"requests": {"memory": "1Gi"}}
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert pod["nodeSelector"] == {"pool": "system"}
        assert pod["priorityClassName"] == "system"
        metadata = deployment["template"]["metadata"]
        assert metadata["labels"] == {"app.kubernetes.io/name": "splitter", "team": "platform"}
        assert metadata["annotations"]["told"] == "yes"
        file = found["ConfigMap", "elsewhere", "splitter-settings"]["data"]["settings.yaml"]
        assert yaml.safe_load(file) == {"grace_s": 60}
        egress = found["NetworkPolicy", "elsewhere", "splitter"]["spec"]["egress"]
        assert egress[-1]["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
        kinds = {kind for kind, _, _ in found}
        assert not kinds & {"PodDisruptionBudget", "CustomResourceDefinition"}
        # That of the placeholders stays: no other class will do for them.
        assert [name for kind, _, name in found if kind == "PriorityClass"] == ["splitter-placeholder"]
        assert "MutatingAdmissionPolicy" in kinds
        assert "ValidatingAdmissionPolicy" not in kinds
        assert NAMESPACE not in text
        assert "helm.sh/hook" not in text

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("settings.grace=60", "grace"),
            ("settings.grace_s=often", "grace_s"),
            ("settings.watch_namespaces={shop}", "watch_namespaces"),
            ("watchNamespaces={Shop}", "watchNamespaces"),
            ("image.name=splitter", "name"),
        ],
    )
    def test_wrong_values_are_named(self, renders: Helm, value: str, words: str) -> None:
        """A value that nobody reads, or that the controller would not start with, is refused."""
        answer = renders.ask("template", RELEASE, str(CHART), "--set", value)
        assert answer.returncode != 0
        assert "don't meet the specifications of the schema" in answer.stderr
        assert words in answer.stderr


@pytest.fixture
def installed(helm: Helm, cluster: Sandbox) -> Iterator[Helm]:
    """Yield Helm with splitter installed; afterwards it is gone, whatever the test did."""
    helm(*INSTALL)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/splits.splitter.io")
    yield helm
    cluster.kubectl("annotate", "crd", "splits.splitter.io", "splitter.io/keep-")
    helm.ask(*UNINSTALL, "--no-hooks", "--ignore-not-found")
    cluster.api.delete(CRD, missing_ok=True)
    wait_until(lambda: cluster.api.find(CRD) is None, what="the CRD to go", deadline_s=DEADLINE_S)


def split(shop: Shop) -> None:
    """Split a workload into 1 + 2."""
    shop.deploy(replicas=N, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    shop.wait_steady()


def uids(shop: Shop) -> set[str]:
    """Return which pods there are."""
    return {pod["metadata"]["uid"] for pod in shop.pods()}


class TestLife:
    def test_upgrade_and_rollback(self, installed: Helm, cluster: Sandbox, tmp_path: Path) -> None:
        """Both roll the controller and no pod of the workload that is split; the floor is kept throughout."""
        with running(cluster, tmp_path) as controller:
            for shop in open_shop(cluster, controller, "upgraded"):
                split(shop)
                before = uids(shop)
                with shop.watch() as watched:
                    wait_available(cluster)
                    installed(*UPGRADE, "--set", "settings.workers=4,resources.requests.memory=200Mi")
                    [container] = wait_available(cluster)["spec"]["template"]["spec"]["containers"]
                    assert container["resources"]["requests"]["memory"] == "200Mi"
                    assert yaml.safe_load(settings(cluster)) == {"workers": 4}
                    controller.stop()
                    with running(cluster, tmp_path):
                        shop.wait_steady()
                        assert uids(shop) == before
                        shop.scale(N + 1)
                        shop.wait_split(on_demand=1, spot=N)
                        installed("rollback", RELEASE, "1", "--namespace", NAMESPACE)
                        wait_available(cluster)
                        assert yaml.safe_load(settings(cluster)) == {}
                    controller.start()
                    shop.wait_steady()
                    assert before < uids(shop)
                    assert watched.lowest() >= N
                shop.unlabel()
                shop.wait_given_back()

    def test_uninstall_gives_everything_back_first(
        self, installed: Helm, cluster: Sandbox, tmp_path: Path
    ) -> None:
        """`helm uninstall` waits for its Job, which gives back; then all goes but the CRD."""
        with running(cluster, tmp_path) as controller:
            for shop in open_shop(cluster, controller, "left"):
                split(shop)
                with shop.watch() as watched, installed.begin(*UNINSTALL) as leaving:
                    job = UninstallJob(cluster)
                    job.wait()
                    assert cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/splitter")
                    answer = job.play(tmp_path, code=0)
                    assert "label removed from deployment left/web" in answer.stdout
                    out, err = leaving.communicate(timeout=90)
                    assert leaving.returncode == 0, err
                    assert "kept due to the resource policy" in out
                    assert watched.lowest() >= N
                assert not shop.leftovers()
                assert shop.deployments() == {"web"}
        kinds = "all,configmaps,serviceaccounts,roles,rolebindings"
        wait_until(  # its pods take their time to end
            lambda: "splitter" not in cluster.kubectl("get", kinds, "-n", NAMESPACE).replace(NAMESPACE, ""),
            what="everything of the release to be gone",
            deadline_s=GOING_S,
        )
        assert cluster.api.get(CRD)["metadata"]["annotations"][KEEP] == "keep"
        installed(*INSTALL)

    def test_uninstall_that_fails_changes_nothing(
        self, installed: Helm, cluster: Sandbox, tmp_path: Path
    ) -> None:
        """With nobody to give back, Helm says so and leaves all as it is: the way back stays open."""
        installed(*UPGRADE, "--set", "uninstall.timeoutSeconds=1")
        with running(cluster, tmp_path) as controller:
            for shop in open_shop(cluster, controller, "held"):
                split(shop)
                controller.stop()
                with installed.begin(*UNINSTALL) as leaving:
                    answer = UninstallJob(cluster).play(tmp_path, code=4)
                    assert "not given back within 1 s: held/web" in answer.stderr
                    _, err = leaving.communicate(timeout=90)
                assert leaving.returncode != 0
                assert f"Job/{NAMESPACE}/splitter-uninstall not ready. status: Failed" in err
                assert cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/splitter")
                assert shop.split() is not None
                controller.start()
                shop.wait_given_back()
