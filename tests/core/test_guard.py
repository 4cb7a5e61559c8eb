"""The guard: how many pods evictions have to leave, and which budget says so."""

import json
from dataclasses import replace
from typing import Any

import pytest

from builders import ago, observation, pod, pods, rendered, source, split, twin
from splitter.core.actions import Scale, SetBudget
from splitter.core.guard import selects
from splitter.core.model import BudgetView, Observation, PodView, Policy, Pool, Standing
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force

N = 10
OURS = BudgetView("web-guard", "uid-guard", is_ours=True, min_available=N - 1, selector=())
LABELLED = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}}
MANIFEST = json.dumps({"spec": {"selector": LABELLED, "template": TEMPLATE}})
EVERY = (("app", "In", ("web",)),)


def users(name: str = "mine", selector: Any = EVERY) -> BudgetView:  # noqa: ANN401
    """Return a budget of the user's."""
    return BudgetView(name, f"uid-{name}", is_ours=False, min_available=1, selector=selector)


def at_rest(
    *going: PodView,
    ready: int = 6,
    budgets: tuple[BudgetView, ...] = (OURS,),
    **fields: Any,  # noqa: ANN401 (fields of Observation)
) -> Observation:
    """Return a workload of 4 replicas on on-demand and 6 on spot."""
    annotations = {**source().annotations, "splitter.io/on-demand-base": "4", **fields.pop("annotations", {})}
    return observation(
        source(N, manifest_json=MANIFEST, annotations=annotations),
        on_demand=twin(Pool.ON_DEMAND, pods(4)),
        spot=twin(Pool.SPOT, (*pods(ready - len(going)), *going)),
        split=split(state="Steady"),
        unguardable="",
        budgets=budgets,
        **fields,
    )


def doomed(name: str = "going", **fields: Any) -> PodView:  # noqa: ANN401 (fields of PodView)
    """Return a spot pod on a node that is about to go."""
    return pod(name, Standing.DOOMED, on_spot=True, **fields)


def planned(seen: Observation) -> Plan:
    """Plan a pass."""
    return plan(seen, policy_in_force(seen, Policy()), rendered(), Rules())


def budgets(found: Plan) -> list[int | None]:
    """Return what is written of budgets."""
    return [one.min_available for one in found.actions if isinstance(one, SetBudget)]


class TestAtRest:
    """One eviction at a time, and no write without a reason."""

    def test_is_made(self) -> None:
        """N - 1, once it runs."""
        found = planned(at_rest(budgets=()))
        assert found.actions == (SetBudget("web-guard", N - 1),)
        assert found.guard == "web-guard keeps 9 of 10"

    def test_is_there(self) -> None:
        """Nothing is written."""
        assert planned(at_rest()).actions == ()

    def test_follows_the_count(self) -> None:
        """Of another N."""
        seen = at_rest(budgets=(replace(OURS, min_available=4),))
        assert budgets(planned(seen)) == [N - 1]

    def test_surge_first(self) -> None:
        """All of them, always."""
        assert budgets(planned(at_rest(annotations={"splitter.io/evictions": "surge-first"}))) == [N]

    def test_on_the_namespace(self) -> None:
        """As every annotation."""
        seen = at_rest(namespace_annotations={"splitter.io/evictions": "surge-first"})
        assert budgets(planned(seen)) == [N]

    @pytest.mark.parametrize("word", ["Surge-First", "", "always"])
    def test_a_word_that_means_nothing(self, word: str) -> None:
        """It is said, and the guard stays."""
        seen = at_rest(annotations={"splitter.io/evictions": word})
        assert "splitter.io/evictions" in policy_in_force(seen, Policy()).problems[0].message
        assert budgets(planned(seen)) == []


class TestRaised:
    """From the first sign, as the first write of all."""

    def test_before_the_raise(self) -> None:
        """Whoever drains in the same second finds it there."""
        found = planned(at_rest(doomed()))
        assert isinstance(found.actions[0], SetBudget)
        assert found.actions[0].min_available == N
        assert any(isinstance(one, Scale) and one.replicas > one.was for one in found.actions[1:])

    def test_stays_until_all_are_ready(self) -> None:
        """The node is gone and its replacement is not there yet."""
        raised = (replace(OURS, min_available=N),)
        assert budgets(planned(at_rest(ready=5, budgets=raised))) == []
        assert budgets(planned(at_rest(budgets=raised))) == [N - 1]

    def test_lets_go_of_who_has_to_end_now(self) -> None:
        """By the deadline of its node, less what it needs to end."""
        late = doomed("late", deadline=ago(-20), termination_s=30)
        later = doomed("later", deadline=ago(-90), termination_s=30)
        found = planned(at_rest(late, later, budgets=(replace(OURS, min_available=N),)))
        assert budgets(found) == [N - 1]
        assert found.wake_after_s is not None
        assert found.wake_after_s <= 60

    def test_frozen(self) -> None:
        """Nothing replaces what waits."""
        assert budgets(planned(at_rest(doomed(), annotations={"splitter.io/freeze": "true"}))) == []


class TestOthers:
    """A budget of the user's wins; and where none can be kept, that is said."""

    def test_a_user_s_budget(self) -> None:
        """Two would have every eviction refused with an error; its name is told."""
        found = planned(at_rest(budgets=(OURS, users())))
        assert budgets(found) == [None]
        assert found.guard == "your PodDisruptionBudget mine"

    @pytest.mark.parametrize(
        ("selector", "theirs"),
        [
            ((), True),
            (None, False),
            ((("app", "In", ("api",)),), False),
            ((("splitter.io/pool", "In", ("spot",)),), True),
            ((("splitter.io/pool", "Exists", ()),), True),
            ((("tier", "NotIn", ("db",)),), True),
            ((("app", "DoesNotExist", ()),), False),
            ((("app", "Gt", ("1",)),), True),
        ],
    )
    def test_what_it_selects(self, selector: Any, theirs: bool) -> None:  # noqa: ANN401
        """Pods of either twin, by the labels that they have; an unknown operator might."""
        found = planned(at_rest(budgets=(users(selector=selector),)))
        assert budgets(found) == ([] if theirs else [N - 1])

    def test_no_selector_selects_nothing(self) -> None:
        """Which is not the same as an empty one."""
        assert not selects(users(selector=None), {"app": "web"})
        assert selects(users(selector=()), {})

    def test_a_stranger_has_the_name(self) -> None:
        """It stays as it is."""
        found = planned(at_rest(budgets=(users("web-guard", (("app", "In", ("x",)),)),)))
        assert (budgets(found), found.guard) == ([], "none: PodDisruptionBudget web-guard is not splitter's")

    def test_unguarded(self) -> None:
        """Ours goes."""
        assert budgets(planned(at_rest(annotations={"splitter.io/evictions": "unguarded"}))) == [None]

    def test_no_rights(self) -> None:
        """Everything else goes on."""
        found = planned(replace(at_rest(doomed(), budgets=()), unguardable="splitter may not read them"))
        assert found.guard == "none: splitter may not read them"
        assert any(isinstance(one, Scale) for one in found.actions)
