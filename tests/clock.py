"""A clock for what is told by seconds."""

from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """Seconds that pass when a test says so."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        """Return what it shows."""
        return self.now_s
