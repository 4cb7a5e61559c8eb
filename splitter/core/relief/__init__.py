"""Moves a replica off its node, one step at a time, and the words of that: thresholds, amounts, bounds.

`next_step` carries one move over: the twin is raised by one, and lowered when the new replica is ready
elsewhere. Where that one stands is the scheduler's choice; one that lands on a hot node is taken back. Which
replica leaves is decided over the whole cluster, in `splitter.relief` (docs/adr/0059, docs/adr/0063).

`model` holds the words, `thresholds` reads them, `move` does one move; `core.twins.relief` asks.
Pure: times are arguments.
"""
