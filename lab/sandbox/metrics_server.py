"""A real metrics-server in the sandbox, which scrapes the machines that a test names.

`Sandbox.add_metrics_server` returns it. What is used is KWOK's to tell, by annotations on pods
(`usage.yaml`); how it is averaged, when it is known and of what there is no sample yet is metrics-server's
own doing, as in a real cluster. The API server looks at the caller's rights, and then asks without a
certificate: so metrics-server answers whoever has no name, which gives nobody a right who has one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.sandbox.api import Api, JsonObject, PatchKind
from lab.sandbox.commands import RESOLUTION_S
from lab.sandbox.errors import ApiError
from lab.sandbox.nodes import NODES, as_names
from lab.sandbox.ports import LOOPBACK
from lab.sandbox.waiting import wait_until

_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
USED_BY_NODES = f"/apis/{_GROUP}/{_VERSION}/nodes"
# Where KWOK tells of one of its machines; a kubelet knows no other.
_PATH = "metrics.k8s.io/resource-metrics-path"
_SERVICE = {"namespace": "kube-system", "name": "metrics-server"}
_RBAC = "rbac.authorization.k8s.io"
_RIGHTS = f"/apis/{_RBAC}/v1"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
# It knows of a machine after its second scrape.
_DEADLINE_S = 60.0 + 2 * RESOLUTION_S


def service_on_loopback(metadata: Mapping[str, str]) -> JsonObject:
    """Return a Service that the API server's aggregator resolves to this machine, without a kube-proxy."""
    spec = {"type": "ExternalName", "externalName": LOOPBACK}
    return {"apiVersion": "v1", "kind": "Service", "metadata": dict(metadata), "spec": spec}


def api_service(name: str, service: Mapping[str, str], port: int) -> JsonObject:
    """Return what has the API server pass a group on to a Service: one such as `v1beta1.metrics.k8s.io`."""
    version, group = name.split(".", 1)
    spec = {
        "group": group,
        "version": version,
        "service": {**service, "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def let_the_nameless(api: Api, name: str, group: str, resources: Sequence[str]) -> None:
    """Let a caller without a name, as the API server is to a group's own server, read its resources.

    `name` is that of the ClusterRole and of its binding.
    """
    rules = [
        {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list"]},
        {"nonResourceURLs": [f"/apis/{group}/*"], "verbs": ["get"]},
    ]
    role = {"kind": "ClusterRole", "name": name, "apiGroup": _RBAC}
    nameless = {"kind": "User", "name": "system:anonymous", "apiGroup": _RBAC}
    metadata = {"metadata": {"name": name}}
    api.create(f"{_RIGHTS}/clusterroles", {**metadata, "rules": rules})
    api.create(f"{_RIGHTS}/clusterrolebindings", {**metadata, "roleRef": role, "subjects": [nameless]})


class MetricsServer:
    """What is measured; made by `Sandbox.add_metrics_server`."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        self._api = api
        self._check = check

    def register(self, port: int) -> None:
        """Have the API server pass on what is asked of metrics.k8s.io; return when it does."""
        let_the_nameless(self._api, "metrics-server", _GROUP, ["nodes", "pods"])
        self._api.create(
            f"/api/v1/namespaces/{_SERVICE['namespace']}/services", service_on_loopback(_SERVICE)
        )
        self._api.create(_API_SERVICES, api_service(f"{_VERSION}.{_GROUP}", _SERVICE, port))
        self._until(lambda: self._measured() is not None, "metrics.k8s.io to be served")

    def measure(self, names: str | Iterable[str]) -> None:
        """Have these machines scraped from now on; return when it is known what each of them uses."""
        wanted = as_names(names)
        for name in wanted:
            path = {_PATH: f"/metrics/nodes/{name}/metrics/resource"}
            self._api.patch(f"{NODES}/{name}", {"metadata": {"annotations": path}})
            address = {"status": {"addresses": [{"type": "ExternalIP", "address": LOOPBACK}]}}
            self._api.patch(f"{NODES}/{name}/status", address, kind=PatchKind.STRATEGIC)
        self._until(lambda: set(wanted) <= (self._measured() or set()), "every machine to be measured")

    def _measured(self) -> set[str] | None:
        """Return the machines of which it is known what they use; None: nobody answers."""
        try:
            return {raw["metadata"]["name"] for raw in self._api.list(USED_BY_NODES)}
        except ApiError:
            return None

    def _until(self, look: Callable[[], bool], what: str) -> None:
        wait_until(look, what=what, deadline_s=_DEADLINE_S, check=self._check)
