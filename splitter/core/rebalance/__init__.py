"""How replicas move between the pools: to on-demand at once, back to spot carefully.

The planner calls `decide` once a reconcile, after everything parked is at 0, with what `kube.observe`
counted (`RebalanceInput`) and what the Split remembered (`RebalanceState`); it gets the two counts to
write, the state to persist, the sentences for people and the time of the next look (`Decision`).
Nothing here reads a clock or a cluster, and nothing here knows about templates or rollouts. `placement` has
no counts to write and asks `losses` and `rests_until` only: what was lost, how long spot has to stand until
it is trusted, and when it is asked for again.

`model` holds the words, `steps` the four steps (losses, credits, on-demand, spot), `outage` whether spot
still cannot be had, `barren` until when spot rests that earns nothing, `cause` why they are so, `sentences`
what people read, `decide` puts them in order.
Source: R20 to R49.
"""

from splitter.core.rebalance.barren import rests_until
from splitter.core.rebalance.cause import Cause
from splitter.core.rebalance.decide import Decision, decide
from splitter.core.rebalance.model import RebalanceInput, Tuning
from splitter.core.rebalance.steps import losses

__all__ = ["Cause", "Decision", "RebalanceInput", "Tuning", "decide", "losses", "rests_until"]
