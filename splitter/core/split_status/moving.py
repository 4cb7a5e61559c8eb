"""What a Split remembers of the count that is in force while Karmada moves replicas to another cluster."""

from dataclasses import dataclass
from datetime import datetime

from splitter.core.split_status.values import Kept, instant, kept, ordinal, text, whole_seconds


@dataclass(frozen=True, slots=True)
class FollowedCount(Kept):
    """The count that was followed last, and which write of a person it belongs to."""

    replicas: int | None = kept("replicas", ordinal)
    asked: int | None = kept("asked", ordinal)
    """What the source asked for last: the same, but while replicas linger."""
    generation: str = kept("generation", text)
    """Karmada's, of the workload in its control plane: a move leaves it as it is."""
    until: datetime | None = kept("until", instant, whole_seconds)
    """Until then the replicas that Karmada moves elsewhere stay; None: none does."""


NOTHING_FOLLOWED = FollowedCount()
"""Of a workload that Karmada does not manage, or that is not split."""
