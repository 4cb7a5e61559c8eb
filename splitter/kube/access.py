"""Checks at start which API server this is, and whether splitter has the rights that it needs.

`operator.run` calls `check_connection` and `check_access` once, the command line `check_connection`. Each
missing right and a missing CRD is named with the file that grants it: a right that is found missing in the
middle of a hand-over is an outage.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
from typing import TypeVar

from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.kube.client import ApiError, Client
from splitter.kube.lease import NAME
from splitter.kube.paths import OUR_API, REVIEWS, ResourcePath

logger = logging.getLogger("splitter")

# (API group, resource, verbs): what one reconcile or another needs, no more (manifests/rbac.yaml).
_NAMESPACED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("apps", "deployments", ("get", "list", "watch", "create", "update", "patch", "delete")),
    ("apps", "statefulsets", ("get", "list", "watch", "create", "update", "patch", "delete")),
    ("apps", "controllerrevisions", ("get",)),
    ("apps", "replicasets", ("get", "list", "watch", "create", "patch", "delete")),
    ("apps", "daemonsets", ("list",)),
    ("", "replicationcontrollers", ("list",)),
    ("batch", "jobs", ("list",)),
    ("", "pods", ("list", "watch", "patch", "delete", "create")),
    ("", "pods/eviction", ("create",)),
    ("events.k8s.io", "events", ("create",)),
    ("autoscaling", "horizontalpodautoscalers", ("list",)),
    ("splitter.io", "splits", ("list", "watch", "create", "patch", "delete")),
    ("splitter.io", "splits/status", ("patch",)),
    ("splitter.io", "placements", ("list", "watch", "create", "patch", "delete")),
)
_CLUSTER: tuple[tuple[str, str, tuple[str, ...]], ...] = (("", "nodes", ("get", "list", "watch")),)
# Of the one Lease in splitter's own namespace; only creating cannot be restricted to a name.
_LEASE: tuple[tuple[str, str], ...] = (("create", ""), ("get", NAME), ("update", NAME))
# A namespaced install has no defaults on namespaces (docs/limits.md).
_CLUSTER_WIDE: tuple[tuple[str, str, tuple[str, ...]], ...] = (("", "namespaces", ("list", "watch")),)
# A request's deadline runs while it waits for a connection: hundreds at once (some 40 rights in each of many
# namespaces) would be late before they are sent.
_AT_ONCE = 8
_ASK_AGAIN_S = 0.5

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, order=True)
class _Right:
    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""


async def patiently(ask: Callable[[], Awaitable[_Answer]], patience_s: float) -> _Answer:
    """Return what `ask` answers; while it raises ApiUnreachable it is asked again, for `patience_s` in all.

    A pod may start before its node has a network, or while all API servers are being replaced. What is
    refused is never asked for again. Raises SplitterError as `ask` did the last time. Without patience it is
    asked once, for as long as it takes.
    """
    if not patience_s:
        return await ask()
    silence: SplitterError | None = None
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    return await ask()
                except SplitterError as error:
                    if error.reason is not Reason.API_UNREACHABLE:
                        raise
                    if silence is None:
                        logger.warning("%s; it is asked again for %g s", error.message, patience_s)
                    silence = error
                await asyncio.sleep(_ASK_AGAIN_S)
    except TimeoutError:
        if silence is not None:
            raise silence from silence.__cause__
        message = f"the API server has not answered for {patience_s:g} s; check the network of this node"
        raise SplitterError(Reason.API_UNREACHABLE, message) from None


async def check_connection(client: Client) -> str:
    """Return the server's version; the first thing `run` asks, before kopf starts.

    Raises SplitterError: ApiUnreachable or Forbidden, with what to check.
    """
    try:
        async with asyncio.timeout(15):
            version = await client.get(ResourcePath("/version"))
    except (ApiError, TimeoutError) as error:
        status = error.status if isinstance(error, ApiError) else 0
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise SplitterError(
                Reason.FORBIDDEN,
                f"the API server {client.server} refuses these credentials ({error}); they may have"
                " expired: check the kubeconfig's user or the service account's token",
            ) from error
        raise SplitterError(
            Reason.API_UNREACHABLE,
            f"the API server {client.server} does not answer ({error}); check its address in the"
            " kubeconfig and the network between here and there",
        ) from error
    return str(version.get("gitVersion", "unknown"))


async def check_access(
    client: Client, namespaces: Sequence[str], lease_namespace: str = ""
) -> tuple[str, ...]:
    """Return those of the watched namespaces in which rights are missing, as long as there are others.

    Such a namespace may be gone, or not there yet, and is nobody else's outage. Raises SplitterError
    (Forbidden) naming every missing right, or a missing CRD. `lease_namespace`: where a leader is elected;
    empty: nowhere.
    """
    common = [_Right(group, resource, verb) for group, resource, verbs in _CLUSTER for verb in verbs]
    if not namespaces:
        common += [
            _Right(group, resource, verb) for group, resource, verbs in _CLUSTER_WIDE for verb in verbs
        ]
        common += _on_workloads("")
    if lease_namespace:
        common += [
            _Right("coordination.k8s.io", "leases", verb, lease_namespace, name) for verb, name in _LEASE
        ]
    own = {namespace: _on_workloads(namespace) for namespace in namespaces}
    try:
        missing = await _missing(client, [*common, *chain.from_iterable(own.values())])
        forbidden = tuple(namespace for namespace, rights in own.items() if missing.intersection(rights))
        if missing.intersection(common) or (namespaces and len(forbidden) == len(own)):
            raise SplitterError(Reason.FORBIDDEN, _described(missing))
        await _must_be_ours(client)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise SplitterError(
                Reason.FORBIDDEN,
                "this cluster does not know Splits (splits.splitter.io); apply manifests/crd.yaml first",
            ) from error
        raise SplitterError(
            Reason.API_UNREACHABLE, f"the API server {client.server} answered: {error}"
        ) from error
    return forbidden


async def _must_be_ours(client: Client) -> None:
    """Raise SplitterError (NewerState) where Splits are of a version of the API that is not known here.

    Whoever installed that has a newer splitter, whose state nobody here can read (docs/adr/0044). Raises
    ApiError: 404 where there are no Splits at all.
    """
    group, _, ours = OUR_API.rpartition("/")
    discovery = await client.get(ResourcePath(group))
    served = [str(one.get("version")) for one in discovery.get("versions") or ()]
    preferred = str((discovery.get("preferredVersion") or {}).get("version"))
    if ours in served and preferred == ours:
        return
    raise SplitterError(
        Reason.NEWER_STATE,
        f"this cluster keeps Splits as {preferred}, and this splitter knows {ours} only: a newer one is or"
        " was installed here. Nothing has been touched. Run that version again; to go back to this one, first"
        " give everything back with it (splitter uninstall -A)",
    )


async def missing_in(client: Client, namespace: str) -> str:
    """Return a sentence that names every right that is missing in a namespace, or "". Raises ApiError."""
    missing = await _missing(client, _on_workloads(namespace))
    return _described(missing) if missing else ""


def _on_workloads(namespace: str) -> list[_Right]:
    return [
        _Right(group, resource, verb, namespace) for group, resource, verbs in _NAMESPACED for verb in verbs
    ]


async def _missing(client: Client, wanted: Sequence[_Right]) -> set[_Right]:
    at_once = asyncio.Semaphore(_AT_ONCE)
    answers = await asyncio.gather(*(_allowed(client, right, at_once) for right in wanted))
    return {right for right, allowed in zip(wanted, answers, strict=True) if not allowed}


def _described(missing: Iterable[_Right]) -> str:
    return (
        f"these credentials may not {'; '.join(map(_sentence, sorted(missing)))}."
        " Apply manifests/rbac.yaml and run splitter with its service account"
    )


async def _allowed(client: Client, right: _Right, at_once: asyncio.Semaphore) -> bool:
    name, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": name, "verb": right.verb, "namespace": right.namespace}
    if subresource:
        attributes["subresource"] = subresource
    if right.name:
        attributes["name"] = right.name
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    async with at_once:
        answer = await client.send("POST", REVIEWS, body)
    return bool(answer.get("status", {}).get("allowed"))


def _sentence(right: _Right) -> str:
    kind = f"{right.resource}.{right.group}" if right.group else right.resource
    named = f"{kind} {right.name}" if right.name else kind
    return f"{right.verb} {named}" + (f" in namespace {right.namespace}" if right.namespace else "")
