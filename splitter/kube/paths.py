"""Builds the path of every request, from checked names only.

Everything that `Client` sends goes to a `ResourcePath`. What a tenant writes into an owner, a claim or a
volume is a name or nothing, and never a piece of a URL: a path of anything else is not made.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Self

from splitter.core.labels_annotations import split_name
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name

OUR_API: Final = "/apis/splitter.io/v1alpha1"
_APPS: Final = "/apis/apps/v1"
_CORE: Final = "/api/v1"
_METRICS: Final = "/apis/metrics.k8s.io/v1beta1"
_PLURALS: Final = MappingProxyType({DEPLOYMENT: "deployments", STATEFUL_SET: "statefulsets"})
# What follows a name is ours to choose, and never an object's.
_WORD: Final = re.compile(r"[a-z0-9]+")
_PART: Final = re.compile(r"[a-z0-9]+(/[a-z0-9]+)?")
_PORT: Final = re.compile(r"([1-9][0-9]{0,4})?")
_API: Final = re.compile(r"/version|/api/v1|/apis/[a-z0-9.-]+(/v[0-9a-z]+)?")
# Says which versions of a group there are, and has no objects.
_GROUP: Final = re.compile(r"/apis/[a-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One collection, one object, or one part of an object.

    `plural` is the resource's name ("deployments"), empty for what an API says of itself. Without a
    `namespace` it is one of the whole cluster. Raises ValueError for what no object is called.
    """

    api: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    part: str = ""
    port: str = ""
    """Of a pod whose server is asked through the API server, as in `web:8081/proxy/metrics`."""

    def __post_init__(self) -> None:
        """Refuse every piece that is not what it has to be."""
        word = _WORD.fullmatch
        words = (not self.plural or word(self.plural)) and (not self.part or _PART.fullmatch(self.part))
        names = (not self.namespace or is_name(self.namespace)) and (not self.name or is_name(self.name))
        lacks_plural = not self.plural and (self.namespace or self.name)
        lacks_version = self.plural and _GROUP.fullmatch(self.api)
        lacks_name = (self.part or self.port) and not self.name
        is_right = words and names and _PORT.fullmatch(self.port) and _API.fullmatch(self.api)
        if lacks_plural or lacks_version or lacks_name or not is_right:
            raise ValueError("a name that no object can have makes no path")

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a path as it is written.

        >>> ResourcePath.read("/apis/apps/v1/namespaces/shop/deployments/web/scale").part
        'scale'
        """
        match = re.fullmatch(
            rf"(?P<api>{_API.pattern})(/namespaces/(?P<namespace>[^/]+)(?=/))?"
            r"(/(?P<plural>[^/]+))?(/(?P<name>[^/]+))?(/(?P<part>[^/]+))?",
            text,
        )
        if match is None:
            raise ValueError("this is no path of the API")
        return cls(**{name: piece or "" for name, piece in match.groupdict().items()})

    def of(self, name: str, part: str = "") -> Self:
        """Return where one object of this collection is. Raises ValueError for what no object is called."""
        if not name:
            raise ValueError("a name that no object can have makes no path")
        return type(self)(self.api, self.plural, self.namespace, name, part)

    @property
    def is_ours(self) -> bool:
        """Whether it is of a kind of splitter's own."""
        return self.api == OUR_API

    def is_answered_by(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer is about what was asked for: an object of this name, and of no other namespace.

        What is no object has no name: a Status, a review, and of a collection a list.
        """
        metadata = answer.get("metadata")
        if "items" in answer or not isinstance(metadata, Mapping):
            return not (self.name and "items" in answer)
        name, namespace = metadata.get("name", self.name), metadata.get("namespace", self.namespace)
        return bool(name == (self.name or name) and namespace == (self.namespace or namespace))

    def __str__(self) -> str:
        """Return it as it is sent."""
        scope = f"/namespaces/{self.namespace}" if self.namespace else ""
        name = f"{self.name}:{self.port}" if self.port else self.name
        pieces = (piece for piece in (self.plural, name, self.part) if piece)
        return "/".join((self.api + scope, *pieces))


# Where the objects of a namespace are; without one, those of all.
replica_sets = partial(ResourcePath, _APPS, "replicasets")
controller_revisions = partial(ResourcePath, _APPS, "controllerrevisions")  # templates of StatefulSets
pods = partial(ResourcePath, _CORE, "pods")
# Of what else may own pods only rivals are looked for.
daemon_sets = partial(ResourcePath, _APPS, "daemonsets")
stateful_sets = partial(ResourcePath, _APPS, "statefulsets")
replication_controllers = partial(ResourcePath, _CORE, "replicationcontrollers")
jobs = partial(ResourcePath, "/apis/batch/v1", "jobs")
claims = partial(ResourcePath, _CORE, "persistentvolumeclaims")
config_maps = partial(ResourcePath, _CORE, "configmaps")
resource_quotas = partial(ResourcePath, _CORE, "resourcequotas")
events = partial(ResourcePath, "/apis/events.k8s.io/v1", "events")
leases = partial(ResourcePath, "/apis/coordination.k8s.io/v1", "leases")
budgets = partial(ResourcePath, "/apis/policy/v1", "poddisruptionbudgets")
hpas = partial(ResourcePath, "/apis/autoscaling/v2", "horizontalpodautoscalers")
scaled_objects = partial(ResourcePath, "/apis/keda.sh/v1alpha1", "scaledobjects")
vpas = partial(ResourcePath, "/apis/autoscaling.k8s.io/v1", "verticalpodautoscalers")
used_by_pods = partial(ResourcePath, _METRICS, "pods")  # what they really use
splits = partial(ResourcePath, OUR_API, "splits")
placements = partial(ResourcePath, OUR_API, "placements")  # one of ours in each namespace, and unused copies


def workloads(kind: str, namespace: str = "") -> ResourcePath:
    """Return where the Deployments, or the StatefulSets, are. Raises ValueError for any other kind."""
    if kind not in _PLURALS:
        raise ValueError(f"splitter asks for no workloads but {' and '.join(_PLURALS)}s")
    return ResourcePath(_APPS, _PLURALS[kind], namespace)


def workload(key: Key, name: str = "") -> ResourcePath:
    """Return where a source is, or a workload of another name of its kind: a twin."""
    return workloads(key.kind, key.namespace).of(name or key.name)


def pod_metrics(namespace: str, name: str, port: int) -> ResourcePath:
    """Return where a pod's metrics are, through the API server. Raises ValueError for no name or port."""
    return ResourcePath(_CORE, "pods", namespace, name, "proxy/metrics", str(port))


def split(key: Key) -> ResourcePath:
    """Return where a source's Split is."""
    return splits(key.namespace).of(split_name(key))


USED_BY_NODES: Final = ResourcePath(_METRICS, "nodes")
NODES: Final = ResourcePath(_CORE, "nodes")
NAMESPACES: Final = ResourcePath(_CORE, "namespaces")
VOLUMES: Final = ResourcePath(_CORE, "persistentvolumes")
NODE_CLAIMS: Final = ResourcePath("/apis/karpenter.sh/v1", "nodeclaims")
DEFINITIONS: Final = ResourcePath("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions")
REVIEWS: Final = ResourcePath("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
POLICIES: Final = ResourcePath("/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicies")
BINDINGS: Final = ResourcePath("/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings")
