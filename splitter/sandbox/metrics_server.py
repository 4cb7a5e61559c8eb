"""A real metrics-server in the sandbox, which scrapes the machines that a test names.

`Sandbox.add_metrics_server` returns it. What is used is KWOK's to tell, by annotations on pods
(`usage.yaml`); how it is averaged, when it is known and of what there is no sample yet is metrics-server's
own doing, as in a real cluster. The API server's aggregator finds it by a Service of type ExternalName, so no
kube-proxy is needed. It looks at the caller's rights, and then asks without a certificate: so metrics-server
answers whoever has no name, which gives nobody a right at the API server who has one.
"""

from collections.abc import Callable, Iterable

from splitter.sandbox.api import Api, JsonObject, PatchKind
from splitter.sandbox.commands import RESOLUTION_S
from splitter.sandbox.errors import ApiError
from splitter.sandbox.nodes import NODES, as_names
from splitter.sandbox.ports import LOOPBACK
from splitter.sandbox.waiting import wait_until

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


class MetricsServer:
    """What is measured; made by `Sandbox.add_metrics_server`."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        self._api = api
        self._check = check

    def register(self, port: int) -> None:
        """Have the API server pass on what is asked of metrics.k8s.io; return when it does."""
        service: JsonObject = {
            "metadata": _SERVICE,
            "spec": {"type": "ExternalName", "externalName": LOOPBACK},
        }
        rules = [
            {"apiGroups": [_GROUP], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
            {"nonResourceURLs": [f"/apis/{_GROUP}/*"], "verbs": ["get"]},
        ]
        role = {"kind": "ClusterRole", "name": "metrics-server", "apiGroup": _RBAC}
        nameless = {"kind": "User", "name": "system:anonymous", "apiGroup": _RBAC}
        metadata = {"metadata": {"name": role["name"]}}
        self._api.create(f"{_RIGHTS}/clusterroles", {**metadata, "rules": rules})
        binding = {**metadata, "roleRef": role, "subjects": [nameless]}
        self._api.create(f"{_RIGHTS}/clusterrolebindings", binding)
        name = f"{_VERSION}.{_GROUP}"
        spec = {
            "group": _GROUP,
            "version": _VERSION,
            "service": {**_SERVICE, "port": port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        self._api.create(f"/api/v1/namespaces/{_SERVICE['namespace']}/services", service)
        self._api.create(_API_SERVICES, {"metadata": {"name": name}, "spec": spec})
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
