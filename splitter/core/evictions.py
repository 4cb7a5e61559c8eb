"""The user's choice how evictions wait, and the PodDisruptionBudgets of a namespace."""

from dataclasses import dataclass
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
