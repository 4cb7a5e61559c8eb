"""The status of a Split as it is kept: read once, written once, by whatever version and whoever edited it."""

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from splitter.core.hot_nodes import Aim
from splitter.core.split_status import (
    DECISIONS_MAX,
    NODES_MAX,
    TEXT_MAX,
    UNREPORTED,
    Condition,
    GoingNode,
    Memory,
    PastDecision,
    PoolCounts,
    PoolStarts,
    RebalanceState,
    ReliefMove,
    ReliefStatus,
    Restart,
    SplitStatus,
    StartTimes,
)
from splitter.core.split_status.backoff import Backoff
from splitter.core.split_status.moving import FollowedCount
from splitter.core.split_status.usage import begun

ROOT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
FULL = SplitStatus(
    observed_generation=3,
    source_generation=2**40,
    state="Moving",
    reason="SpotInterrupted",
    message="scale on-demand 4 -> 7 (+3): why",
    desired=10,
    ready=7,
    cover=3,
    on_demand=PoolCounts(4, 7, 4, 0, 3),
    spot=PoolCounts(6, 6, 3, 3, 0),
    policy={"onDemandBase": "majority", "spotPercent": 80, "freeze": False},
    policy_from={"onDemandBase": "Source", "spotPercent": "Default", "freeze": "Namespace"},
    conditions=(Condition("Ready", "False", "SpotInterrupted", "7 of 10", NOON, 3),),
    decisions=(PastDecision(NOON, "SpotInterrupted", "scale on-demand 4 -> 7 (+3): why"),),
    usage=begun(NOON),
    relief=ReliefStatus(
        "NodesMeasured",
        "its replicas stand on hot nodes (node-1)",
        ("node-1",),
        (
            ReliefMove(
                at=NOON,
                pool="spot",
                pod="web-spot-1",
                pod_uid="uid-1",
                node="node-1",
                node_uid="uid-node-1",
                replicas=8,
                newer_than=NOON,
                raised=True,
                ended=NOON,
                to_node_uid="uid-node-2",
                taken_back=True,
                aim=Aim.SPOT,
            ),
        ),
    ),
    guard="web: 7 pods",
    nodes=(GoingNode("a", "Doomed", 3, "taint x", NOON), GoingNode("b", "Lost", 1, "condition Ready=False")),
    memory=Memory(
        RebalanceState(
            soak_s=1200.0,
            last_loss=NOON + timedelta(microseconds=1),
            lost=True,
            charged=("uid",),
            barren=2,
            barren_since=NOON,
            failed_placeholders=Backoff(3, NOON),
            restarts=(Restart(0, NOON, planned=True),),
            yielded=(0, 2),
        ),
        FollowedCount(12, 10, "2", NOON),
        StartTimes(NOON, 120, PoolStarts((30, 40), (0, 90)), PoolStarts((31,), ())),
        {"splitter.io/soak": "5m"},
    ),
    replicas=0,
    selector="app=" + "x" * 2 * TEXT_MAX,
    write_conflicts=(NOON, NOON + timedelta(seconds=9)),
    conflicting_writer="argocd",
    conflict=True,
)


class TestKept:
    """What is written is what is read."""

    @pytest.mark.parametrize("status", [FULL, UNREPORTED, SplitStatus(state="Steady")])
    def test_nothing_is_lost(self, status: SplitStatus) -> None:
        """Through JSON and back it is the same, all of it."""
        assert SplitStatus.from_json(json.loads(json.dumps(status.to_json()))) == status

    def test_every_field_is_tried(self) -> None:
        """The example has no field that is nothing: a new one belongs into it."""
        for full, nothing in ((FULL, UNREPORTED), (FULL.memory, Memory())):
            assert [
                one.name for one in fields(full) if getattr(full, one.name) == getattr(nothing, one.name)
            ] == []

    def test_every_field_is_in_the_schema(self) -> None:
        """The API server would drop what the CRD does not know."""
        [crd, _] = yaml.safe_load_all((ROOT / "manifests/crd.yaml").read_text(encoding="utf-8"))
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        assert set(FULL.to_json()) == set(schema)

    def test_before_the_first_report(self) -> None:
        """Only what is remembered is written: the schema refuses an empty state."""
        lost = SplitStatus(memory=Memory(RebalanceState(lost=True)))
        assert lost.to_json() == {"memory": {"rebalance": {"lost": True}}}


class TestHostile:
    """Whoever may edit a Split may have written anything, and a later version more than is known here."""

    @pytest.mark.parametrize(
        "odd", [None, "", "x", 0, -1, 10**30, 1.5, True, [], [[]], {}, {"a": {}}, [None, 3]]
    )
    def test_every_field_may_be_anything(self, odd: object) -> None:
        """Nothing raises, and what comes of it can be written and read again."""
        read = SplitStatus.from_json({**dict.fromkeys(FULL.to_json(), odd), "state": "Held"})
        assert read.state == "Held"
        assert SplitStatus.from_json(read.to_json()) == read
        assert SplitStatus.from_json(odd).state == ""
        memory = SplitStatus.from_json({"memory": dict.fromkeys(FULL.memory.to_json(), odd)})
        assert SplitStatus.from_json(memory.to_json()) == memory

    def test_what_is_not_known_is_left_out(self) -> None:
        """Here and within."""
        memory = {"starts": {"p90": 7}, "rebalance": {"lost": True, "later": [1]}, "later": 3}
        assert SplitStatus.from_json({"state": "Steady", "memory": memory, "later": {}}) == SplitStatus(
            state="Steady", memory=Memory(RebalanceState(lost=True))
        )

    def test_is_bounded(self) -> None:
        """Lists, texts and counts."""
        many = {
            "decisions": [{"time": "2026-01-05T12:00:00Z", "message": "x" * 5000}] * 99,
            "nodes": [{"name": f"n{number}"} for number in range(99)],
            "conditions": [{"type": f"t{number}"} for number in range(99)],
            "writeConflicts": ["2026-01-05T12:00:00Z"] * 99,
            "policy": {f"f{number}": 1 for number in range(99)},
            "desired": 10**30,
        }
        read = SplitStatus.from_json(many)
        assert (len(read.decisions), len(read.nodes)) == (DECISIONS_MAX, NODES_MAX)
        assert (len(read.conditions), len(read.write_conflicts), len(read.policy)) == (20, 10, 40)
        assert (len(read.decisions[0].message), read.desired) == (TEXT_MAX, 2**31 - 1)

    @pytest.mark.parametrize(
        "time",
        [
            "0001-01-01T00:00:00+14:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59-14:00",
            "9999-12-31T23:59:59Z",
            "2026-01-05T12:00:00",
        ],
    )
    def test_times_that_are_none(self, time: str) -> None:
        """Outside of the calendar, so near its ends that no hour can be added, or without a time zone."""
        status = {"writeConflicts": [time], "memory": {"rebalance": {"lastLoss": time}}}
        assert SplitStatus.from_json(status) == UNREPORTED
