"""Which replicas leave a hot node, come to spot or are spread, and the steps of one such move.

`relieve` looks at the real use of all nodes, and names the few replicas that are to stand elsewhere.
`next_step` then carries one of them over: the twin is raised by one, and lowered when the new replica is
ready elsewhere. Where that one stands is the scheduler's choice; one that lands on a hot node is taken back.

`reconciler.relief` asks `relieve`, `core.twins.relief` asks `next_step` (docs/adr/0059, docs/adr/0063).
`model` holds the words, `thresholds` reads them, `samples` judges what was measured, `look` counts what is
there, `decide` chooses on hot nodes, `to_spot` on on-demand and `spread` in crowds, `move` does one move.
Pure: times are arguments.
"""
