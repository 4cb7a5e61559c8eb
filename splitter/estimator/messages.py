"""The three requests that Karmada sends to an estimator, read from their bytes.

Field numbers are those of pkg/estimator/pb in Karmada 1.10 to 1.19. Up to 1.17 a request holds messages of
Kubernetes; since 1.18 the same messages as bytes, under another number; 1.18 sends both. On the wire they are
alike, so the newer is read if it is there. What a replica asks for becomes a `PodRequest`, as of a template.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.core.nodes.fit import PodRequest
from splitter.estimator.wire import Message, WireError, text_of
from splitter.kube.parse.fields import quantity
from splitter.kube.parse.pods import pod_request

_T = TypeVar("_T")

# Both are more than people write; each is held against every node.
MAX_RESOURCES: Final = 32
MAX_COMPONENTS: Final = 64
_NANOSECONDS: Final = 1e9
_KINDS: Final = frozenset({DEPLOYMENT, STATEFUL_SET})
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
_TOLERATION: Final = {1: "key", 2: "operator", 3: "value", 4: "effect"}
_QUANTITY: Final = re.compile(
    r"(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?"
)


@dataclass(frozen=True, slots=True)
class Component:
    """Replicas that are alike: of a workload that is asked about, or of one that is on its way."""

    pod: PodRequest
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """MaxAvailableReplicas and MaxAvailableComponentSets: how often these components fit, all of them."""

    cluster: str
    components: tuple[Component, ...]
    assumed: tuple[Component, ...] = ()
    """Of workloads that Karmada's scheduler has given to this cluster, and that are not bound yet."""


@dataclass(frozen=True, slots=True)
class UnschedulableRequest:
    """GetUnschedulableReplicas: how many replicas of a workload find no place."""

    cluster: str
    key: Key
    threshold_s: float


def max_replicas(raw: bytes) -> RoomRequest:
    """Read a MaxAvailableReplicasRequest. Raises WireError."""
    asked = Message(raw)
    replica = Component(_pod(asked.message(2), (2, 5)))
    return RoomRequest(asked.text(1), (replica,), _assumed(asked, 3))


def max_component_sets(raw: bytes) -> RoomRequest:
    """Read a MaxAvailableComponentSetsRequest. Raises WireError."""
    asked = Message(raw)
    components = _components(asked, 2)
    if not any(one.replicas for one in components):
        raise WireError("a workload without components is asked about")
    return RoomRequest(asked.text(1), components, _assumed(asked, 4))


def unschedulable(raw: bytes) -> UnschedulableRequest:
    """Read an UnschedulableReplicasRequest. Raises WireError."""
    asked = Message(raw)
    resource = asked.message(2)
    api_version, kind = resource.text(1), resource.text(2)
    if kind not in _KINDS or api_version != "apps/v1":
        raise WireError("only Deployments and StatefulSets of apps/v1 are known here")
    try:
        key = Key(kind, resource.text(3), resource.text(4))
    except ValueError as error:
        raise WireError(str(error)) from error
    return UnschedulableRequest(asked.text(1), key, max(0, asked.number(3)) / _NANOSECONDS)


def _assumed(asked: Message, number: int) -> tuple[Component, ...]:
    workloads = [Message(raw) for raw in asked.many(number)]
    components = [one for workload in workloads for one in _components(workload, 2)]
    return _few(components, MAX_COMPONENTS, "components")


def _components(asked: Message, number: int) -> tuple[Component, ...]:
    components = _few([Message(raw) for raw in asked.many(number)], MAX_COMPONENTS, "components")
    return tuple(Component(_pod(one.message(2), (2, 4)), max(0, one.number(3))) for one in components)


def _pod(requirements: Message, resources: tuple[int, int]) -> PodRequest:
    """Read what one replica asks for; `resources`: the older and the newer number of what it requests."""
    claim = requirements.message(1)
    requests = dict(_entry(raw) for raw in _newer(requirements, *resources))
    _few(list(requests), MAX_RESOURCES, "resources")
    affinity = [_selector(raw) for raw in _newer(claim, 1, 4)[-1:]]
    spec: dict[str, Any] = {
        "containers": [
            {"resources": {"requests": {name: _quantity(name, raw) for name, raw in requests.items()}}}
        ],
        "nodeSelector": {name: text_of(raw) for name, raw in map(_entry, claim.many(2))},
        "tolerations": [_toleration(raw) for raw in _newer(claim, 3, 5)],
    }
    if affinity:
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity[0]}}
    return pod_request(spec)


def _newer(message: Message, older: int, newer: int) -> list[bytes]:
    return message.many(newer) or message.many(older)


def _entry(raw: bytes) -> tuple[str, bytes]:
    """Read an entry of a map: its key, and its value, a text or a message, as bytes."""
    entry = Message(raw)
    return entry.text(1), (entry.many(2) or [b""])[-1]


def _quantity(resource: str, raw: bytes) -> str:
    """Read a Quantity. One that cannot be read would count 0, and fit everywhere: it is refused."""
    text = Message(raw).text(1)
    if not _QUANTITY.fullmatch(text) or (not quantity(resource, text) and re.search(r"^[^eE]*[1-9]", text)):
        raise WireError("a quantity cannot be read")
    return text


def _selector(raw: bytes) -> dict[str, Any]:
    terms = [Message(term) for term in Message(raw).many(1)]
    return {
        "nodeSelectorTerms": [
            {"matchExpressions": _requirements(term, 1), "matchFields": _requirements(term, 2)}
            for term in terms
        ]
    }


def _requirements(term: Message, number: int) -> list[dict[str, Any]]:
    read = []
    for one in map(Message, term.many(number)):
        operator = one.text(2)
        if operator not in _OPERATORS:
            raise WireError("an operator of a node selector is not known")
        read.append(
            {"key": one.text(1), "operator": operator, "values": [text_of(raw) for raw in one.many(3)]}
        )
    return read


def _toleration(raw: bytes) -> dict[str, str]:
    toleration = Message(raw)
    return {name: text for number, name in _TOLERATION.items() if (text := toleration.text(number))}


def _few(named: list[_T], most: int, what: str) -> tuple[_T, ...]:
    if len(named) > most:
        raise WireError(f"it names {len(named)} {what}; at most {most} are read")
    return tuple(named)
