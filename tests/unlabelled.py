"""A cluster of workloads without the label, and an API server on loopback that lists it page by page."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from listening import Listening

Raw = dict[str, Any]

BOUND = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SPOT = {"eks.amazonaws.com/capacityType": "SPOT"}
APPS, CORE = "/apis/apps/v1", "/api/v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
_POLICY = "splitter-placement"


def instant(seconds: float) -> str:
    """Return the instant so many seconds after its pods were bound."""
    return (BOUND + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class World:
    """The objects by collection, what is refused, and what was asked."""

    objects: defaultdict[str, list[Raw]] = field(default_factory=lambda: defaultdict(list))
    forbidden: set[str] = field(default_factory=set)  # plurals
    asked: list[str] = field(default_factory=list)
    largest_page: int = 0

    def add(self, collection: str, name: str, *, namespace: str = "shop", **fields: Any) -> Raw:  # noqa: ANN401 (of an object)
        """Add an object; `metadata` in the fields is added to its own."""
        number = str(len(self.objects[collection]) + 1)
        metadata = {
            "name": name,
            "uid": f"{collection}/{namespace}/{name}",
            "resourceVersion": number,
            "creationTimestamp": instant(0),
            "generation": 1,
            **({"namespace": namespace} if namespace else {}),
            **fields.pop("metadata", {}),
        }
        raw: Raw = {"metadata": metadata, **fields}
        self.objects[collection].append(raw)
        return raw

    def add_namespace(self, name: str, **annotations: str) -> None:
        """Add a Namespace."""
        self.add(f"{CORE}/namespaces", name, namespace="", metadata={"annotations": annotations})

    def add_nodes(
        self, on_demand: int = 1, spot: int = 1, provider: str = "gce", age_s: float | None = None
    ) -> None:
        """Add nodes: `on-demand-0`, `spot-0` and so on, that came so long ago; None: when pods were bound."""
        since = BOUND if age_s is None else datetime.now(UTC) - timedelta(seconds=age_s)
        for pool, count, labels in (("on-demand", on_demand, {}), ("spot", spot, SPOT)):
            for number in range(count):
                self.add(
                    f"{CORE}/nodes",
                    f"{pool}-{number}",
                    namespace="",
                    metadata={"labels": labels, "creationTimestamp": f"{since:%Y-%m-%dT%H:%M:%SZ}"},
                    spec={"providerID": f"{provider}:///{pool}-{number}"},
                    status={"conditions": [{"type": "Ready", "status": "True"}]},
                )

    def add_deployment(
        self,
        name: str,
        replicas: int = 4,
        *,
        namespace: str = "shop",
        start_s: float | None = 10,
        on_spot: int = 0,
        spec: Raw | None = None,
        **metadata: Any,  # noqa: ANN401 (of an object)
    ) -> Raw:
        """Add a Deployment that runs, its ReplicaSet and its pods; without `start_s` no pod is Ready."""
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate"},
            "template": _template(name),
            **(spec or {}),
        }
        result = self.add(
            f"{APPS}/deployments",
            name,
            namespace=namespace,
            metadata=metadata,
            spec=spec,
            status=_status(replicas),
        )
        owner = {"kind": "Deployment", "name": name, "uid": result["metadata"]["uid"], "controller": True}
        hashed = {"app": name, "pod-template-hash": "1"}
        held = self.add(
            f"{APPS}/replicasets",
            f"{name}-1",
            namespace=namespace,
            metadata={"ownerReferences": [owner], "labels": hashed},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": hashed},
                "template": {**_template(name), "metadata": {"labels": hashed}},
            },
            status={"replicas": replicas, "availableReplicas": replicas},
        )
        holder = {"kind": "ReplicaSet", "name": f"{name}-1", "uid": held["metadata"]["uid"]}
        for number in range(replicas):
            self._add_pod(f"{name}-1-{number}", namespace, holder, start_s, spot=number < on_spot)
        return result

    def add_stateful_set(
        self,
        name: str,
        replicas: int = 3,
        *,
        namespace: str = "shop",
        spec: Raw | None = None,
        **metadata: Any,  # noqa: ANN401 (of an object)
    ) -> Raw:
        """Add a StatefulSet that runs on on-demand, and its pods."""
        result = self.add(
            f"{APPS}/statefulsets",
            name,
            namespace=namespace,
            metadata=metadata,
            spec={
                "replicas": replicas,
                "serviceName": name,
                "selector": {"matchLabels": {"app": name}},
                "template": _template(name),
                **(spec or {}),
            },
            status={**_status(replicas), "currentRevision": "1", "updateRevision": "1"},
        )
        holder = {"kind": "StatefulSet", "name": name, "uid": result["metadata"]["uid"]}
        for number in range(replicas):
            self._add_pod(f"{name}-{number}", namespace, holder, 10, spot=False)
        return result

    def add_policy(self) -> None:
        """Add the policy that places StatefulSets' pods, and its binding."""
        for plural in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"):
            self.add(f"{POLICIES}/{plural}", _POLICY, namespace="")
        self.objects["/apis/splitter.io/v1alpha1/placements"] = []

    def _add_pod(self, name: str, namespace: str, holder: Raw, start_s: float | None, *, spot: bool) -> None:
        ready = {"type": "Ready", "status": "False" if start_s is None else "True"}
        self.add(
            f"{CORE}/pods",
            name,
            namespace=namespace,
            metadata={"ownerReferences": [{**holder, "controller": True}]},
            spec={"nodeName": "spot-0" if spot else "on-demand-0", "containers": [_container()]},
            status={
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": instant(0)},
                    {**ready, "lastTransitionTime": instant(start_s or 0)},
                ],
            },
        )

    def answer(self, url: str) -> tuple[int, Raw]:
        """Return the status and the body for one GET."""
        parts = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append(url)
        if parts.path == "/version":
            return 200, {"gitVersion": "v1.36.3"}
        pieces = parts.path.split("/")
        namespace = ""
        if "namespaces" in pieces[:-2]:
            at = pieces.index("namespaces")
            namespace = pieces[at + 1]
            del pieces[at : at + 2]
        named = "/".join(pieces[:-1])
        collection, name = ("/".join(pieces), "") if named not in self.objects else (named, pieces[-1])
        if self.forbidden.intersection(pieces):
            return 403, {"reason": "Forbidden", "message": f"{url} is forbidden"}
        if collection not in self.objects:
            return 404, {"reason": "NotFound", "message": "the server could not find the requested resource"}
        held = [
            raw
            for raw in self.objects[collection]
            if not namespace or raw["metadata"].get("namespace") == namespace
        ]
        if name:
            collected = [raw for raw in held if raw["metadata"]["name"] == name]
            return (
                (200, collected[0])
                if collected
                else (404, {"reason": "NotFound", "message": f"{name} not found"})
            )
        start, limit = int(query.get("continue", 0)), int(query.get("limit", len(held) or 1))
        page = held[start : start + limit]
        self.largest_page = max(self.largest_page, len(page))
        more = str(start + limit) if start + limit < len(held) else ""
        return 200, {"metadata": {"resourceVersion": "9", "continue": more}, "items": page}

    @contextmanager
    def served(self, kubeconfig: Path) -> Iterator[None]:
        """Serve it on loopback, and write a kubeconfig that leads there."""
        for collection in ("deployments", "statefulsets", "replicasets"):
            self.objects.setdefault(f"{APPS}/{collection}", [])
        for collection in ("nodes", "pods", "namespaces", "persistentvolumeclaims", "persistentvolumes"):
            self.objects.setdefault(f"{CORE}/{collection}", [])
        self.objects.setdefault("/apis/splitter.io/v1alpha1/splits", [])
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = world.answer(self.path)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's own name)
                """Say nothing."""

        server = Listening(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        kubeconfig.write_text(json.dumps(_kubeconfig(server.server_port)), encoding="utf-8")
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _kubeconfig(port: int) -> Raw:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
    }


def _container() -> Raw:
    return {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


def _template(name: str) -> Raw:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [_container()]}}


def _status(replicas: int) -> Raw:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), replicas)
    return {**counts, "observedGeneration": 1}
