"""What placement has to know that is no pod: where volumes can be attached, what an eviction was answered.

Plain data on the Observation; `kube` finds it out, `placement` reads it. Nothing here decides.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

# With fewer members than this, one that restarts leaves no majority.
FEWEST: Final = 3
FEW_REMEDY: Final = (
    "To have it moved, scale it to 3 members or more, or split it into twins (splitter.io/mode: twins)"
)


@dataclass(frozen=True, slots=True)
class Reach:
    """On which nodes a member's volumes can be attached; one without volumes goes everywhere."""

    on_demand: bool = True
    spot: bool = True
    why: str = ""  # what keeps it, where something does
    terms_json: str = ""  # the nodeSelectorTerms of its volumes: what holds its room has to heed them


@dataclass(frozen=True, slots=True)
class EvictionRefusal:
    """What the API server answered to an eviction: a PodDisruptionBudget stands in its way."""

    pod_uid: str
    detail: str
    at: datetime
