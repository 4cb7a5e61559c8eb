"""The facts that placement needs besides pods: reach of volumes, past evictions, stored ordinals.

Plain data on the Observation; `kube` finds it out, `placement` reads it. Nothing here decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

# With fewer members than this, one that restarts leaves no majority.
FEWEST: Final = 3
FEW_REMEDY: Final = (
    "To have it moved, scale it to 3 members or more, or split it into twins (splitter.io/mode: twins)"
)
# No watch tells whether the API server would place a new pod. Where it would not, it is asked again after:
UNPLACEABLE_AGAIN_S: Final = 60.0
# Ordinals as ranges, first and last of each: a set of ten thousand is seldom more than two of them.
Runs: TypeAlias = tuple[tuple[int, int], ...]


def runs(ordinals: Iterable[int]) -> Runs:
    """Return ordinals as ranges, lowest first.

    >>> runs([4, 0, 1, 2])
    ((0, 2), (4, 4))
    """
    ranges: list[tuple[int, int]] = []
    for ordinal in sorted(set(ordinals)):
        if ranges and ranges[-1][1] == ordinal - 1:
            ranges[-1] = (ranges[-1][0], ordinal)
        else:
            ranges.append((ordinal, ordinal))
    return tuple(ranges)


@dataclass(frozen=True, slots=True)
class Reach:
    """On which nodes a member's volumes can be attached; one without volumes goes everywhere."""

    on_demand: bool = True
    spot: bool = True
    why: str = ""  # what keeps it, where something does
    terms_json: str = ""  # the nodeSelectorTerms of its volumes: what holds its room has to heed them


@dataclass(frozen=True, slots=True)
class OneNodeClaim:
    """A PersistentVolumeClaim that one node may mount at a time, or even one pod."""

    name: str
    one_pod: bool = False  # ReadWriteOncePod


@dataclass(frozen=True, slots=True)
class EvictionRefusal:
    """What the API server answered to an eviction: a PodDisruptionBudget stands in its way."""

    pod_uid: str
    detail: str
    at: datetime
