"""Simulates a policy on a recorded trace of spot capacity.

`read_trace` (or `parse_trace`, `parse_counts`, `parse_outage`) gives a `Trace`; `simulate` plays it
against a `Contender`, in a small world of pods that take time to start, with the very `decide` that runs
in the cluster; `compared`, `as_json` and `svg` show the results.
Nothing here talks to a cluster or reads a clock: the same trace gives the same numbers.
"""
