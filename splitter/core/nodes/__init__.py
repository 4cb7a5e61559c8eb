"""Assesses nodes: spot or on-demand, about to go or not, and how much fits.

`kube.observe` parses a Node into `NodeFacts` and keeps the `NodeState` that `assess` returns; the
planner counts pods by it. The same preset table that classifies nodes (`capacity`) also yields the
node affinity and the tolerations of the twins, so that what we ask for and what we recognise cannot
drift apart. `signals` reads the notices, `fit` counts free room, `spot_supply` says whether more could be
had. Nothing here decides about replicas.
Source: R1 to R11.
"""
