"""Spot that goes while pods have no owner: on-demand covers it, and the loss is remembered."""

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, observation, pod, rendered, replica_set, twin_of
from core.deployment.owners import OD, SPOT, labelled, running
from splitter.core.actions import Scale
from splitter.core.deployment.unowned import covering, lost_meanwhile, orphans_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import NodeStatus, PodView, TwinView
from splitter.core.plan import PlanInput, PolicyInForce, Rules
from splitter.core.split_status import RebalanceState


def waits(count: int) -> TwinView:
    """Return a paused spot twin that is to adopt so many pods."""
    return replace(twin_of(SPOT, [], updated=0, spec_replicas=count), paused=True)


def on_demand(count: int = 3) -> TwinView:
    """Return the on-demand twin with its pods."""
    own = replica_set("web-on-demand-h1", of=running(count, 0, born=True))
    return twin_of(OD, [own], updated=count)


def moment(
    orphans: tuple[PodView, ...],
    policy: Policy | None = None,
    **fields: Any,  # noqa: ANN401 - of an observation
) -> PlanInput:
    """Return a moment of 3 + 2 replicas, of which spot's have no owner."""
    seen = {"on_demand": on_demand(), "spot": waits(2)} | fields
    observed = replace(observation(labelled(), **seen), orphans=orphans)
    in_force = PolicyInForce(policy or Policy(on_demand_base=3), (), {}, valid=True)
    return PlanInput(observed, labelled(), in_force, rendered(), Rules())


def going(count: int, **fields: Any) -> tuple[PodView, ...]:  # noqa: ANN401 - of a pod
    """Return pods of spot on a node that goes."""
    return tuple(
        pod(f"going-{n}", NodeStatus.DOOMED, on_spot=True, born=SPOT, **fields) for n in range(count)
    )


class TestCover:
    @pytest.mark.parametrize(
        ("orphans", "wanted"),
        [
            (running(0, 2, born=True), None),  # both serve, and wait for their owner
            ((*running(0, 1, born=True), *going(1)), 4),
            (going(2), 5),
            (running(0, 1, born=True), 4),  # one has gone already: the twin was to adopt two
            (going(2, voluntary=True), None),  # a drain is no loss: its pod is made again
            ((), None),  # all are adopted, or none ever was
        ],
    )
    def test_is_as_much_as_goes(self, orphans: tuple[PodView, ...], wanted: int | None) -> None:
        """In one raise without a precondition: it is in a hurry."""
        raises = [
            (one.was, one.replicas, one.resource_version)
            for one in covering(moment(orphans))
            if isinstance(one, Scale)
        ]
        assert raises == ([] if wanted is None else [(3, wanted, None)])

    def test_is_no_more_than_the_policy_allows(self) -> None:
        """A cap of the user's, and a freeze."""
        assert [
            one.replicas
            for one in covering(moment(going(2), Policy(on_demand_base=3, on_demand_max=4)))
            if isinstance(one, Scale)
        ] == [4]
        assert covering(moment(going(2), Policy(on_demand_base=3, on_demand_max=3))) == []
        assert covering(moment(going(2), Policy(on_demand_base=3, freeze=True))) == []

    def test_waits_for_on_demand_to_be_there(self) -> None:
        """A twin that is to adopt pods itself, has none or is missing would make others in their place."""
        own = pod("od", born=OD)
        assert covering(moment((*going(2), own))) == []
        assert covering(moment(going(2), on_demand=replace(waits(3), pool=OD, name="web-on-demand"))) == []
        assert covering(moment(going(2), on_demand=None)) == []

    def test_counts_what_everybody_holds(self) -> None:
        """Pods that the source took back serve as well: no more than N are asked for."""
        back = replica_set("web-h1", of=running(0, 1))
        (raised,) = covering(moment(going(1), sets=[back], spot=waits(1)))
        assert isinstance(raised, Scale)
        assert (raised.was, raised.replicas) == (3, 4)


class TestMemory:
    def test_of_what_has_gone(self) -> None:
        """Nothing else will tell of it: the twin would ask for it as for any new replica."""
        lost = lost_meanwhile(moment(running(0, 1, born=True)))
        assert lost is not None
        first_window = Rules().tuning.capacity_probe_replicas
        assert (lost.lost, lost.last_loss, lost.window, lost.asked) == (True, NOW, first_window, first_window)

    @pytest.mark.parametrize(
        ("orphans", "fields"),
        [
            (running(0, 2, born=True), {}),
            (going(2), {}),  # they are there yet, and tell of it themselves
            ((), {"spot": None}),
            ((), {"spot": twin_of(SPOT, [replica_set("web-spot-h1", 2)], updated=0)}),  # it makes them itself
        ],
    )
    def test_of_nothing_is_none(self, orphans: tuple[PodView, ...], fields: dict[str, Any]) -> None:
        """Where all are there, or somebody makes them."""
        assert lost_meanwhile(moment(orphans, **fields)) is None

    def test_of_a_loss_that_is_known_is_not_begun_anew(self) -> None:
        """Else its soak would never end."""
        this = moment(running(0, 1, born=True))
        assert this.observed.split is not None
        known = replace(
            this.observed.split,
            status=replace(this.observed.split.status, rebalance=RebalanceState(lost=True)),
        )
        assert lost_meanwhile(replace(this, observed=replace(this.observed, split=known))) is None


def test_whose_they_are_is_their_label() -> None:
    """Those that end, or bear none, are nobody's."""
    orphans = (*running(1, 1, born=True), pod("none"), pod("ending", born=SPOT, terminating=True))
    assert [one.name for one in orphans_of(moment(orphans), SPOT)] == ["spot-0"]
