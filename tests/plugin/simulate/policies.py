"""What splitter is compared with on recorded traces (docs/replay.md)."""

from dataclasses import dataclass, replace

from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import RebalanceInput, Tuning, decide
from splitter.plugin.simulate.contenders import Contender, Rebalancing


@dataclass(slots=True)
class SpotHedge:
    """On-demand always makes up for what spot does not have ready, and leaves at once.

    Source: Mao et al., "SkyServe: Serving AI Models across Regions and Clouds with Spot Instances"
    (EuroSys 2025), its dynamic fallback without overprovisioning, in one zone.
    """

    name: str = "SpotHedge-like (no soak, no step)"

    def start(self) -> None:
        """Remember nothing anyway."""

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Ask spot for all, on-demand for the missing."""
        return observed.desired - min(observed.desired, observed.spot_ready), observed.desired, None


@dataclass(slots=True)
class UnboundedSoak(Rebalancing):
    """On-demand covers at once, and leaves replica by replica as spot has been ready for a soak.

    The soak doubles while spot flaps, as in `decide`, but spot is asked for everything all the time: for
    the length of every soak both pools are paid.
    """

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Take the soak from `decide`'s own back-off, and nothing else."""
        self.state = decide(observed, self.policy, self.state, self.tuning).state
        soak_s = self.state.soak(self.policy.soak_s)
        ages_s = [(observed.now - since).total_seconds() for since in observed.spot_ready_since]
        least = observed.desired - min(observed.desired, observed.spot_ready)
        most = observed.desired - min(observed.desired, sum(age_s >= soak_s for age_s in ages_s))
        on_demand = max(least, min(observed.on_demand_spec, most))
        requeue_after_s = min((soak_s - age_s for age_s in ages_s if age_s < soak_s), default=None)
        return on_demand, observed.desired + observed.spot_doomed, requeue_after_s


@dataclass(slots=True)
class SpotOnly:
    """No on-demand at all: what spot alone would have given."""

    name: str = "spot only"

    def start(self) -> None:
        """Remember nothing anyway."""

    def answer(self, observed: RebalanceInput) -> tuple[int, int, float | None]:
        """Ask spot for all."""
        return 0, observed.desired, None


def contenders(desired: int, policy: Policy | None = None, tuning: Tuning | None = None) -> list[Contender]:
    """Return the policies of the evidence table, the given one in the place of the function.

    Source: docs/replay.md.
    """
    policy, tuning = policy or Policy(), tuning or Tuning()
    base = max(1, desired // 4)
    return [
        SpotHedge(),
        UnboundedSoak(f"soak {policy.soak_s:g}..{tuning.soak_max_s:g} s, unbounded return", policy, tuning),
        Rebalancing("splitter", policy, tuning),
        Rebalancing(
            f"splitter, soak fixed at {policy.soak_s:g} s", policy, replace(tuning, soak_max_s=policy.soak_s)
        ),
        Rebalancing(f"splitter, on-demand-base {base}", replace(policy, on_demand_base=base), tuning),
        Rebalancing("splitter, majority on on-demand", replace(policy, on_demand_base="majority"), tuning),
        SpotOnly(),
    ]
