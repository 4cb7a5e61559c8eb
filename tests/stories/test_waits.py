"""A plan that writes nothing stays what it is until it is looked at again: no rule waits without a timer.

Each plan of these stories is made again at later moments before its next look, with nothing else changed. A
rule that reads a clock without `Waits` would answer differently, and no event would tell.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import splitter.reconciler
import splitter.reconciler.rehearsals
from builders import NOW, ago
from splitter.core.clock import Waits
from splitter.core.plan import Plan
from splitter.core.planner import plan, policy_in_force
from stories.chance import Life
from stories.members_lives import Life as MembersLife
from stories.placement_lives import Life as PlacementLife

RESYNC_S = 600.0
SLACK_S = 1.5
"""A timer may be due a second after the change: what it waits for has whole seconds."""
PARTS = (0.3, 0.7, 1.0)


def what(planned: Plan) -> tuple[object, ...]:
    """Return what is done and said, without the words that tell how much time has passed."""
    return planned.step, planned.state, planned.verdict.reason, [type(one) for one in planned.actions]


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Check each plan of a story; the list has those that time alone changes before the next look."""
    changed: list[str] = []

    def checked(observed: Any, in_force: Any, rendered: Any, rules: Any) -> Plan:  # noqa: ANN401 - passed on
        planned = plan(observed, in_force, rendered, rules)
        until_s = min(planned.requeue_after_s or RESYNC_S, RESYNC_S)
        if planned.actions or until_s <= 2 * SLACK_S:
            return planned
        for part in PARTS:
            later = replace(observed, now=observed.now + timedelta(seconds=part * until_s - SLACK_S))
            then = plan(later, policy_in_force(later, rules.defaults), rendered, rules)
            if what(then) != what(planned):
                changed.append(f"{planned.verdict.message} -> {then.verdict.message} before {until_s:.0f} s")
                break
        return planned

    monkeypatch.setattr(splitter.reconciler, "plan", checked)
    monkeypatch.setattr(splitter.reconciler.rehearsals, "plan", checked)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "play",
    [
        lambda seed: Life(seed).live(),
        lambda seed: MembersLife(seed).run(),
        lambda seed: PlacementLife(seed).run(),
    ],
    ids=["deployment", "members", "placement"],
)
def test_no_plan_changes_by_time_alone(play: Callable[[int], object], seed: int, changes: list[str]) -> None:
    """In lives of each kind, with whatever happens in them."""
    play(seed)
    assert not changes


@pytest.mark.parametrize(("age_s", "past", "due_s"), [(10, False, 20.0), (30, True, None), (90, True, None)])
def test_an_answer_has_its_timer(age_s: float, due_s: float | None, *, past: bool) -> None:
    """What has lasted long enough changes no more."""
    waits = Waits(NOW)
    assert waits.past(ago(age_s), 30.0) is past
    assert waits.next_due_s == due_s


def test_the_soonest_timer_counts() -> None:
    """Whatever asks last; what never began, and what is over, waits for nothing."""
    waits = Waits(NOW)
    assert waits.until_s(ago(-5)) == 5.0
    assert waits.left_s(ago(10), 30.0) == 20.0
    assert not waits.past(None, 1.0)
    assert waits.until_s(ago(5)) == 0.0
    waits.look_in(None)
    assert waits.next_due_s == 5.0
