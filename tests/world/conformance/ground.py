"""What a scene is played on, an API server with its nodes and its time, and what both sides understand.

`real` is a control plane, `test_world` has the one in memory. Paths, bodies and answers are those of the
wire. Nothing here decides anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Raw = dict[str, Any]

NODE_LABEL = "conformance"  # says whose node it is: SHARED, or the namespace of one scene
SHARED = "shared"


class Refused(Exception):  # noqa: N818 - it is an answer, and no fault
    """The API server said no: the HTTP status, Kubernetes' word for it, and the sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


@dataclass(frozen=True, slots=True)
class Change:
    """An object as a watch has shown it; `deleted` when that was its end."""

    raw: Raw
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """An admission policy for one collection of one namespace, as CEL and as a function of the same sense.

    It refuses where `holds` is false, with `message`, or writes what `sets` says (an `Object{...}` in CEL).
    `judge` is the same for a world without CEL: it is given the operation, the object and the former one
    (empty for CREATE), changes the object in place, and returns why it refuses, "" when it does not.
    """

    name: str
    group: str
    resource: str
    operations: tuple[str, ...]
    judge: Callable[[str, Raw, Raw], str]
    holds: str = ""
    message: str = ""
    sets: str = ""


class Ground(Protocol):
    """A namespace of an API server, and what can be done to the nodes behind it."""

    namespace: str

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
        """Return the answer's object. Raises Refused. `user`: as that one, in the usual groups."""
        ...

    def past(self, plural: str) -> Sequence[Change]:
        """Return what a watch has shown of a collection of the namespace so far, oldest first."""
        ...

    def watch(self, path: str, query: Mapping[str, str]) -> list[Raw]:
        """Return the events that a watch with this query has to tell by now (type and object)."""
        ...

    def forgotten(self) -> tuple[str, str]:
        """Return a collection's path and a resourceVersion that its watch has forgotten."""
        ...

    def until(self, look: Callable[[], bool], what: str, within_s: float) -> None:
        """Let time go by until `look` is true. Raises AssertionError when it never is."""
        ...

    def elapse(self, seconds: float) -> None:
        """Let time go by."""
        ...

    def add_nodes(
        self, count: int, labels: Mapping[str, str], taints: Sequence[Raw], pods: int
    ) -> tuple[str, ...]:
        """Add nodes with room for so many pods, wait until pods can be bound, and return their names."""
        ...

    def ail(self, pod: str) -> None:
        """Have a pod fail its readiness probe."""
        ...

    def heal(self, pod: str) -> None:
        """Have it pass again."""
        ...

    def silence(self, node: str) -> None:
        """Let a node send no heartbeats until the node controller has seen it."""
        ...

    def hear(self, node: str) -> None:
        """Let a silent node send heartbeats again until it is Ready."""
        ...

    def vanish(self, node: str) -> None:
        """Take a machine and its Node object away."""
        ...

    def admit(self, policy: Policy) -> None:
        """Have a policy in force."""
        ...
