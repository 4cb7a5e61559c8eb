"""A stand-in for metrics-server and a queue's adapter: what the real HorizontalPodAutoscaler controller asks.

A test says how much CPU all of a namespace's traffic costs (`metrics.k8s.io`): the pods that serve share it
evenly, whoever owns them, as pods behind one Service do. Or how long its queue is (`external.metrics.k8s.io`,
the metric `queue`), as KEDA serves it. The APIServices go with it: one that nobody answers would keep every
namespace from being deleted.
"""

import json
import ssl
import threading
from collections import Counter
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from splitter.sandbox import ApiError, Sandbox
from splitter.sandbox.metrics_server import api_service, service_on_loopback
from splitter.sandbox.nodes import NODES
from splitter.sandbox.ports import LOOPBACK
from splitter.sandbox.waiting import wait_until

JsonObject = dict[str, Any]

# Half of what a pod of the shop requests.
TARGET_PERCENT, TARGET_CPU_M = 50, 50
# The autoscaler rounds each pod's share up to 1 m, 12 m of 12 pods: so much less makes n pods' load one that
# n pods carry, however many share it.
A_LITTLE_LESS = 0.94
# While pods come and go, what was used and which pods there are do not fit together for a moment, with or
# without splitter: the autoscaler's own window before it scales in is there for that (300 s by default).
WINDOW_S = 8

_PODS = "metrics.k8s.io"
_QUEUES = "external.metrics.k8s.io"
_VERSION = f"{_PODS}/v1beta1"
_ROOT = f"/apis/{_VERSION}"
_QUEUES_VERSION = f"{_QUEUES}/v1beta1"
_QUEUES_ROOT = f"/apis/{_QUEUES_VERSION}"
_QUEUE = "queue"
_SERVICE = {"namespace": "kube-system", "name": "metrics-stand-in"}
_API_SERVICES = [f"v1beta1.{group}" for group in (_PODS, _QUEUES)]
# Over how long a sample was averaged. The autoscaler takes none that began before its pod was ready.
_WINDOW_S = 1
_NANO = 1_000_000
_READY_DEADLINE_S = 60.0


class _Server(ThreadingHTTPServer):
    """A server that lets many connections wait, as a real one: by default the sixth must try again."""

    request_queue_size = 128


class MetricsApi:
    """Serves within a `with`; what a namespace's traffic costs is 0 until `load` says something else."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._loads: dict[str, int] = {}
        self._queues: dict[str, int] = {}
        self._each: dict[str, int] = {}
        self._asked: Counter[str] = Counter()
        self._server = _Server((LOOPBACK, 0), self._handler())
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Any serving certificate will do: the aggregator is told not to verify it.
        pair = sandbox.home / "kube-scheduler" / "kube-scheduler"
        trust.load_cert_chain(pair.with_suffix(".crt"), pair.with_suffix(".key"))
        self._server.socket = trust.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def load(self, namespace: str, cpu_m: int) -> None:
        """Have the traffic of a namespace cost so many thousandths of a CPU from now on."""
        self._loads[namespace] = cpu_m

    def uses(self, app: str, cpu_m: int) -> None:
        """Have each pod with this label `app` use so many thousandths of a CPU, wherever it stands."""
        self._each[app] = cpu_m

    def queue(self, namespace: str, length: int) -> None:
        """Have so many messages wait in a namespace's queue from now on."""
        self._queues[namespace] = length

    def asked(self, namespace: str) -> int:
        """Return how often somebody began to ask what a namespace's pods use."""
        return self._asked[namespace]

    def __enter__(self) -> Self:
        """Return when the API server passes requests on."""
        self._thread.start()
        kubectl = self._sandbox.kubectl
        for manifest in _registration(self._server.server_port):
            kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        for name in _API_SERVICES:
            kubectl("wait", "--for=condition=Available", f"apiservice/{name}", "--timeout=60s")
        paths = (f"{_ROOT}/namespaces/default/pods", f"{_QUEUES_ROOT}/namespaces/default/{_QUEUE}")

        def are_served() -> bool:
            try:
                return all(self._sandbox.api.find(path) is not None for path in paths)
            except ApiError:  # 503: that it is available stands in its status before requests are passed on
                return False

        wait_until(
            are_served,
            what="the API server to pass requests for metrics on",
            deadline_s=_READY_DEADLINE_S,
            check=self._sandbox.check,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the API, and end."""
        self._sandbox.kubectl("delete", "apiservice", *_API_SERVICES)
        self._sandbox.kubectl("delete", "service", _SERVICE["name"], "--namespace", _SERVICE["namespace"])
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        def answer(path: str) -> JsonObject | None:
            return self._answer(path)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # the aggregator keeps its connections

            def do_GET(self) -> None:
                result = answer(self.path)
                body = json.dumps(result or {}).encode()
                self.send_response(HTTPStatus.NOT_FOUND if result is None else HTTPStatus.OK)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing: it is asked every second."""

        return Handler

    def _answer(self, target: str) -> JsonObject | None:
        """Return what is at a path: the list of resources, or the metrics of a namespace's pods."""
        asked = urlsplit(target)
        match asked.path.removeprefix("/apis/").split("/"):
            case [group, _]:
                return _RESOURCES.get(group)
            case [group, _, "nodes"] if group == _PODS:
                return self._of_nodes()
            case [group, _, "pods"] if group == _PODS:
                selector = parse_qs(asked.query).get("labelSelector", [""])[0]
                items = [_pod_metrics(pod, self._used(pod)) for pod in self._running(selector)]
                return {"kind": "PodMetricsList", "apiVersion": _VERSION, "metadata": {}, "items": items}
            case [group, _, "namespaces", namespace, "pods"] if group == _PODS:
                selector = parse_qs(asked.query).get("labelSelector", [""])[0]
                return self._metrics(namespace, selector)
            case [group, _, "namespaces", namespace, name] if group == _QUEUES and name == _QUEUE:
                return _queue_length(self._queues.get(namespace, 0))
            case _:
                return None

    def _running(self, selector: str = "") -> list[JsonObject]:
        pods = self._sandbox.api.list("/api/v1/pods", labels=selector)
        return [pod for pod in pods if pod["status"].get("phase") == "Running"]

    def _used(self, pod: JsonObject) -> int:
        return self._each.get((pod["metadata"].get("labels") or {}).get("app", ""), 0)

    def _of_nodes(self) -> JsonObject:
        used: Counter[str] = Counter()
        for pod in self._running():
            used[pod["spec"]["nodeName"]] += self._used(pod)
        items = [
            {
                "metadata": {"name": raw["metadata"]["name"]},
                "timestamp": _now(),
                "window": f"{_WINDOW_S}s",
                "usage": {"cpu": f"{used[raw['metadata']['name']] * _NANO}n", "memory": "1Gi"},
            }
            for raw in self._sandbox.api.list(NODES)
        ]
        return {"kind": "NodeMetricsList", "apiVersion": _VERSION, "metadata": {}, "items": items}

    def _metrics(self, namespace: str, selector: str) -> JsonObject:
        self._asked[namespace] += 1
        api = self._sandbox.api
        nodes = {raw["metadata"]["name"] for raw in api.list(NODES) if _is_ready(raw)}
        pods = api.list(f"/api/v1/namespaces/{namespace}/pods", labels=selector)
        # A kubelet that is gone tells nobody what its pods use.
        received = [pod for pod in pods if pod["spec"].get("nodeName") in nodes]
        running = [pod for pod in received if pod["status"].get("phase") == "Running"]
        serving = [pod for pod in running if _is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]
        share_m = self._loads.get(namespace, 0) / max(1, len(serving))
        items = [_pod_metrics(pod, share_m if pod in serving else 0) for pod in running]
        return {"kind": "PodMetricsList", "apiVersion": _VERSION, "metadata": {}, "items": items}


def _pod_metrics(pod: JsonObject, cpu_m: float) -> JsonObject:
    containers = pod["spec"]["containers"]
    usage = {"cpu": f"{int(cpu_m * _NANO / len(containers))}n", "memory": "16Mi"}
    return {
        "metadata": {key: pod["metadata"].get(key) for key in ("name", "namespace", "labels")},
        "timestamp": _now(),
        "window": f"{_WINDOW_S}s",
        "containers": [{"name": container["name"], "usage": usage} for container in containers],
    }


def _is_ready(raw: JsonObject) -> bool:
    conditions = raw["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _queue_length(messages: int) -> JsonObject:
    item = {
        "metricName": _QUEUE,
        "metricLabels": {},
        "timestamp": _now(),
        "value": str(messages),
    }
    kind = {"kind": "ExternalMetricValueList", "apiVersion": _QUEUES_VERSION}
    return {**kind, "metadata": {}, "items": [item]}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _resources(version: str, name: str, singular: str, kind: str) -> JsonObject:
    resource = {
        "name": name,
        "singularName": singular,
        "namespaced": True,
        "kind": kind,
        "verbs": ["get", "list"],
    }
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]}


_RESOURCES = {
    _PODS: _resources(_VERSION, "pods", "pod", "PodMetrics"),
    _QUEUES: _resources(_QUEUES_VERSION, _QUEUE, "", "ExternalMetricValueList"),
}


def _registration(port: int) -> list[JsonObject]:
    """Return the Service that leads here, and the APIServices that lead to it."""
    return [service_on_loopback(_SERVICE), *(api_service(name, _SERVICE, port) for name in _API_SERVICES)]
