"""Giving back: which writes, from the removed label to no trace."""

from dataclasses import replace

from builders import observation, pods, replica_set, source, split, twin
from core.one_reconcile import ATTACHED, kinds, planned
from splitter.core.actions import (
    DeleteReplicaSet,
    DeleteSplit,
    DeleteTwin,
    Reattach,
    Scale,
    SetOwnershipMark,
    SetPaused,
)
from splitter.core.handover import Step
from splitter.core.model import Attachment
from splitter.core.reasons import State
from splitter.core.replica import Pool


class TestGiving:
    """Back to where it was."""

    def test_without_any_twin_what_is_parked_goes_back(self) -> None:
        """Labels and hash return in one patch, behind a precondition."""
        result = planned(observation(source(labelled=False), [replica_set(of=pods(10))]))
        labels = (("app", "web"), ("pod-template-hash", "1"))
        assert result.actions == (Reattach("web-1", "rv-web-1", labels, active=True),)

    def test_without_any_pod_the_source_makes_its_own(self) -> None:
        """Nothing of ours is there."""
        result = planned(observation(source(labelled=False), [replica_set(spec=0)]))
        assert result.actions == (SetPaused(paused=False, resource_version="rv-web"),)

    def test_is_unpaused_with_what_it_has(self) -> None:
        """Behind a precondition: somebody may have written to it since."""
        result = planned(observation(source(labelled=False), [ATTACHED]))
        assert (result.step, result.actions) == (
            Step.UNPAUSE,
            (SetPaused(paused=False, resource_version="rv-web"),),
        )

    def test_ours_shrink_beside_its_own_pods(self) -> None:
        """What both hold beyond the floor goes, and no more than that."""
        unpaused = source(labelled=False, paused=False)
        result = planned(
            observation(
                unpaused,
                [replica_set(of=pods(6), attachment=Attachment.ATTACHED)],
                on_demand=twin(Pool.ON_DEMAND, pods(4)),
                spot=twin(Pool.SPOT, pods(3)),
            )
        )
        assert result.step is Step.SHRINK_OURS
        assert sum(one.was - one.replicas for one in result.actions if isinstance(one, Scale)) == 3

    def test_its_controller_is_waited_for(self) -> None:
        """It was unpaused, and has made no ReplicaSet yet."""
        result = planned(observation(source(labelled=False, paused=False), []))
        assert (result.step, result.actions) == (Step.WAIT_CONTROLLER, ())

    def test_old_revisions_go_back_before_the_traces_go(self) -> None:
        """Those with a template that is attached already are deleted: two would make a roll."""
        twice = replica_set("web-2", spec=0)
        old = replica_set("web-0", spec=0, template="v0")
        unpaused = source(labelled=False, paused=False)
        result = planned(
            observation(
                unpaused, [ATTACHED, twice, old], on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT)
            )
        )
        assert kinds(result) == [DeleteReplicaSet, Reattach]

    def test_what_a_twin_made_is_no_old_revision(self) -> None:
        """The source adopted it out of a backup; with its labels the twin that is there would adopt it."""
        labels = {"app": "web", "splitter.io/pool": "spot", "splitter.io/source": "web"}
        made = replace(replica_set("web-spot-1", spec=0, template="v0"), template_labels=labels)
        unpaused = source(labelled=False, paused=False)
        twins = {"on_demand": twin(Pool.ON_DEMAND), "spot": twin(Pool.SPOT)}
        [first, *_] = planned(observation(unpaused, [ATTACHED, made], **twins)).actions
        assert first == DeleteReplicaSet("web-spot-1", made.uid, made.resource_version)

    def test_the_split_goes_last(self) -> None:
        """The mark goes after everything it stands for, the Split after the mark."""
        unpaused = source(labelled=False, paused=False)
        result = planned(
            observation(unpaused, [ATTACHED], on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT))
        )
        assert kinds(result) == [DeleteTwin, DeleteTwin, SetOwnershipMark]

    def test_in_conflict_the_split_stays(self) -> None:
        """It says so until the label goes."""
        conflicted = observation(
            source(paused=False),
            [ATTACHED],
            split=split(conflict=True),
            on_demand=twin(Pool.ON_DEMAND),
            spot=twin(Pool.SPOT),
        )
        assert DeleteSplit not in kinds(planned(conflicted))

    def test_given_back_in_conflict_nothing_is_touched(self) -> None:
        """The source is the user's again."""
        over = observation(
            source(marked=False, paused=False, paused_by_us=False), [ATTACHED], split=split(conflict=True)
        )
        result = planned(over)
        assert (result.actions, result.state) == ((), State.CONFLICT)
