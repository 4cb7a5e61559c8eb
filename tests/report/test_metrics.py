"""Metrics: what a reconcile leaves there, and that the reference tells the truth about all of them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from builders import observation, pods, replica_set, split, twin
from report.shown import series, served, value
from splitter.core.evictions import BudgetView
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.report import metrics
from splitter.report.status import build

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference/metrics.md"
IN_FORCE = PolicyInForce(Policy(), (), {}, valid=True)
UNITS = {"seconds", "replicas", "ratio"}


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Find no series of others, whatever ran before in this process, and leave none behind."""
    metrics.workloads.clear()
    yield
    metrics.workloads.clear()


def shown(observed: Observation, **wanted: int) -> dict[str, float | None]:
    """Show one reconcile, and return some of what a scrape reads then."""
    plan = Plan(Step.RUN, State.STEADY, Note(Reason.BALANCED, "all is well"), **wanted)  # type: ignore[arg-type]
    status = build(observed, plan, IN_FORCE, written=True)
    metrics.show(observed, status)
    collected = list(metrics.workloads.collect())
    return {
        "share": value(collected, "splitter_spot_share_ratio"),
        "wanted": value(collected, "splitter_spot_share_wanted_ratio"),
        "ready": value(collected, "splitter_ready_replicas"),
        "doomed": value(collected, "splitter_replicas", pool="spot", count="doomed"),
        "desired": value(collected, "splitter_desired_replicas"),
    }


class TestReconcile:
    def test_counts_by_the_node(self) -> None:
        """The share on spot is counted by the nodes: a pod of the spot twin may stand on on-demand."""
        values = shown(observation(spot=twin(Pool.SPOT, pods(3, doomed=2))), wanted_spot=7)
        assert values == {"share": 0, "wanted": 0.7, "ready": 3, "doomed": 2, "desired": 10}

    def test_parked_pods_count(self) -> None:
        """In the middle of a hand-over the source's own pods are on spot too."""
        moved = [replace(pod, on_spot=True) for pod in pods(2)]
        assert shown(observation(sets=[replica_set(of=moved)]))["share"] == 0.2

    def test_the_guard(self) -> None:
        """How many pods it keeps; a user's budget is not splitter's, and shows nothing."""

        def guarded(*, is_ours: bool) -> float | None:
            shown(observation(budgets=(BudgetView("web-guard", "uid", is_ours, 9, ()),)))
            return value(metrics.workloads.collect(), "splitter_guarded_replicas")

        assert (guarded(is_ours=True), guarded(is_ours=False)) == (9, None)

    def test_a_refusal_has_no_counts(self) -> None:
        """A Split that only reports shows nothing of a workload that is not split."""
        assert shown(observation(split=split(takes_over=False)))["desired"] is None

    def test_standby_shows_nothing(self) -> None:
        """A process that may not write shows no workloads, and says that it does not lead."""
        shown(observation())
        metrics.leads(now=False)
        assert value(metrics.workloads.collect(), "splitter_desired_replicas") is None
        assert value(REGISTRY.collect(), "splitter_leader") == 0
        metrics.leads(now=True)
        assert value(REGISTRY.collect(), "splitter_leader") == 1


class TestReaction:
    def test_answers_to_nodes_that_go(self) -> None:
        """Only those are counted: nothing else is in a hurry."""

        def count() -> dict[Any, float]:
            return series(REGISTRY.collect(), "splitter_reaction_seconds_count")

        before = count()
        metrics.reacted(Reason.SPOT_INTERRUPTED, 0.2)
        metrics.reacted(Reason.RETURNING, 900)
        after = count()
        assert sum(after.values()) == sum(before.values()) + 1
        assert {dict(key)["reason"] for key in after} == {"SpotInterrupted", "SpotLost", "OnDemandDoomed"}


class TestReference:
    """docs/reference/metrics.md is complete, and nothing in it is made up."""

    @staticmethod
    def rows() -> dict[str, tuple[str, frozenset[str], str, str]]:
        """Read the tables: name -> type, labels, unit, meaning."""
        text = REFERENCE.read_text(encoding="utf-8")
        result = re.findall(
            r"^\| `(splitter_\w+)` \| (\w+) \|([^|]*)\|([^|]*)\|([^|]+)\|$", text, flags=re.MULTILINE
        )
        return {
            name: (kind, frozenset(re.findall(r"`(\w+)`", labels)), unit.strip(), meaning.strip())
            for name, kind, labels, unit, meaning in result
        }

    def test_names_each(self) -> None:
        """Every metric has one row with its type and its labels, and no row is about anything else."""
        reported = {name: row[:2] for name, row in self.rows().items()}
        assert reported == served()

    def test_says_more_than_the_name(self) -> None:
        """Every row has a meaning; a unit is the one in the name."""
        for name, (_, _, unit, meaning) in self.rows().items():
            assert len(meaning) > 10, name
            in_name = next((one for one in UNITS if one in name.removesuffix("_total").split("_")), "")
            assert unit.split(" ")[0] == in_name or not in_name, f"{name} is in {unit}"

    def test_workloads_are_named_alike(self) -> None:
        """Whatever is about a workload has the same three labels."""
        for name, (_, labels) in served().items():
            if "namespace" in labels:
                assert labels >= {"namespace", "kind", "name"}, name
