"""Losses are covered in every state in which twins hold the pods, whatever else is due or refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders import LONG_AGO_S, ago, pod, pods, rendered, replica_set, source, split, twin
from core.one_reconcile import DEFAULTS, at_rest
from splitter.core.actions import AdoptPods, Scale, is_raise
from splitter.core.handover import Step
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.model import Attachment, Note, Observation, Rendered
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import Condition

BROKEN = Note(Reason.TEMPLATE_INVALID, "line 3: no", warning=True)
FOREIGN = {"splitter.io/taken-over": ownership_mark_value("uid-another", ago(LONG_AGO_S))}
OLD = replica_set("web-old", spec=0)


def planned(observed: Observation, made: Mapping[Pool, Rendered] | Note | None = None) -> Plan:
    """Plan a reconcile, of templates that may not render."""
    in_force = policy_in_force(observed, DEFAULTS)
    return plan(observed, in_force, made or rendered(), Rules(defaults=DEFAULTS))


def of(**fields: Any) -> dict[str, object]:  # noqa: ANN401 (fields of SourceView)
    """Return a source that differs."""
    return {"source": source(**fields)}


LOSSES: Mapping[str, dict[str, object]] = {
    "announced": {"spot": twin(Pool.SPOT, pods(2, doomed=4))},
    "silent": {"spot": twin(Pool.SPOT, pods(2, lost=4))},
    "on on-demand": {"on_demand": twin(Pool.ON_DEMAND, (*pods(3), pod("going", NodeStatus.DOOMED)))},
}
STATES: Mapping[str, tuple[dict[str, object], Step]] = {
    "run": ({}, Step.RUN),
    "no mark": (of(marked=False), Step.ADOPT),
    "a foreign mark": (of(annotations=FOREIGN), Step.ADOPT),
    "no Split": ({"split": None}, Step.CREATE_SPLIT),
    "a take-over that is undone": ({"split": split(takes_over=False)}, Step.OFFBOARD),
    "the Split of an earlier source": ({"split": split(owner_uids=("uid-old",))}, Step.CLAIM),
    "what an earlier source left": ({"replica_sets": (replace(OLD, orphaned=True),)}, Step.CLAIM),
    "a slow controller": (of(observed=False), Step.RUN),
    "a pod that is taken out": ({"orphans": (pod("out", born=Pool.SPOT),)}, Step.RUN),
    "a rollout": (of(template_hash="v2"), Step.RUN),
    "another N": (of(replicas=12), Step.RUN),
    "a strategy that is refused": (of(recreate=True), Step.RUN),
}


@pytest.mark.parametrize("made", [None, BROKEN], ids=["rendered", "not rendered"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_in_every_state(loss: str, state: str, made: Note | None) -> None:
    """On-demand is raised in this very reconcile, before anything that may be refused."""
    fields, step = STATES[state]
    observed = at_rest(**{**LOSSES[loss], **fields})
    result = planned(observed, made)
    assert result.step is step
    raises = [one for one in result.raises if one.name == "web-on-demand"]
    assert raises
    others = [at for at, one in enumerate(result.actions) if not (isinstance(one, Scale) and is_raise(one))]
    assert result.actions.index(raises[0]) <= min(others, default=99)


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [("freeze", "true", Reason.FROZEN), ("dry-run", "true", Reason.DRY_RUN)],
)
@pytest.mark.parametrize("state", ["run", "no mark", "the Split of an earlier source", "a slow controller"])
def test_what_the_user_holds(state: str, annotation: str, value: str, says: Reason) -> None:
    """Frozen, or in a dry run, nothing is raised."""
    fields, _ = STATES[state]
    there = at_rest(**{**LOSSES["announced"], **fields})
    assert there.source is not None
    asked = {**there.source.annotations, f"splitter.io/{annotation}": value}
    result = planned(replace(there, source=replace(there.source, annotations=asked)))
    assert not result.raises
    assert says in {result.verdict.reason, Reason.FROZEN if state != "run" else says}


def test_pods_that_have_no_owner_yet() -> None:
    """Their twins wait for them: a Split that is written anew raises nothing beside them (life all 436)."""
    waits = [replace(twin(pool), paused=True, spec_replicas=3) for pool in Pool]
    orphans = tuple(pod(f"pod-{number}", born=list(Pool)[number % 2]) for number in range(6))
    seen = at_rest(
        source=source(6), split=None, on_demand=waits[0], spot=waits[1], orphans=orphans, replica_sets=()
    )
    result = planned(seen)
    assert result.step is Step.CREATE_SPLIT
    assert not result.raises
    assert not any(isinstance(one, AdoptPods) for one in result.actions)


class TestAWait:
    """For a controller that acts within seconds, or never."""

    @pytest.mark.parametrize(
        ("fields", "who"),
        [
            (of(observed=False), "the Deployment controller to catch up"),
            (
                {"replica_sets": (replace(OLD, attachment=Attachment.RETURNING),)},
                "the Deployment controller to adopt web-old",
            ),
            ({"leaving": True}, "the garbage collector to let the pods of a deleted ReplicaSet go"),
        ],
    )
    def test_names_who_acts(self, fields: dict[str, object], who: str) -> None:
        """And on what."""
        assert planned(at_rest(**fields)).verdict.message == f"waiting for {who}"

    @pytest.mark.parametrize(
        ("reason", "status", "since_s", "overdue"),
        [
            ("WaitingForController", "True", 61, True),
            ("WaitingForController", "True", 59, False),
            ("WaitingForController", "False", 61, False),
            ("Scaled", "True", 61, False),
        ],
    )
    def test_that_is_overdue(self, reason: str, status: str, since_s: float, overdue: bool) -> None:
        """It says since when, and what to look at."""
        moving = Condition("Progressing", status, reason, "", ago(since_s))
        result = planned(at_rest(split=split(reason=reason, conditions=(moving,)), leaving=True))
        assert result.verdict.warning is overdue
        assert ("look at kube-controller-manager" in result.verdict.message) is overdue
        assert (result.verdict in result.notes) is overdue
