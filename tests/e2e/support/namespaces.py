"""A namespace for each test, and the end of what other tests had in theirs."""

import itertools
from collections.abc import Iterator
from typing import Protocol

from e2e.support.planted import verify_kept, verify_kept_in
from e2e.support.shop import DEADLINE_S, JsonObject, Shop
from splitter.sandbox import Sandbox
from splitter.sandbox.errors import SandboxError
from splitter.sandbox.waiting import wait_until

NAMESPACES = "/api/v1/namespaces"
# A workload goes when its pods have; what stood on machines that vanished is collected after a minute.
GOING_S = 180.0
_WORKLOADS = ("deployments", "statefulsets", "replicasets", "daemonsets")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERS = itertools.count()


class Watching(Protocol):
    """A controller that looks after the namespace: its log, and that it lives."""

    def check(self) -> None:
        """Raise SandboxError when it should run and does not."""

    def logged(self) -> int:
        """Return how long the log is, in bytes."""

    def said(self, after: int = 0) -> str:
        """Return the log, whole or what was added after it had so many bytes."""


def open_shop(sandbox: Sandbox, controller: Watching, name: str = "") -> Iterator[Shop]:
    """Make a namespace; afterwards delete all workloads in it, and look for what splitter must not say.

    The empty namespace stays: to end one costs as much as to split a workload (160 requests).
    """
    namespace = name or f"shop-{next(_NUMBERS)}"
    sandbox.api.create(NAMESPACES, {"metadata": {"name": namespace}})
    account = f"{NAMESPACES}/{namespace}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(account), what="the service account", deadline_s=DEADLINE_S)

    def check() -> None:
        sandbox.check()
        controller.check()

    logged_before = controller.logged()
    yield Shop(sandbox, namespace, check)
    try:
        verify_kept("splitter's log", controller.said(logged_before).splitlines())
        verify_kept_in(sandbox.api, namespace)
    finally:
        _empty(sandbox, namespace)


def _empty(sandbox: Sandbox, namespace: str) -> None:
    paths = [f"/apis/apps/v1/namespaces/{namespace}/{kind}" for kind in _WORKLOADS]
    autoscalers = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    for path in (*paths, autoscalers):
        sandbox.api.request("DELETE", path, body={"propagationPolicy": "Background"})
    # At once: KWOK never ends a pod that it listed just before its machine came back (`Fleet._thaw`).
    pods = f"{NAMESPACES}/{namespace}/pods"
    sandbox.api.request("DELETE", pods, body={"gracePeriodSeconds": 0})


def wait_alone(sandbox: Sandbox) -> None:
    """Wait until nothing of other tests is left: it would be looked after too, and seen.

    Raises SandboxError with what is still there.
    """

    def left() -> list[JsonObject]:
        ours = ("splits", "placements")
        paths = [f"/apis/apps/v1/{kind}" for kind in _WORKLOADS]
        paths += [
            f"/apis/splitter.io/v1alpha1/{kind}"
            for kind in ours
            if sandbox.api.find(f"{_CRDS}/{kind}.splitter.io")
        ]
        collected = [raw for path in paths for raw in sandbox.api.list(path)]
        return collected + [
            raw for raw in sandbox.api.list(NAMESPACES) if "deletionTimestamp" in raw["metadata"]
        ]

    def pods() -> list[JsonObject]:
        return sandbox.api.list("/api/v1/pods")

    try:
        wait_until(
            lambda: not (left() or pods()), what="the end of other tests' workloads", deadline_s=GOING_S
        )
    except SandboxError as late:
        for raw in left() + pods():
            late.add_note(
                f"{raw['metadata'].get('namespace')}/{raw['metadata']['name']}: {raw.get('status')}"
            )
        raise
