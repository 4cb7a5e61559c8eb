"""The functions that the cache calls for knowledge of others."""

from datetime import datetime
from typing import Protocol

from splitter.core.names import Key
from splitter.core.nodes.facts import NodeFacts, NodeState


class Enqueue(Protocol):
    """Asks for a reconcile."""

    def __call__(self, key: Key, *, urgent: bool) -> None:
        """Ask for a reconcile of this workload; urgent ones go first."""


def enqueue_nothing(key: Key, *, urgent: bool) -> None:
    """Do nothing: a command that reads a cluster once causes no reconcile."""
    del key, urgent


class Assess(Protocol):
    """Says what a node is and what becomes of its pods (`signals.assess`, and the settings' presets)."""

    def __call__(self, facts: NodeFacts, /, *, now: datetime | None = None) -> NodeState:
        """Return its state; without `now`, Events never grow stale."""
