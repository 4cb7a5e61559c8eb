"""What is particular about StatefulSets: N in an annotation, ordinals, steps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import KEY, ago, observation, pod, pods, replica_set, split, twin, twin_of
from core.statefulset.databases import DB, TWINS, database, plan_input, stateful
from splitter.core.actions import ReleaseSource, RestoreTemplate, SaveReplicas, Scale, ShowReplicas
from splitter.core.deployment.offboard import hand_back
from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import RelatedObjects
from splitter.core.planner import policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.statefulset.steps import follow, follow_split, release, save
from splitter.core.twins.steps import run


class TestDefaults:
    def test_majority(self) -> None:
        """More than half stay on on-demand unless something else is asked for."""
        observed = observation(database(), key=DB)
        assert policy_in_force(observed, Policy()).policy.on_demand_base == "majority"
        asked = database(annotations={"splitter.io/on-demand-base": "1"})
        assert policy_in_force(observation(asked, key=DB), Policy()).policy.on_demand_base == 1
        assert policy_in_force(observation(key=KEY), Policy()).policy.on_demand_base == 0

    @given(st.integers(1, 200))
    def test_a_quorum_outlives_all_of_spot(self, n: int) -> None:
        """For every N more than half are on on-demand, of an even one too."""
        assert 2 * base_replicas(n, TWINS) > n


class TestSteps:
    def test_n_is_saved_with_what_it_was_read_from(self) -> None:
        """The write carries the resourceVersion, and scales nothing."""
        [action] = save(plan_input(database())).actions
        assert action == SaveReplicas(5, 5, "rv-web")

    def test_n_that_was_lost_is_on_the_split(self) -> None:
        """At 0 without its annotation, the Split's own count is taken."""
        source = database(stateful(0))
        [action] = save(plan_input(source, split=split(replicas=4))).actions
        assert action == SaveReplicas(4, 0, "rv-web")

    @pytest.mark.parametrize(("writer", "n"), [("", 5), ("kubectl-replace", 2)])
    def test_what_a_move_has_left_is_no_n(self, writer: str, n: int) -> None:
        """Somebody removed the annotation in the middle of a move: its writer tells N, or the Split."""
        source = database(stateful(2, writer=writer))
        [action] = [
            one
            for one in save(plan_input(source, split=split(replicas=5))).actions
            if isinstance(one, SaveReplicas)
        ]
        assert action == SaveReplicas(n, 2, "rv-web")

    @pytest.mark.parametrize(("seen", "back"), [(True, ["db-on-demand"]), (False, [])])
    def test_a_broken_roll_is_taken_back_on_the_way_home(self, *, seen: bool, back: list[str]) -> None:
        """Once: until its controller has seen that, no revision looks like the one that is to be."""
        serving = [pod(f"db-on-demand-{k}", ordinal=k) for k in range(2)]
        broken = pod("db-on-demand-2", ordinal=2, ready=False)
        sets = [replica_set("v1", 2, serving, template="v1"), replica_set("v2", 1, [broken], template="v2")]
        on_demand = twin_of(
            Pool.ON_DEMAND, sets, template="v2", updated=1, name="db-on-demand", observed=seen
        )
        given_back = plan_input(database(stateful(0, saved=3)), on_demand=on_demand, spot=None)
        restored = [one for one in hand_back(given_back).actions if isinstance(one, RestoreTemplate)]
        assert [(one.twin, one.replica_set) for one in restored] == [(name, "v1") for name in back]

    def test_and_else_in_its_status_or_its_twins(self) -> None:
        """Whatever is left is asked."""
        source = database(stateful(0))
        reported = split(desired=3)
        assert save(plan_input(source, split=reported)).actions == (SaveReplicas(3, 0, "rv-web"),)
        twins = {"on_demand": twin(Pool.ON_DEMAND, spec=2), "spot": twin(Pool.SPOT, spec=1)}
        assert save(plan_input(source, split=None, **twins)).actions == (SaveReplicas(3, 0, "rv-web"),)

    def test_a_new_count_is_shown_before_it_is_saved(self) -> None:
        """The other way round a crash would look as if somebody had scaled the Split back."""
        source = database(stateful(7, saved=5, writer="kubectl"))
        result = follow(plan_input(source, split=split(replicas=5)))
        assert result.actions == (ShowReplicas(7), SaveReplicas(7, 7, "rv-web"))
        assert result.verdict.message == "kubectl scaled the source: 5 -> 7 replicas"
        assert not result.write_conflict

    @pytest.mark.parametrize(("conflicting_writer", "count"), [("argocd", 3), ("helm", 1)])
    def test_the_old_count_is_a_write_conflict(self, conflicting_writer: str, count: int) -> None:
        """Counted for one and the same writer."""
        source = database(stateful(5, saved=5, writer="argocd"))
        before = split(
            replicas=5, write_conflicts=(ago(500), ago(100)), conflicting_writer=conflicting_writer
        )
        result = follow(plan_input(source, split=before))
        assert (result.write_conflict, result.conflicting_writer) == (True, "argocd")
        assert result.verdict.reason is Reason.FOREIGN_WRITE
        assert f"({count} of 3 times within 10 min)" in result.verdict.message

    def test_on_the_way_back_there_is_no_write_conflict(self) -> None:
        """Once the label is gone, whoever sets N helps."""
        source = replace(database(stateful(5, saved=5)), labels={})
        assert not follow(plan_input(source, split=split(replicas=5))).write_conflict

    def test_the_split_is_followed(self) -> None:
        """What an autoscaler writes there is N; the source stays as it is."""
        source = database(stateful(2, saved=5, left=2))
        assert follow_split(plan_input(source, split=split(replicas=9))).actions == (
            SaveReplicas(9, 2, "rv-web"),
        )

    @pytest.mark.parametrize(("taken", "raised"), [({}, 5), ({Pool.ON_DEMAND: (4, "tmp-db-on-demand-4")}, 4)])
    def test_no_member_takes_a_claim_of_somebody_else(
        self, taken: dict[Pool, tuple[int, str]], raised: int
    ) -> None:
        """Not even to cover a loss: it would be deleted with the member."""
        twins = {"on_demand": twin(Pool.ON_DEMAND, pods(3)), "spot": twin(Pool.SPOT, pods(doomed=2))}
        around = RelatedObjects(taken_claims=taken)
        ran = run(plan_input(database(stateful(0, saved=5)), related=around, **twins))
        assert [(one.was, one.replicas) for one in ran.raises] == [(3, raised)]

    @pytest.mark.parametrize(("deletes_claims", "lowered"), [(False, True), (True, False)])
    def test_a_source_that_would_delete_its_volumes_stays(self, deletes_claims: bool, lowered: bool) -> None:
        """`whenScaled: Delete`, set in the middle of the hand-over: what it still holds it keeps."""
        source = database(stateful(5, saved=5, left=5, deletes_claims=deletes_claims))
        itself = replace(replica_set("db", of=pods(5)), first_ordinal=0)
        twins = {"on_demand": twin(Pool.ON_DEMAND, pods(1)), "spot": twin(Pool.SPOT, pods())}
        ran = run(plan_input(source, replica_sets=(itself,), **twins))
        scales = [one for one in ran.actions if isinstance(one, Scale)]
        assert any(one.name == "db" and one.replicas < 5 for one in scales) is lowered

    def test_the_marks_go_before_what_leads_to_them(self) -> None:
        """Mark and N first, the twins after them: no watch selects an annotation."""
        source = database(stateful(5, saved=5, left=5), annotations={"splitter.io/replicas": "5"})
        twins = {"on_demand": twin(Pool.ON_DEMAND, spec=0), "spot": twin(Pool.SPOT, spec=0)}
        actions = release(plan_input(source, **twins)).actions
        assert [type(action).__name__ for action in actions] == ["ReleaseSource", "DeleteTwin", "DeleteTwin"]
        assert actions[0] == ReleaseSource()


def test_a_split_of_a_deployment_has_no_conflicting_writer() -> None:
    """Views that say nothing about StatefulSets have none of their words."""
    made = split()
    assert (made.status.conflicting_writer, made.replicas) == ("", None)
