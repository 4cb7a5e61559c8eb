"""The Helm chart's life in a cluster, with a real Helm, while a workload is split."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.support.helm import CHART, KEEP, NAMESPACE, RELEASE, UNINSTALL, Helm, UninstallJob
from e2e.support.installed import running, settings, wait_available
from e2e.support.terminal import Terminal, reported
from lab.fixtures.namespaces import GOING_S, open_shop
from lab.fixtures.planted import PLANTED
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox import Sandbox
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

ASKED = {"splitter.io/on-demand-base": "1"}
N = 3
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/splits.splitter.io"
INSTALL = ("install", RELEASE, str(CHART), "--namespace", NAMESPACE)
UPGRADE = ("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE)


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
    return shop.pod_uids()


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
                job = UninstallJob(cluster)
                with shop.watch() as watched, job.begun(installed) as leaving:
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
                job = UninstallJob(cluster)
                with job.begun(installed) as leaving:
                    answer = job.play(tmp_path, code=4)
                    assert "not given back within 1 s: held/web" in answer.stderr
                    _, err = leaving.communicate(timeout=90)
                assert leaving.returncode != 0
                assert f"Job/{NAMESPACE}/splitter-uninstall not ready. status: Failed" in err
                assert cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/splitter")
                assert shop.split() is not None
                controller.start()
                shop.wait_given_back()


class TestBesideAnother:
    """Two installations, each with namespaces of its own; the first one has what a cluster has once."""

    def test_lives_and_leaves(self, installed: Helm, cluster: Sandbox, tmp_path: Path) -> None:
        """The second comes, and leaves while the first has splits; a third needs a namespace of its own."""
        for name in ("blue", "blue-shop"):
            cluster.kubectl("create", "namespace", name)
        excluded = "settings.excluded_namespaces={kube-system,blue-shop},flowSchema.enabled=true"
        installed(*UPGRADE, "--set", excluded)
        asked = "watchNamespaces={blue-shop},shared.install=false,flowSchema.enabled=true"
        installed("install", "blue", str(CHART), "--namespace", "blue", "--set", asked)
        refused = installed.ask("install", "red", str(CHART), "--namespace", NAMESPACE, "--set", asked)
        assert refused.returncode != 0
        assert "splitter-lease" in refused.stderr
        flows = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
        names = ("splitter", "splitter-lease", "blue-splitter", "blue-splitter-lease")

        def levels() -> list[str]:
            collected = [cluster.api.get(f"{flows}/{name}").get("status", {}) for name in names]
            return [
                one["status"]
                for status in collected
                for one in status.get("conditions", ())
                if one["type"] == "Dangling"
            ]

        wait_until(
            lambda: levels() == ["False"] * len(names), what="their priority levels", deadline_s=DEADLINE_S
        )
        with running(cluster, tmp_path) as controller:
            for shop in open_shop(cluster, controller, "beside"):
                split(shop)
                installed("uninstall", "blue", "--namespace", "blue")
                assert cluster.api.find(f"{flows}/blue-splitter") is None
                shop.wait_steady()
                bundled(cluster, shop, tmp_path)
                shop.unlabel()
                shop.wait_given_back()


def bundled(cluster: Sandbox, shop: Shop, home: Path) -> None:
    """Verify that `splitter bundle` tells the split and the installation, and nothing that is planted."""
    file = home / "bundle.tar.gz"
    asked = ("bundle", "-n", NAMESPACE, "--namespace", shop.namespace, "-o", str(file))
    assert str(file) in reported(Terminal(cluster.kubeconfig, home).splitter(*asked))
    with tarfile.open(file) as tar:
        texts = {
            one.name.partition("/")[2]: content.read().decode()
            for one in tar
            if (content := tar.extractfile(one)) is not None
        }
    assert [name for name, text in texts.items() if PLANTED in text] == []
    assert {one["metadata"]["name"] for one in json.loads(texts["deployments.json"])} == {
        "web",
        "web-on-demand",
        "web-spot",
    }
    [result] = json.loads(texts["splits.json"])
    assert (result["status"]["state"], result["status"]["desired"]) == ("Steady", N)
    assert json.loads(texts["settings.json"])[0]["excluded_namespaces"] == ["kube-system", "blue-shop"]
    assert json.loads(texts["lease.json"])[0]["holderIdentity"]
    [deployment] = json.loads(texts["deployment.json"])
    assert deployment["containers"][0]["args"][0] == "run"
    assert any(one["note"] for one in json.loads(texts["events.json"]) if "note" in one)
    # Pods of the sandbox are simulated: nobody has a log or metrics of them, and that is said.
    assert "metrics/splitter-" in texts["README.txt"].partition("Could not be read:")[2]
