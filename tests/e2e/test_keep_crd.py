"""The CRD of the Splits cannot be deleted by mistake: not before `splitter uninstall` has given all back."""

from collections.abc import Iterator

import pytest

from e2e.support.admission import steadily
from e2e.support.terminal import Terminal, reported
from lab.fixtures.controller import Controller
from lab.fixtures.namespaces import GOING_S, wait_alone
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox import Sandbox
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e

CRD = "splits.splitter.io"
POLICY = str(bundled_path("manifests/admission/keep-crd.yaml"))
KEPT = 'Run "splitter uninstall -A" first'


def refusal(sandbox: Sandbox) -> str:
    """Return why the CRD cannot be deleted; nothing when it could."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
    try:
        sandbox.api.request("DELETE", path, body={"dryRun": ["All"]})
    except ApiError as refused:
        return str(refused)
    return ""


def labelled(sandbox: Sandbox) -> str:
    """Return the workloads that are split or are to be, in all namespaces."""
    return sandbox.kubectl("get", "deploy,sts,splits", "-A", "-l", "splitter.io/split=enabled", "-o", "name")


@pytest.fixture(autouse=True)
def kept(sandbox: Sandbox, controller: Controller) -> Iterator[None]:
    """Put the policy into force; other tests delete the CRD, so it goes afterwards."""
    assert controller.running
    wait_alone(sandbox)
    wait_until(lambda: not labelled(sandbox), what="the end of what they had split", deadline_s=GOING_S)
    sandbox.kubectl("apply", "-f", POLICY, "-f", str(bundled_path("manifests/crd.yaml")))
    wait_until(
        lambda: steadily(lambda: KEPT in refusal(sandbox)),
        what="the policy to be in force",
        deadline_s=DEADLINE_S,
    )
    yield
    sandbox.kubectl("delete", "-f", POLICY)
    wait_until(
        lambda: steadily(lambda: not refusal(sandbox)), what="the policy to be gone", deadline_s=DEADLINE_S
    )


def test_it_goes_when_all_is_given_back(sandbox: Sandbox, shop: Shop, admin: Terminal) -> None:
    """It is refused with what to run; with that done, the CRD may go, and no pod was lost on the way."""
    shop.deploy(replicas=3, annotations={"splitter.io/on-demand-base": "1"})
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    with shop.watch() as watched:
        with pytest.raises(SandboxError, match='Run "splitter uninstall -A" first'):
            sandbox.kubectl("delete", "crd", CRD)
        assert shop.split() is not None
        reported(admin.splitter("uninstall", "-n", shop.namespace, "--timeout", "80"))
        assert KEPT in refusal(sandbox)  # one namespace says nothing about the others
        reported(admin.splitter("uninstall", "-A", "--timeout", "80"))
        assert refusal(sandbox) == ""
        assert watched.lowest() >= 3


def test_who_may_not_change_it_is_told_what_to_ask_for(viewer: Terminal, sandbox: Sandbox) -> None:
    """Whoever gives back without the right to change the CRD learns what somebody else has to run."""
    answer = viewer.splitter("uninstall", "-A", "--timeout", "20")
    assert answer.returncode == 0
    assert f"kubectl annotate crd {CRD} splitter.io/keep-" in answer.stderr
    assert KEPT in refusal(sandbox)


def test_other_crds_go(sandbox: Sandbox) -> None:
    """Nobody else's CRD is kept."""
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    made = {
        "metadata": {"name": "things.example.com", "annotations": {"splitter.io/keep": "true"}},
        "spec": spec,
    }
    sandbox.api.create(
        path, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **made}
    )
    sandbox.kubectl("delete", "crd", "things.example.com")
