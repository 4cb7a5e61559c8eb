"""Conditions of a Split: each says whether it holds, why, and since when."""

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, ago, observation, source, split, twin
from splitter.core.conditions import conditions, objection_to
from splitter.core.handover import Step
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, PolicyInForce
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import Pool
from splitter.core.split_status import Condition

BALANCED = Note(Reason.BALANCED, "all is where it should be")
PROBLEM = Note(Reason.INVALID_ANNOTATION, 'splitter.io/soak is "soon"', warning=True)
IN_FORCE = PolicyInForce(Policy(), (), {}, valid=True)
INVALID = PolicyInForce(Policy(), (PROBLEM,), {}, valid=False)
CRASH = Note(Reason.CRASH_LOOPING, "One crashes.", warning=True, about="web-on-demand: crash")
IMAGE = Note(Reason.IMAGE_PULL_FAILED, "Two cannot pull.", warning=True, about="web-spot: image")


def steady(**fields: Any) -> Plan:  # noqa: ANN401 (fields of a plan)
    """Return the plan of a quiet reconcile."""
    return replace(Plan(Step.RUN, State.STEADY, BALANCED, updated=4), **fields)


def made_of(
    plan: Plan | None = None,
    observed: Observation | None = None,
    in_force: PolicyInForce = IN_FORCE,
    *,
    ready: int = 4,
    spot_ready: int = 2,
    conflict: bool = False,
) -> dict[str, Condition]:
    """Return the conditions of a workload of 4, by type."""
    seen = observed or observation(source(4), spot=twin(Pool.SPOT))
    made = conditions(
        seen, plan or steady(wanted_spot=2), in_force, ready=ready, spot_ready=spot_ready, conflict=conflict
    )
    return {one.type: one for one in made}


def said(condition: Condition) -> tuple[str, str, str]:
    """Return what a condition says."""
    return condition.status, condition.reason, condition.message


class TestWhatHolds:
    def test_all_well(self) -> None:
        """What is in order has no cause; whose generation it is about is said."""
        result = made_of()
        assert {name: one.status for name, one in result.items()} == {
            "Eligible": "True",
            "PolicyValid": "True",
            "Ready": "True",
            "Updated": "True",
            "Reconciling": "False",
            "Stalled": "False",
            "PodsHealthy": "True",
            "Progressing": "False",
            "PoolsFit": "True",
            "SpotAvailable": "True",
            "Conflict": "False",
        }
        reasons = {name: one.reason for name, one in result.items() if one.reason != "AsExpected"}
        assert reasons == {"Progressing": "Balanced"}
        assert {one.observed_generation for one in result.values()} == {3}

    def test_troubles(self) -> None:
        """Of replicas have a condition of their own, and are the reason of what they lack."""
        result = made_of(steady(troubles=(CRASH, IMAGE), wanted_spot=2), ready=2, spot_ready=0)
        assert said(result["PodsHealthy"]) == ("False", "CrashLooping", "One crashes. Two cannot pull.")
        assert said(result["Ready"]) == ("False", "CrashLooping", "2 of 4 replicas are available")
        assert said(result["SpotAvailable"]) == (
            *("False", "ImagePullFailed"),
            "0 of 2 wanted spot replicas are available",
        )

    def test_a_pool_that_takes_no_replica(self) -> None:
        """Is false where it is certain, and unknown where other nodes may come."""
        certain = Note(Reason.COVER_IMPOSSIBLE, "Not by its template.", warning=True)
        by_nodes = Note(Reason.SPOT_IMPOSSIBLE, "Not now.", cause=VerdictCause.BY_NODES)
        both = made_of(steady(barred=(certain, by_nodes)))["PoolsFit"]
        assert said(both) == ("False", "CoverImpossible", "Not by its template. Not now.")
        assert said(made_of(steady(barred=(by_nodes,)))["PoolsFit"]) == (
            "Unknown",
            "SpotImpossible",
            "Not now.",
        )

    def test_troubles_of_the_other_twin(self) -> None:
        """They are no reason why spot is short; nor of a twin whose name only begins like it."""
        other = replace(IMAGE, about="web-spot-2: image")
        result = made_of(steady(troubles=(CRASH, other), wanted_spot=2), spot_ready=1)
        assert result["SpotAvailable"].reason == "Balanced"
        apart = made_of(steady(troubles=(IMAGE,), wanted_spot=2), observation(source(4)), spot_ready=1)
        assert apart["SpotAvailable"].reason == "Balanced"

    def test_a_policy_that_cannot_be_read(self) -> None:
        """It is said where the last good one is kept, and no refusal."""
        result = made_of(in_force=INVALID)
        assert said(result["PolicyValid"]) == ("False", "InvalidAnnotation", PROBLEM.message)
        assert result["Eligible"].status == "True"

    def test_refused_or_objected_to(self) -> None:
        """A refusal is the verdict; an objection to what is split is said beside another verdict."""
        refused = Plan(Step.CONSIDER, State.REFUSED, PROBLEM)
        objection = Note(Reason.STRATEGY_RECREATE, "Recreate")
        assert said(made_of(refused)["Eligible"]) == ("False", "InvalidAnnotation", PROBLEM.message)
        assert said(made_of(steady(objection=objection))["Eligible"])[:2] == ("False", "StrategyRecreate")
        assert objection_to(replace(refused, objection=objection)) is PROBLEM
        assert objection_to(steady()) is None

    def test_a_roll_that_goes_on(self) -> None:
        """How many have the template of which generation, and why not all: kstatus calls it in progress."""
        rolling = Note(Reason.ROLLING, "web-spot gets its new template")
        result = made_of(steady(state=State.ROLLING, verdict=rolling, updated=1, wanted_spot=2))
        expected = "1 of 4 replicas have the template of generation 7 and are available"
        assert said(result["Updated"]) == ("False", "Rolling", expected)
        assert said(result["Reconciling"]) == ("True", "Rolling", expected)
        assert said(result["Stalled"]) == ("False", "AsExpected", "")

    def test_a_roll_that_is_over(self) -> None:
        """The generation is said then, too; that on-demand still covers for spot does not matter."""
        covering = steady(state=State.HELD, verdict=Note(Reason.SPOT_LOST, "3 are lost"), wanted_spot=2)
        result = made_of(covering, spot_ready=0)
        expected = "4 of 4 replicas have the template of generation 7 and are available"
        assert said(result["Updated"]) == ("True", "AsExpected", expected)
        assert result["Reconciling"].status == "False"

    def test_more_old_replicas_than_wanted(self) -> None:
        """Scaled to 0 while old ones are there: none is missing, and it is not over."""
        result = made_of(steady(updated=-2), observation(source(0)), ready=0)
        assert said(result["Updated"])[::2] == (
            "False",
            "0 of 0 replicas have the template of generation 7 and are available",
        )

    @pytest.mark.parametrize(
        ("state", "reason", "stalled"),
        [
            (State.REFUSED, Reason.STRATEGY_RECREATE, True),
            (State.REFUSED, Reason.ROLLOUT_IN_PROGRESS, False),
            (State.REFUSED, Reason.WAITING_FOR_TURN, False),
            (State.CONFLICT, Reason.GIVING_BACK, True),
            (State.ROLLING, Reason.ROLLOUT_STALLED, True),
            (State.HELD, Reason.TEMPLATE_INVALID, True),
            (State.HELD, Reason.WAITING_FOR_REPLICAS, False),
        ],
    )
    def test_what_waits_for_a_person(self, state: State, reason: Reason, *, stalled: bool) -> None:
        """Is stalled, which kstatus calls failed, and not in progress beside it."""
        result = made_of(steady(state=state, verdict=Note(reason, "why"), updated=None))
        assert said(result["Updated"]) == ("False", reason, "why")
        assert said(result["Stalled"]) == (
            ("True", reason, "why") if stalled else ("False", "AsExpected", "")
        )
        assert result["Reconciling"].status == "False"

    def test_a_take_over(self) -> None:
        """Is in progress before it is known how many are of the newest template; a dry run is not."""
        begins = steady(state=State.TAKING_OVER, updated=None)
        assert made_of(begins)["Reconciling"].status == "True"
        assert made_of(steady(state=State.HELD, updated=None))["Reconciling"].status == "False"

    def test_a_conflict(self) -> None:
        """What the verdict says of it."""
        result = made_of(steady(verdict=PROBLEM), conflict=True)["Conflict"]
        assert said(result) == ("True", "InvalidAnnotation", PROBLEM.message)

    @pytest.mark.parametrize("state", list(State))
    def test_progressing(self, state: State) -> None:
        """Means that something is being moved."""
        moving = state in {State.TAKING_OVER, State.MOVING, State.ROLLING, State.GIVING_BACK}
        assert made_of(steady(state=state))["Progressing"].status == str(moving)

    def test_without_a_source(self) -> None:
        """Nothing is wanted of what is gone."""
        assert said(made_of(observed=observation(None, source=None), ready=0)["Ready"])[::2] == (
            "True",
            "0 of 0 replicas are available",
        )

    def test_a_long_message_is_cut(self) -> None:
        """To what a Split takes."""
        long = replace(PROBLEM, message="x" * 5_000)
        assert len(made_of(steady(objection=long))["Eligible"].message) == 1024


class TestSince:
    EARLIER = ago(7200)

    def test_is_kept_while_the_status_is(self) -> None:
        """Another message with the same status is no transition."""
        few = made_of(observed=observation(source(4), now=self.EARLIER), ready=1)
        before = split(conditions=tuple(few.values()))
        more = made_of(observed=observation(source(4), split=before), ready=2)
        assert more["Ready"].message != few["Ready"].message
        assert {one.since for one in more.values()} == {self.EARLIER}

    def test_of_what_changes_is_now(self) -> None:
        """And of that condition only."""
        before = split(conditions=tuple(made_of(observed=observation(source(4), now=self.EARLIER)).values()))
        result = made_of(observed=observation(source(4), split=before), in_force=INVALID)
        assert {name for name, one in result.items() if one.since == NOW} == {"PolicyValid"}

    def test_has_whole_seconds(self) -> None:
        """As the API server keeps it: else each reconcile would see a change."""
        now = NOW.replace(microsecond=999_999)
        assert made_of(observed=observation(source(4), now=now))["Ready"].since == NOW
