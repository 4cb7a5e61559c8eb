"""The ground that is a real control plane: scripts play in namespaces of their own, many at the same time."""

import contextlib
import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from lab.sandbox import Api, ApiError, PatchKind, Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.following import Follower
from lab.sandbox.instants import Instant
from lab.sandbox.waiting import wait_until
from world.conformance.ground import NODE_LABEL, SHARED, Change, Policy, Raw, Refused
from world.conformance.objects import FOLLOWED, KINDS

_NAMESPACES = "/api/v1/namespaces"
_WATCHES_S = 1  # how long a watch stays open: what has happened is told at once
_ADMISSION = "admissionregistration.k8s.io/v1"
_SHARED_NODES = 12


class Past:
    """What watches of all namespaces have shown, kept by kind and namespace."""

    def __init__(self, api: Api) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], list[Change]] = defaultdict(list)
        self._followers = [Follower(api, *self._followed(KINDS[kind].plural, kind)) for kind in FOLLOWED]

    def _followed(self, plural: str, kind: str) -> tuple[str, "_Tell"]:
        path = KINDS[kind].collection("").replace("/namespaces/", "")
        return path, _Tell(self, plural)

    def add(self, plural: str, raw: Raw, *, deleted: bool) -> None:
        """Keep a change."""
        with self._lock:
            self._seen[plural, raw["metadata"]["namespace"]].append(Change(raw, deleted))

    def of(self, plural: str, namespace: str) -> Sequence[Change]:
        """Return what was seen so far."""
        with self._lock:
            return tuple(self._seen[plural, namespace])

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Watch, from the first list to the end of the block."""
        try:
            for follower in self._followers:
                follower.start()
            for follower in self._followers:
                follower.wait_for_first_list()
            yield
        finally:
            for follower in self._followers:
                follower.stop()


class _Tell:
    """Tells of the changes of one collection."""

    def __init__(self, past: Past, plural: str) -> None:
        self._past, self._plural = past, plural

    def __call__(self, at: Instant, raw: Raw, *, deleted: bool) -> None:
        """Take a change."""
        del at
        self._past.add(self._plural, raw, deleted=deleted)


class Real:
    """A namespace of a sandbox."""

    def __init__(self, sandbox: Sandbox, past: Past, namespace: str) -> None:
        self.namespace = namespace
        self._sandbox, self._past = sandbox, past
        self._users: dict[str, Api] = {}

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        user: str = "",
    ) -> Raw:
        """Send a request."""
        api = self._sandbox.api if not user else self._as_user(user)
        try:
            return api.request(method, path, query=query, body=body, content_type=content_type)
        except ApiError as refused:
            message = str(refused).removeprefix(f"{refused.status} {refused.reason}: ")
            raise Refused(refused.status, refused.reason, message) from None

    def _as_user(self, user: str) -> Api:
        # A connection of a kubelet is one that impersonates; so is this.
        api = self._sandbox.as_kubelet("none")
        api._headers = {**api._headers, "Impersonate-User": user}  # noqa: SLF001 - Api has no word for it
        del api._headers["Impersonate-Group"]  # noqa: SLF001
        return api

    def past(self, plural: str) -> Sequence[Change]:
        """Return what was seen."""
        return self._past.of(plural, self.namespace)

    def watch(self, path: str, query: Mapping[str, str]) -> list[Raw]:
        """Watch for a moment."""
        asked = {"watch": "true", "timeoutSeconds": str(_WATCHES_S), **query}
        try:
            with self._sandbox.api.stream(path, asked) as response:
                return [json.loads(line) for line in response.read().splitlines()]
        except ApiError as refused:
            raise Refused(refused.status, refused.reason, str(refused)) from None

    def forgotten(self) -> tuple[str, str]:
        """Return the collection of a kind that has just been defined: the cache of its watch begins there."""
        group, plural = f"{self.namespace}.example.com", "things"
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"plural": plural, "kind": "Thing"}
        spec = {"group": group, "names": names, "scope": "Cluster", "versions": [version]}
        made = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }
        self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body=made)
        path = f"/apis/{group}/v1/{plural}"
        wait_until(lambda: self._is_served(path), what=f"{plural} to be served", deadline_s=60)
        return path, "1"

    def _is_served(self, path: str) -> bool:
        try:
            return self._sandbox.api.find(path) is not None
        except ApiError:  # 429: its storage is being made
            return False

    def until(self, look: Callable[[], bool], what: str, within_s: float) -> None:
        """Wait."""
        try:
            wait_until(look, what=what, deadline_s=within_s, check=self._sandbox.check)
        except SandboxError as late:
            raise AssertionError(str(late)) from None

    def elapse(self, seconds: float) -> None:
        """Look at the clock until it is time."""
        ends_s = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() >= ends_s, what="time to go by", deadline_s=seconds + 60)

    def add_nodes(
        self, count: int, labels: Mapping[str, str], taints: Sequence[Raw], pods: int
    ) -> tuple[str, ...]:
        """Add machines."""
        return self._sandbox.fleet.add("spot", count, labels=labels, taints=taints, pods=pods)

    def ail(self, pod: str) -> None:
        """Say that a pod is not ready, as its kubelet would."""
        self._say(pod, "False")

    def heal(self, pod: str) -> None:
        """Say that it is ready again."""
        self._say(pod, "True")

    def _say(self, pod: str, ready: str) -> None:
        conditions = [{"type": kind, "status": ready} for kind in ("Ready", "ContainersReady")]
        path = f"{_NAMESPACES}/{self.namespace}/pods/{pod}/status"
        body = {"status": {"conditions": conditions}}
        self.request("PATCH", path, body=body, content_type=PatchKind.STRATEGIC)

    def silence(self, node: str) -> None:
        """Stop a machine's heartbeats, and have it seen."""
        self._sandbox.fleet.lose(node, seen_at_once=True)

    def hear(self, node: str) -> None:
        """Let a machine send heartbeats again."""
        self._sandbox.fleet.reconnect(node)

    def vanish(self, node: str) -> None:
        """Kill a machine."""
        self._sandbox.fleet.kill(node)

    def admit(self, policy: Policy) -> None:
        """Create the policy and its binding for this namespace."""
        kind = "MutatingAdmissionPolicy" if policy.sets else "ValidatingAdmissionPolicy"
        name = f"{policy.name}.{self.namespace}"
        rule = {
            "apiGroups": [policy.group],
            "apiVersions": ["*"],
            "operations": list(policy.operations),
            "resources": [policy.resource],
        }
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}}
        spec: Raw = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule], **here}}
        bound: Raw = {"policyName": name, "matchResources": here}
        if policy.sets:
            change = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": policy.sets}}
            spec |= {"mutations": [change], "reinvocationPolicy": "Never"}
        else:
            spec["validations"] = [{"expression": policy.holds, "message": policy.message}]
            bound["validationActions"] = ["Deny"]
        for each, what in ((kind, spec), (f"{kind}Binding", bound)):
            plural = each.lower().replace("policy", "policies") if each == kind else f"{each.lower()}s"
            made = {"apiVersion": _ADMISSION, "kind": each, "metadata": {"name": name}, "spec": what}
            self.request("POST", f"/apis/{_ADMISSION}/{plural}", body=made)


class Stage:
    """A control plane with the nodes that scripts share; hands out grounds."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._past = Past(sandbox.api)
        self._numbers = itertools.count()

    @classmethod
    @contextmanager
    def over(cls, sandbox: Sandbox) -> Iterator["Stage"]:
        """Yield the stage over a sandbox."""
        sandbox.fleet.add("on-demand", _SHARED_NODES, labels={NODE_LABEL: SHARED})
        stage = cls(sandbox)
        with stage._past.growing():
            yield stage

    @contextmanager
    def ground(self) -> Iterator[Real]:
        """Yield a new namespace; afterwards its policies are gone."""
        api, name = self._sandbox.api, f"scene-{next(self._numbers)}"
        api.create(_NAMESPACES, {"metadata": {"name": name}})
        account = f"{_NAMESPACES}/{name}/serviceaccounts/default"
        wait_until(lambda: api.find(account), what="the service account", deadline_s=60)
        try:
            yield Real(self._sandbox, self._past, name)
        finally:
            for kind in ("mutating", "validating"):
                for what in (f"{kind}admissionpolicybindings", f"{kind}admissionpolicies"):
                    path = f"/apis/{_ADMISSION}/{what}"
                    with contextlib.suppress(ApiError):
                        for raw in api.list(path):
                            if raw["metadata"]["name"].endswith(f".{name}"):
                                api.delete(f"{path}/{raw['metadata']['name']}", missing_ok=True)
