"""Why the counts of a decision are what they are: the first cause that applies, on-demand's before spot's."""

from dataclasses import replace
from typing import Any

import pytest

from core.rebalance.moments import NOW, ago, settled
from splitter.core.labels_annotations.policy import Policy
from splitter.core.rebalance import decide
from splitter.core.rebalance.cause import Cause
from splitter.core.split_status import RebalanceState

POLICY = Policy(on_demand_base=4)
READY = (ago(9_000),)
LOST: dict[str, Any] = {"lost": True, "last_loss": ago(60), "window": 3}


@pytest.mark.parametrize(
    ("fields", "state", "cause"),
    [
        ({}, {}, Cause.HELD),
        ({"desired": 12}, {}, Cause.DIVIDED),
        ({"desired": 0}, {}, Cause.DIVIDED),
        ({"on_demand_ready": 3, "on_demand_doomed": 1}, {}, Cause.ON_DEMAND_DOOMED),
        ({"spot_ready_since": READY * 3, "spot_doomed": 3}, LOST, Cause.SPOT_DOOMED),
        ({"spot_ready_since": READY * 3}, {**LOST, "interrupted": True}, Cause.AFTER_NOTICE),
        ({"spot_ready_since": READY * 3}, LOST, Cause.AFTER_LOSS),
        (
            {"spot_ready_since": READY * 4, "blocked": "no capacity", "spot_pending_since": ago(5)},
            {"short_since": ago(5)},
            Cause.SPOT_BLOCKED,
        ),
        (
            {"spot_ready_since": READY * 4, "spot_pending_since": ago(600)},
            {"short_since": ago(600)},
            Cause.SPOT_UNPLACED,
        ),
        (
            {"on_demand_spec": 7, "on_demand_ready": 7, "spot_ready_since": READY * 6},
            {"last_loss": ago(9_000)},
            Cause.RETURNING,
        ),
        ({"on_demand_spec": 9, "on_demand_ready": 9}, {"last_loss": ago(9_000)}, Cause.RETURNING),
        # More than N + S are asked for: that is no cover which spot has earned.
        ({"on_demand_spec": 10, "on_demand_ready": 10}, {"last_loss": ago(9_000)}, Cause.DIVIDED),
        (
            {"on_demand_spec": 10, "on_demand_ready": 10, "spot_ready_since": (), "spot_spec": 0},
            LOST,
            Cause.ASKED_FOR,
        ),
        (
            {
                "on_demand_spec": 10,
                "on_demand_ready": 10,
                "spot_ready_since": (),
                "spot_doomed": 6,
                "spot_stop_after_s": 0.0,
            },
            {"lost": True, "cover_since": NOW, "doomed_since": ago(5), "last_loss": ago(5)},
            Cause.RELEASED,
        ),
        ({"spot_ready_since": READY * 5, "spot_doomed": 1}, {}, Cause.REPLACED),
    ],
)
def test_is_found(fields: dict[str, Any], state: dict[str, Any], cause: Cause) -> None:
    """Of 4 + 6 replicas, where this is so."""
    observed = replace(settled(10, POLICY), **fields)
    assert decide(observed, POLICY, RebalanceState(**state)).cause is cause


def test_a_freeze_is_the_cause_of_everything() -> None:
    """Whatever would be done."""
    observed = replace(settled(10, POLICY), desired=20)
    assert decide(observed, replace(POLICY, freeze=True), RebalanceState()).cause is Cause.FROZEN
