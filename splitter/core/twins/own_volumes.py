"""Which counts of a StatefulSet would touch volumes that are not of the twins: those stay as they are."""

from collections.abc import Sequence

from splitter.core.actions import Scale
from splitter.core.holders.source import loses_volumes
from splitter.core.model import Observation, SourceView, TwinView


def spared(source: SourceView, scales: Sequence[Scale]) -> tuple[Scale, ...]:
    """Leave out what would lower a source whose volumes go with its pods: `whenScaled: Delete`, set since."""
    if not loses_volumes(source):
        return tuple(scales)
    return tuple(one for one in scales if one.name != source.key.name or one.replicas > one.was)


def with_own_volumes(observed: Observation, twin: TwinView, wanted: int) -> int:
    """Raise no twin to a member that would mount a foreign claim, and delete it when it goes (H74)."""
    below, _ = observed.related.taken_claims.get(twin.pool, (wanted, ""))
    return min(wanted, max(below, twin.spec_replicas))
