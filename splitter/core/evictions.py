"""The user's choice how evictions wait, and the PodDisruptionBudgets of a namespace."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique


@unique
class Evictions(StrEnum):
    """How evictions of a workload's pods wait for their replacements."""

    ONE_AT_A_TIME = "one-at-a-time"
    SURGE_FIRST = "surge-first"
    UNGUARDED = "unguarded"


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A PodDisruptionBudget of the namespace."""

    name: str
    uid: str
    is_ours: bool  # made for this workload
    min_available: int | None  # None: percent, maxUnavailable, or nothing
    selector: tuple[tuple[str, str, tuple[str, ...]], ...] | None  # key, operator, values; None: no pod
    says: str = ""  # how many pods it keeps, as its user wrote it: "minAvailable 50%"
    healthy: int = 0  # how many ready pods Kubernetes has counted for it, those being evicted too
    refuses_since: datetime | None = None  # since when it lets no eviction through; None: it lets some
