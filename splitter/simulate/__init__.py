"""Trace replay: how a policy would have done on spot capacity that really came and went.

`read_trace` (or `parse_trace`, `from_counts`) gives a `Trace`; `simulate` plays it against a
`Contender`, in a small world of pods that take time to start, with the very `decide` that runs in the
cluster; `format_table` and `draw` show the results to people. `contenders` lists the policies worth
comparing. Nothing here talks to a cluster or reads a clock: the same trace gives the same numbers.
"""

from splitter.simulate.contenders import (
    Contender,
    Rebalancing,
    SpotHedge,
    SpotOnly,
    UnboundedSoak,
    contenders,
)
from splitter.simulate.replay import Assumptions, Sample, SimulationResult, simulate, simulate_all
from splitter.simulate.report import draw, format_table
from splitter.simulate.trace import Change, Trace, from_counts, parse_trace, read_trace

__all__ = [
    "Assumptions",
    "Change",
    "Contender",
    "Rebalancing",
    "Sample",
    "SimulationResult",
    "SpotHedge",
    "SpotOnly",
    "Trace",
    "UnboundedSoak",
    "contenders",
    "draw",
    "format_table",
    "from_counts",
    "parse_trace",
    "read_trace",
    "simulate",
    "simulate_all",
]
