"""Results of replays, made of samples."""

from splitter.plugin.simulate.replay import Assumptions, Sample, SimulationResult

GIVEN = Assumptions(desired=8, max_surge=2)


def replayed(*samples: tuple[float, int, int], until_s: float = 600.0, desired: int = 4) -> SimulationResult:
    """Make a result of samples: from when, ready on spot, ready at all."""
    return SimulationResult(
        contender="mine",
        trace="trace",
        desired=desired,
        duration_s=until_s,
        cost=1.0,
        availability=1.0,
        on_demand_changes_per_day=0.0,
        most_ready=desired,
        least_ready=0,
        seconds_short=0.0,
        samples=tuple(Sample(at_s, 4, serving - spot, spot, serving) for at_s, spot, serving in samples),
    )
