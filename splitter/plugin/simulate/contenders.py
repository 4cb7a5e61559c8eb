"""What a replay plays: splitter's own function under a policy, or whatever else divides replicas.

A contender is asked what `decide` is asked, with the same counts, and answers with the two counts and
the seconds until it wants to be asked again. It keeps its own memory; `start` forgets it.
"""

from dataclasses import dataclass, field
from typing import Protocol

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import RebalanceInput, Tuning, decide
from splitter.core.split_status import RebalanceState


class Contender(Protocol):
    """Anything that divides replicas between the pools."""

    @property
    def name(self) -> str:
        """Return what the table calls it."""

    def start(self) -> None:
        """Forget everything."""

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Return the on-demand count, the spot count, and seconds until time alone changes them."""


@dataclass(slots=True)
class Rebalancing:
    """splitter's decision function, under a policy."""

    name: str
    policy: Policy = field(default_factory=Policy)
    tuning: Tuning = field(default_factory=Tuning)
    state: RebalanceState = field(default_factory=RebalanceState)

    def start(self) -> None:
        """Forget everything."""
        self.state = RebalanceState()

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Ask `decide`, and remember its state as the Split would."""
        decision = decide(observed, self.policy, self.state, self.tuning)
        self.state = decision.state
        return decision.on_demand, decision.spot, decision.requeue_after_s
