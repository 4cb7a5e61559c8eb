"""Splits a StatefulSet by where its own pods start, and moves them one at a time.

The admission policy gives each new pod its node affinity by its ordinal, as `Split.spec.onDemandOrdinals`
says; here is decided which ordinals these are (`ordinals`) and which pod, if any, is moved next (`mover`).
Whether a pod may be ended at all is decided in one place (`disruption`). `place` puts them together, once a
reconcile; the planner turns its answer into writes. Nothing here makes a replica before another one ends: an
identity is unique, so a move is a pod's restart, and every rule is there to keep more than half of the
members ready meanwhile. Soak, back-off and the memory of losses are `rebalance`'s. Source: P1 to
P26.
"""
