"""No step bypasses a gate: each step is replaced by a careless one, and what is left of its plan is read."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import observation, pods, replica_set, source, twin
from core.one_reconcile import planned
from splitter.core import planner
from splitter.core.actions import Action, HolderKind, Scale, is_lowering, is_raise
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import MAX_WRITES
from splitter.core.model import Attachment, Note, Observation, SourceView
from splitter.core.plan import Plan, PlanInput
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool

ALL_DOWN = (
    Scale(HolderKind.REPLICA_SET, "web-old", 3, 0, "rv"),
    Scale(HolderKind.DEPLOYMENT, "web-on-demand", 4, 0, "rv"),
    Scale(HolderKind.DEPLOYMENT, "web-spot", 3, 0, "rv"),
)
RAISE = Scale(HolderKind.DEPLOYMENT, "web-on-demand", 4, 9, None)


@pytest.fixture(params=Step, ids=str)
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Step:
    """Return each step, which is due whatever is observed."""
    due: Step = request.param

    def always(_observed: Observation, _source: SourceView, _policy: Policy) -> Step:
        return due

    monkeypatch.setattr(planner, "_step_of", always)
    return due


@pytest.fixture
def careless(step: Step, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the step ask for writes, whatever they cost."""

    def acts(*actions: Action) -> None:
        def act(_this: PlanInput) -> Plan:
            note = Note(Reason.SCALED, "careless")
            return Plan(step, State.MOVING, note, actions, (note,))

        monkeypatch.setitem(planner._STEPS, step, act)  # noqa: SLF001

    return acts


def ten() -> Observation:
    """Return a workload of ten replicas in three holders, all of which are needed."""
    return observation(
        sets=[replica_set("web-old", of=pods(3), attachment=Attachment.PARKED)],
        on_demand=twin(Pool.ON_DEMAND, pods(4)),
        spot=twin(Pool.SPOT, pods(3)),
    )


def test_no_step_lowers_below_the_floor(careless: Callable[..., None]) -> None:
    """Ten replicas are wanted and serve: no step whatsoever may take one."""
    careless(*ALL_DOWN)
    result = planned(ten())
    assert not [one for one in result.actions if is_lowering(one)]
    assert "careless" not in result.verdict.message


def test_no_step_has_its_raises_held(careless: Callable[..., None]) -> None:
    """What could cost replicas is dropped, and the raise beside it goes out."""
    careless(*ALL_DOWN, RAISE)
    result = planned(ten())
    assert RAISE in result.actions
    assert not any(map(is_lowering, result.actions))


def test_no_step_writes_more_than_one_reconcile_may(careless: Callable[..., None]) -> None:
    """The rest is planned again, at once."""
    careless(*(replace(RAISE, name=f"web-{number}") for number in range(MAX_WRITES + 9)))
    assert len([one for one in planned(ten()).actions if is_raise(one)]) <= MAX_WRITES


def test_a_dry_run_writes_nothing(step: Step, careless: Callable[..., None]) -> None:
    """Pods without an owner are the only ones that do not wait for its end."""
    careless(RAISE)
    tried = replace(ten(), source=source(annotations={"splitter.io/dry-run": "true"}))
    raised = [one for one in planned(tried).actions if is_raise(one)]
    assert bool(raised) is (step in {Step.NOTHING, Step.CUT_OFF, Step.SETTLE})
