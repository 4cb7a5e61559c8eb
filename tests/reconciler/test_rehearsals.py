"""When the API server is asked, and for how long its answer counts."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from builders import NOW, observation, rendered, replica_set, twin_of
from core.deployment.owners import home, labelled, running
from splitter.core.actions import OrphanPods, SetPaused
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import Pool
from splitter.reconciler.rehearsals import Rehearsals

if TYPE_CHECKING:
    from splitter.kube.apply import Writer

REFUSED = Note(Reason.WRITE_DENIED, "no bare pods here", warning=True)
RULES = Rules(defaults=Policy(on_demand_base=2), look_again_s=60.0)
LETS_GO = observation(
    labelled(),
    [home(running(3, 2, born=True)), replica_set("web-splith1", spec=0)],
    on_demand=replace(twin_of(Pool.ON_DEMAND, [], updated=0, spec_replicas=3, max_surge=1), paused=True),
    spot=replace(twin_of(Pool.SPOT, [], updated=0, spec_replicas=2, max_surge=1), paused=True),
)


class Asked:
    """Answers dry runs, and counts them."""

    def __init__(self, *answers: Note | None) -> None:
        self.answers = list(answers)
        self.count = 0

    async def rehearse_letting_go(self, *_: object) -> Note | None:
        """Answer one."""
        self.count += 1
        return self.answers.pop(0)


async def reconciled(one: Rehearsals, observed: Observation) -> Plan:
    """Return what one reconcile would do."""
    observed = one.known(observed)
    in_force = policy_in_force(observed, RULES.defaults)
    planned = plan(observed, in_force, rendered(), RULES)
    return (await one.rehearsed(observed, in_force, rendered(), planned))[1]


def later(seconds: float) -> Observation:
    """Return the same, so much later."""
    return replace(LETS_GO, now=NOW + timedelta(seconds=seconds))


async def test_pods_are_let_go_when_nothing_is_refused() -> None:
    """One rehearsal, right before."""
    asked = Asked(None)
    one = Rehearsals(cast("Writer", asked), RULES, lambda _: 0)
    assert [type(action) for action in (await reconciled(one, LETS_GO)).actions] == [OrphanPods]
    assert asked.count == 1


async def test_a_refusal_counts_for_a_while() -> None:
    """However often it is reconciled meanwhile, nobody is asked again; then it is, and goes on."""
    asked = Asked(REFUSED, None)
    one = Rehearsals(cast("Writer", asked), RULES, lambda _: 0)
    for seconds in (0, 1, 30, 59):
        result = await reconciled(one, later(seconds))
        assert (result.state, result.verdict) == (State.HELD, REFUSED)
        assert [type(action) for action in result.actions] == [SetPaused]
        assert asked.count == 1
    assert [type(action) for action in (await reconciled(one, later(60))).actions] == [OrphanPods]
    assert asked.count == 2


async def test_a_workload_that_is_gone_is_forgotten() -> None:
    """Another one of its name is asked for anew."""
    asked = Asked(REFUSED, None)
    one = Rehearsals(cast("Writer", asked), RULES, lambda _: 0)
    await reconciled(one, LETS_GO)
    one.forget(LETS_GO.key)
    assert [type(action) for action in (await reconciled(one, later(1))).actions] == [OrphanPods]
