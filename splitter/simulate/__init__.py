"""Simulates a policy on a recorded trace of spot capacity.

`read_trace` (or `parse_trace`, `parse_counts`, `parse_outage`) gives a `Trace`; `simulate` plays it
against a `Contender`, in a small world of pods that take time to start, with the very `decide` that runs
in the cluster; `compared`, `as_json` and `svg` show the results of `splitter simulate`, `format_table` and
`draw` those of many traces and of one, in plain characters. `contenders` lists the policies worth comparing.
Nothing here talks to a cluster or reads a clock: the same trace gives the same numbers.
"""

from splitter.simulate.contenders import (
    Contender,
    Rebalancing,
    SpotHedge,
    SpotOnly,
    UnboundedSoak,
    contenders,
)
from splitter.simulate.estimate import OUTAGE, Estimate, Estimator
from splitter.simulate.measures import WorstMinute, slices, spot_share, worst_minute
from splitter.simulate.outage import outage_trace, parse_outage
from splitter.simulate.picture import svg
from splitter.simulate.replay import Assumptions, Sample, SimulationResult, simulate, simulate_all
from splitter.simulate.report import draw, format_table
from splitter.simulate.summary import as_json, compared
from splitter.simulate.trace import Change, Trace, from_counts, parse_counts, parse_trace, read_trace

__all__ = [
    "OUTAGE",
    "Assumptions",
    "Change",
    "Contender",
    "Estimate",
    "Estimator",
    "Rebalancing",
    "Sample",
    "SimulationResult",
    "SpotHedge",
    "SpotOnly",
    "Trace",
    "UnboundedSoak",
    "WorstMinute",
    "as_json",
    "compared",
    "contenders",
    "draw",
    "format_table",
    "from_counts",
    "outage_trace",
    "parse_counts",
    "parse_outage",
    "parse_trace",
    "read_trace",
    "simulate",
    "simulate_all",
    "slices",
    "spot_share",
    "svg",
    "worst_minute",
]
