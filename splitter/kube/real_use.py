"""Reads what nodes and pods really use: from metrics.k8s.io, as metrics-server serves it, or a Prometheus.

`relief.watch` asks while a workload asks for relief, and at no other time: one list of nodes, and one
of the twins' pods. What is answered is foreign: an item that cannot be read counts as none,
`relief.samples` judges numbers, and the client bounds the answer. Nothing here decides.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar

from splitter.core.labels_annotations import LABEL_POOL
from splitter.core.relief.model import Amounts, Sample
from splitter.kube.client import ApiError
from splitter.kube.listed import Reader
from splitter.kube.parse.fields import instant, quantity
from splitter.kube.paths import USED_BY_NODES, ResourcePath, used_by_pods
from splitter.kube.prometheus import NoAnswerError, Series, series

T = TypeVar("T")

# Of a pod's containers; more are no answer that anybody means.
_CONTAINERS_MAX = 100
_TIME_MAX = 40
# Five milliseconds of work.
_AT_ONCE = 200
_QUANTITY = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([numkMGTPE]|[KMGTPE]i)?")


@dataclass(frozen=True, slots=True)
class RealUse:
    """One answer: what was measured, or why nothing is known."""

    nodes: Mapping[str, Sample] = field(default_factory=dict)
    """By the name of the node."""
    pods: Mapping[tuple[str, str], Sample] = field(default_factory=dict)
    """By the namespace and the name of the pod."""
    missing: str = ""
    """What has to be done before something is known."""


@dataclass(frozen=True, slots=True)
class Queries:
    """What a Prometheus is asked: cores and bytes, of nodes by their names, of pods by namespace and name."""

    node_cpu: str
    node_memory: str
    pod_cpu: str
    pod_memory: str


async def used_by_prometheus(address: str, queries: Queries, namespaces: Sequence[str]) -> RealUse:
    """Return the same, as a Prometheus tells it; it is asked four times, one after the other.

    Never raises for an answer. What has no name, two values, or one of CPU and memory only counts as none.
    """
    try:
        nodes = await _both(address, queries.node_cpu, queries.node_memory, _node_of)
        pods = await _both(address, queries.pod_cpu, queries.pod_memory, _pod_of)
    except NoAnswerError as error:
        return RealUse(missing=f"real use cannot be read: {error}")
    if not nodes:
        return RealUse(missing="the Prometheus has no use of nodes by name; look at relief_node_cpu_query")
    of_nodes = {name: sample for (_, name), sample in nodes.items()}
    wanted = {key: one for key, one in pods.items() if not namespaces or key[0] in namespaces}
    return RealUse(of_nodes, wanted)


async def _both(
    address: str, cpu: str, memory: str, key_of: Callable[[Series], tuple[str, str]]
) -> dict[tuple[str, str], Sample]:
    cores, amounts = await _values(address, cpu, key_of), await _values(address, memory, key_of)
    return {
        key: Sample(min(one.at, amounts[key].at), Amounts(one.value * 1000, amounts[key].value))
        for key, one in cores.items()
        if key in amounts
    }


async def _values(
    address: str, query: str, key_of: Callable[[Series], tuple[str, str]]
) -> dict[tuple[str, str], Series]:
    values: dict[tuple[str, str], Series] = {}
    twice = set[tuple[str, str]]()
    async for one in _in_turns(await series(address, query)):
        key = key_of(one)
        if key in values:
            twice.add(key)  # nobody knows which one is meant
        values[key] = one
    return {key: one for key, one in values.items() if key[1] and key not in twice}


def _node_of(one: Series) -> tuple[str, str]:
    return "", one.labels.get("node") or one.labels.get("nodename", "")


def _pod_of(one: Series) -> tuple[str, str]:
    return one.labels.get("namespace", ""), one.labels.get("pod", "")


async def real_use(reader: Reader, namespaces: Sequence[str]) -> RealUse:
    """Return what nodes and the twins' pods use now; of pods only in these namespaces, if there are any.

    Never raises for an answer: what is missing is said.
    """
    try:
        nodes = await _items(reader, USED_BY_NODES)
        pods = [
            one
            for namespace in namespaces or ("",)
            for one in await _items(reader, used_by_pods(namespace), labelSelector=LABEL_POOL)
        ]
    except ApiError as error:
        return RealUse(missing=_missing(error))
    of_nodes: dict[str, Sample] = {}
    of_pods: dict[tuple[str, str], Sample] = {}
    async for raw in _in_turns(nodes):
        if (name := _name(raw)) and (sample := _of_node(raw)):
            of_nodes[name] = sample
    async for raw in _in_turns(pods):
        if (name := _name(raw)) and (sample := _of_pod(raw)):
            of_pods[str(raw["metadata"].get("namespace")), name] = sample
    return RealUse(of_nodes, of_pods)


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield one after the other, and let others have their turn: ten thousand take 0.2 s."""
    for place, one in enumerate(items):
        if place % _AT_ONCE == 0:
            await asyncio.sleep(0)
        yield one


async def _items(reader: Reader, path: ResourcePath, **query: str) -> Iterable[Mapping[str, Any]]:
    # Asked once and for all: metrics-server has no pages, and who asks again in a minute repeats nothing.
    answer = await reader.get(path, **query)
    items = answer.get("items")
    if not isinstance(items, list):
        raise ApiError(0, "", f"{path} is answered without items")
    return [one for one in items if isinstance(one, Mapping)]


def _missing(error: ApiError) -> str:
    match error.status:
        case HTTPStatus.FORBIDDEN:
            return (
                "splitter may not list nodes and pods of metrics.k8s.io; apply manifests/relief.yaml (in the"
                " chart: relief.enabled)"
            )
        case HTTPStatus.NOT_FOUND:
            return "this cluster does not serve metrics.k8s.io; install metrics-server"
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return "nobody answers for metrics.k8s.io; look at metrics-server (kubectl top nodes)"
        case _:
            return f"metrics.k8s.io cannot be read: {error.message[:200] or error}"


def _name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def _of_node(raw: Mapping[str, Any]) -> Sample | None:
    at, used = _at(raw), _amounts(raw.get("usage"))
    return Sample(at, used) if at is not None and used is not None else None


def _of_pod(raw: Mapping[str, Any]) -> Sample | None:
    at, containers = _at(raw), raw.get("containers")
    if at is None or not isinstance(containers, list) or not 0 < len(containers) <= _CONTAINERS_MAX:
        return None
    total = Amounts()
    for one in containers:
        used = _amounts(one.get("usage")) if isinstance(one, Mapping) else None
        if used is None:
            return None
        total += used
    return Sample(at, total)


def _at(raw: Mapping[str, Any]) -> datetime | None:
    text = raw.get("timestamp")
    if not isinstance(text, str) or len(text) > _TIME_MAX:
        return None
    try:
        return instant(text)
    except (ValueError, OverflowError):
        return None


def _amounts(usage: object) -> Amounts | None:
    if not isinstance(usage, Mapping):
        return None
    cpu, memory = (_amount(name, usage.get(name)) for name in ("cpu", "memory"))
    return Amounts(cpu, memory) if cpu is not None and memory is not None else None


def _amount(resource: str, text: object) -> float | None:
    """Return a quantity; None of what is none. A negative one is judged by who uses it."""
    if not isinstance(text, str) or not _QUANTITY.fullmatch(text):
        return None
    return float(quantity(resource, text))
