"""From the label to a parked source: which writes, in which order, for which reason."""

from dataclasses import replace

import pytest

from builders import free_source, observation, pods, replica_set, source, split, twin
from core.one_reconcile import ATTACHED, DEFAULTS, at_rest, kinds, planned
from splitter.core.actions import EnsureSplit, Park, SetOwnershipMark, SetPaused
from splitter.core.handover import Step
from splitter.core.model import Attachment, Note, RelatedObjects
from splitter.core.placeable import OneNodeClaim
from splitter.core.plan import Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State, VerdictCause
from splitter.core.replica import Pool

DENIED = Note(Reason.WRITE_DENIED, "exceeded quota", warning=True, cause=VerdictCause.ANOTHER_OBJECT)

RETURNING = (replica_set("web-1", spec=0, attachment=Attachment.RETURNING),)


class TestTaking:
    """From the label to a parked source."""

    def test_the_split_is_born_before_the_mark(self) -> None:
        """An annotation cannot be selected by a watch; a Split can."""
        result = planned(observation(free_source(), [ATTACHED], split=None))
        assert kinds(result) == [EnsureSplit, SetOwnershipMark]
        assert result.verdict.reason is Reason.HANDING_OVER

    def test_a_refusal_writes_nothing_but_its_report(self) -> None:
        """Refused and left as it is; the report is written once."""
        refused = planned(observation(free_source(recreate=True), [ATTACHED], split=None))
        assert refused.actions == (EnsureSplit(takes_over=False),)
        assert refused.verdict.reason is Reason.STRATEGY_RECREATE
        again = planned(observation(free_source(recreate=True), [ATTACHED], split=split(takes_over=False)))
        assert again.actions == ()

    @pytest.mark.parametrize(
        ("around", "reason"),
        [
            ({"denied": DENIED}, Reason.WRITE_DENIED),
            ({"related": RelatedObjects(taken_names=("web-spot",))}, Reason.TWIN_NAME_TAKEN),
            (
                {"related": RelatedObjects(one_node_claim=OneNodeClaim("uploads"))},
                Reason.VOLUME_READ_WRITE_ONCE,
            ),
        ],
    )
    def test_what_others_mend_is_looked_at_again(self, around: dict[str, object], reason: Reason) -> None:
        """No watch tells of a quota or of another object: the settings say after how long."""
        observed = replace(observation(free_source(), [ATTACHED], split=None), **around)  # type: ignore[arg-type]
        refused = planned(observed, look_again_s=7.0)
        assert (refused.state, refused.verdict.reason) == (State.REFUSED, reason)
        assert refused.requeue_after_s == 7.0

    def test_what_the_source_mends_is_waited_for(self) -> None:
        """Its change is an event: there is nothing to look for before it."""
        observed = observation(free_source(recreate=True), [ATTACHED], split=None)
        assert planned(observed, look_again_s=7.0).requeue_after_s is None

    def test_templates_that_do_not_render_refuse(self) -> None:
        """Before the first write, in the template's own words."""
        observed = observation(free_source(), [ATTACHED], split=None)
        broken = Note(Reason.TEMPLATE_INVALID, "line 3", warning=True)
        result = plan(observed, policy_in_force(observed, DEFAULTS), broken, Rules(defaults=DEFAULTS))
        assert result.verdict == broken
        assert result.state is State.REFUSED

    def test_the_pause_carries_a_precondition(self) -> None:
        """The source is the user's."""
        result = planned(observation(source(paused=False), [ATTACHED]))
        assert result.actions == (SetPaused(paused=True, resource_version="rv-web"),)
        assert not result.write_conflict

    def test_a_foreign_unpause_is_a_write_conflict(self) -> None:
        """Only with something parked: our own crash between mark and pause is none."""
        result = planned(observation(source(paused=False), [ATTACHED, replica_set("web-0", spec=0)]))
        assert result.write_conflict
        assert result.verdict.reason is Reason.FOREIGN_WRITE

    def test_the_current_replica_set_is_parked_last(self) -> None:
        """0.1 s after only the active one is parked, the old image would be resurrected."""
        old = replica_set("web-0", spec=0, attachment=Attachment.ATTACHED, template="v0")
        older_running = replica_set("web-00", of=pods(1), attachment=Attachment.ATTACHED, template="v00")
        current = replica_set("web-1", spec=0, attachment=Attachment.ATTACHED)
        result = planned(at_rest(replica_sets=(current, older_running, old)))
        assert [action.name for action in result.actions if isinstance(action, Park)] == [
            "web-0",
            "web-00",
            "web-1",
        ]


class TestFoundAgain:
    """Something of ours is there, and what says whose it is is not."""

    def test_is_marked_again(self) -> None:
        """`kubectl replace` drops the mark, or a backup brings one with another UID."""
        result = planned(at_rest(source=source(marked=False)))
        assert (result.step, kinds(result)) == (Step.ADOPT, [SetOwnershipMark])

    def test_the_split_is_written_anew(self) -> None:
        """Somebody has deleted it."""
        result = planned(at_rest(split=None))
        assert (result.step, result.actions) == (Step.CREATE_SPLIT, (EnsureSplit(takes_over=True),))

    def test_what_an_earlier_source_left_is_owned(self) -> None:
        """Deleted with `--cascade=orphan`, and created anew: no garbage collector would take it."""
        left = (replace(replica_set("web-0", spec=0), orphaned=True),)
        orphaned = replace(split(), owner_uids=("uid-before",))
        result = planned(at_rest(replica_sets=left, split=orphaned))
        assert (result.step, kinds(result)) == (Step.CLAIM, [EnsureSplit, Park])


class TestCreatedAnew:
    """A source that was never paused was resumed by nobody."""

    @pytest.mark.parametrize("generation", [1, 2, 3])
    def test_is_no_write_conflict(self, generation: int) -> None:
        """It has parked ReplicaSets of the one before it, and no more than the mark was written since."""
        fresh = source(paused=False, generation=generation)
        result = planned(observation(fresh, [replica_set(of=pods(4)), ATTACHED]))
        assert not result.write_conflict
        assert result.verdict.reason is Reason.HANDING_OVER


class TestItsOwnRollout:
    """Twins that wait for pods, and a source that was resumed and rolls."""

    def test_ends_first(self) -> None:
        """Its pods change their owner when they have stopped changing."""
        rolls = [
            replica_set(name, of=pods(5), attachment=Attachment.ATTACHED, template=name)
            for name in ("web-1", "web-2")
        ]
        result = planned(observation(source(paused=False), rolls))
        assert (result.step, result.actions) == (Step.WAIT_ROLLOUT, ())


class TestWaiting:
    """What a controller has not seen yet changes nothing about what is wanted."""

    @pytest.mark.parametrize("fields", [{"leaving": True}, {"replica_sets": RETURNING}])
    @pytest.mark.parametrize("labelled", [True, False])
    def test_for_a_replica_set_on_its_way(self, fields: dict[str, object], labelled: bool) -> None:
        """It goes, or is back in a moment: attached beside another one it would make two."""
        paused = source(labelled=labelled)
        result = planned(at_rest(source=paused, **fields))
        assert (result.step, result.actions) == (Step.WAIT_CONTROLLER, ())

    @pytest.mark.parametrize("before", [State.STEADY, State.HELD, State.ROLLING])
    def test_for_a_new_image_to_be_seen(self, before: State) -> None:
        """The division is shown as it is, and the hand-over is not told again."""
        covered = twin(Pool.ON_DEMAND, pods(6))
        result = planned(at_rest(source=source(observed=False), on_demand=covered, split=split(state=before)))
        assert (result.step, result.state) == (Step.WAIT_CONTROLLER, State.MOVING)
        assert (result.wanted_on_demand, result.wanted_spot) == (4, 6)

    def test_in_the_middle_of_the_take_over(self) -> None:
        """Held there, with pods parked, it is still on its way."""
        parked = [replica_set(of=pods(3))]
        result = planned(
            at_rest(source=source(observed=False), replica_sets=tuple(parked), split=split(state=State.HELD))
        )
        assert (result.step, result.state) == (Step.WAIT_CONTROLLER, State.TAKING_OVER)
