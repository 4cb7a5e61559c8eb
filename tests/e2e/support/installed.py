"""The controller of an installation, as its manifests say.

Pods of the sandbox are simulated, so what the applied Deployment would run is a process here, with the
settings of the applied ConfigMap and the rights of the applied service account.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.shop import DEADLINE_S, JsonObject
from lab.sandbox import Sandbox
from lab.sandbox.waiting import wait_until

NAMESPACE = "splitter-system"


def settings(sandbox: Sandbox, namespace: str = NAMESPACE) -> str:
    """Return the settings file that a pod of the controller's finds."""
    template = pod_template(sandbox, namespace)["spec"]
    [volume] = [volume for volume in template["volumes"] if "configMap" in volume]
    name = volume["configMap"]["name"]
    text: str = sandbox.api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")["data"]["settings.yaml"]
    return text


def pod_template(sandbox: Sandbox, namespace: str = NAMESPACE) -> JsonObject:
    """Return the pod template of the controller's Deployment."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/splitter"
    raw: JsonObject = sandbox.api.get(path)["spec"]["template"]
    return raw


@contextmanager
def running(sandbox: Sandbox, home: Path, namespace: str = NAMESPACE) -> Iterator[Controller]:
    """Yield the controller that was installed; its waiting times are the tests' short ones."""
    account = pod_template(sandbox, namespace)["spec"]["serviceAccountName"]
    kubeconfig = sandbox.service_account_kubeconfig(namespace, account)
    result = yaml.safe_load(settings(sandbox, namespace)) or {}
    reported = {
        name.upper(): ",".join(value) if isinstance(value, list) else str(value)
        for name, value in result.items()
    }
    controller = Controller(
        kubeconfig, home, {"OWN_NAMESPACE": namespace, "LEADER_ELECTION": "on", **SHORT, **reported}
    )
    try:
        controller.start()
        yield controller
    finally:
        controller.end()


def wait_available(sandbox: Sandbox, namespace: str = NAMESPACE) -> JsonObject:
    """Wait until the controller's Deployment has all its (simulated) replicas, and return it."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/splitter"

    def snapshot() -> JsonObject | None:
        raw = sandbox.api.get(path)
        status = raw.get("status", {})
        wanted = raw["spec"]["replicas"]
        seen = status.get("observedGeneration") == raw["metadata"]["generation"]
        counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")}
        return raw if seen and counts == {wanted} else None

    return wait_until(
        snapshot, what="the controller's Deployment", deadline_s=DEADLINE_S, check=sandbox.check
    )
