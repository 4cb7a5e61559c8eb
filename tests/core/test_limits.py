"""What is larger than splitter looks after: refused with its size and the limit, and left as it is."""

import json
from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, free_source, observation, pod, pods, replica_set, source, split, twin, twin_of
from splitter.core import limits
from splitter.core.actions import Action, DeleteSplit, DeleteVanishedPod, HolderKind, SaveReplicas, Scale
from splitter.core.eligibility import objection_while_split, refusal
from splitter.core.handover import Step
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.labels_annotations.policy import Policy
from splitter.core.labels_annotations.saved import saved_value
from splitter.core.model import Attachment, Note, Observation, SourceView, TwinView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason, State
from splitter.core.replica import NodeStatus, Pool
from splitter.core.stateful import StatefulView

DB = Key(STATEFUL_SET, "shop", "db")


def stateful(replicas: int, claims: int = 0, **fields: Any) -> SourceView:  # noqa: ANN401 (SourceView's)
    """Return a StatefulSet with so many claims a member."""
    only = StatefulView(
        spec_replicas=replicas,
        status_replicas=replicas,
        available_replicas=replicas,
        created=NOW,
        claim_templates=tuple(f"data-{number}" for number in range(claims)),
    )
    return free_source(replicas, key=DB, stateful=only, **fields)


TOO_LARGE = [
    (free_source(manifest_json="x" * (limits.MAX_MANIFEST_BYTES + 1024)), "513 KiB", "512 KiB"),
    (free_source(claims=tuple(map(str, range(51)))), "51 volume claims", "most 50"),
    (free_source(selector_terms=101), "101 terms and values", "most 100"),
    (stateful(1001), "1001 replicas", "most 1000"),
    (stateful(126, 2), "252 volume claims", "most 250"),
]


@pytest.mark.parametrize(("source", "size", "limit"), TOO_LARGE)
def test_over_a_limit(source: SourceView, size: str, limit: str) -> None:
    """It is refused before anything else is said of it; what is split already stays so."""
    refused = refusal(observation(source=source), source, Policy(), ())
    assert refused is not None
    assert refused.reason is Reason.TOO_LARGE
    assert size in refused.message
    assert limit in refused.message
    assert refused.warning
    kept = objection_while_split(observation(source=source, split=split()), source, Policy())
    assert kept is not None
    assert kept.reason is Reason.TOO_LARGE
    assert "stays split" in kept.message


@pytest.mark.parametrize(
    "source",
    [
        free_source(manifest_json="x" * limits.MAX_MANIFEST_BYTES),
        free_source(100_000),
        free_source(claims=tuple(map(str, range(50)))),
        free_source(selector_terms=100),
        stateful(1000),
        stateful(125, 2),
        stateful(0, 100),
    ],
)
def test_within_all(source: SourceView) -> None:
    """As large as it may be; how many replicas a Deployment has costs nothing."""
    assert limits.too_large(source) == ""


MOST = 2**31 - 1
MARKED = {"splitter.io/taken-over": ownership_mark_value("uid-web", NOW)}


def planned(observed: Observation) -> Plan:
    """Plan one reconcile: what is too large is not rendered."""
    not_rendered = Note(Reason.TOO_LARGE, "too large", warning=True)
    return plan(observed, policy_in_force(observed, Policy()), not_rendered, Rules())


def lowered(actions: tuple[Action, ...]) -> list[Action]:
    """Return what lowers, restarts or ends anything that runs."""
    return [
        one
        for one in actions
        if not isinstance(one, DeleteVanishedPod) and not (isinstance(one, Scale) and one.replicas > one.was)
    ]


def placed(replicas: int, *, labelled: bool = True) -> Observation:
    """Return a StatefulSet in placement mode that somebody has scaled, with three of its pods."""
    db = stateful(replicas)
    members = [pod(f"db-{k}", ordinal=k, on_spot=k == 2) for k in range(3)]
    members[2] = replace(members[2], node_status=NodeStatus.DOOMED)
    own = replica_set("db", 3, members, attachment=Attachment.PARKED)
    result = observation(
        replace(db, labels=db.labels if labelled else {}),
        [own],
        split=split(owner_uids=(db.uid,), ordinals=(0, 1)),
    )
    return replace(result, key=DB)


def in_twins(replicas: int, *, labelled: bool = True, saved: int | None = None) -> Observation:
    """Return a StatefulSet that is split into twins of 2 and 1, and that somebody has scaled."""
    saved = replicas if saved is None else saved
    db = stateful(replicas, annotations={**MARKED, "splitter.io/replicas": saved_value(saved, 0)})
    assert db.stateful is not None
    view = replace(db.stateful, spec_replicas=0 if saved == replicas else replicas, saved=saved)
    db = replace(db, replicas=saved, stateful=view, labels=db.labels if labelled else {})
    result = observation(
        db,
        [replace(replica_set("db", 0), first_ordinal=0)],
        split=split(owner_uids=(db.uid,), replicas=saved),
        on_demand=of_a_database(Pool.ON_DEMAND, 2),
        spot=of_a_database(Pool.SPOT, 1, NodeStatus.DOOMED),
    )
    return replace(result, key=DB)


def of_a_database(
    pool: Pool, count: int, node_status: NodeStatus = NodeStatus.SOUND, spec: int | None = None
) -> TwinView:
    """Return a StatefulSet twin with so many members."""
    first = 0 if pool is Pool.ON_DEMAND else 1000
    members = [
        pod(f"db-{pool}-{k}", node_status, ordinal=first + k, on_spot=pool is Pool.SPOT) for k in range(count)
    ]
    made = twin_of(
        pool, [replica_set(f"db-{pool}-1", spec, members, attachment=Attachment.ATTACHED)], updated=count
    )
    return replace(made, first_ordinal=first, max_surge=0, max_unavailable=1, available_replicas=count)


class TestWhileSplit:
    """A limit holds at every moment: what is there stays, and nobody walks over a tenant's number."""

    def test_placement(self) -> None:
        """Not one member is looked at; the room, the ordinals and the pods stay as they are."""
        result = planned(placed(MOST))
        assert (result.step, result.state, result.verdict.reason) == (
            Step.PLACE,
            State.HELD,
            Reason.TOO_LARGE,
        )
        assert f"it has {MOST} replicas; of a StatefulSet at most 1000" in result.verdict.message
        assert "stays split as it is" in result.verdict.message
        assert result.actions == ()
        assert result.objection == result.verdict

    def test_placement_goes_on_when_it_is_smaller(self) -> None:
        """One less, and the doomed member is born elsewhere."""
        assert planned(placed(1000)).actions

    def test_placement_is_given_back(self) -> None:
        """The Split goes, and that is all there is: no pod is looked at."""
        assert planned(placed(MOST, labelled=False)).actions == (DeleteSplit(),)

    @pytest.mark.parametrize("replicas", [1001, MOST])
    def test_twins_of_a_stateful_set(self, replicas: int) -> None:
        """No twin is raised over what any StatefulSet may have, and nothing is lowered."""
        result = planned(in_twins(replicas))
        assert (result.step, result.state, result.verdict.reason) == (Step.RUN, State.HELD, Reason.TOO_LARGE)
        assert result.actions == ()

    def test_losses_within_the_limits(self) -> None:
        """One that is too large in another way has its losses made up for, as far as it ever would."""
        observed = in_twins(3)
        assert observed.source is not None
        large = replace(observed.source, claims=tuple(map(str, range(51))))
        result = planned(replace(observed, source=large))
        assert result.verdict.reason is Reason.TOO_LARGE
        assert result.actions == (Scale(HolderKind.STATEFUL_SET, "web-on-demand", 2, 3, None),)

    def test_a_new_count_is_followed(self) -> None:
        """That is how it becomes small again; and it costs one write."""
        result = planned(in_twins(5, saved=MOST))
        assert [one for one in result.actions if isinstance(one, SaveReplicas)] == [
            SaveReplicas(5, 5, "rv-web")
        ]

    def test_twins_of_a_stateful_set_are_given_back(self) -> None:
        """The numbers of a hand-over are the same few at any size."""
        result = planned(in_twins(MOST, labelled=False))
        assert result.step is Step.HAND_BACK
        assert result.actions

    def test_a_twin_that_somebody_has_scaled(self) -> None:
        """A twin's own number costs nothing either, and is put back."""
        observed = replace(in_twins(3), spot=of_a_database(Pool.SPOT, 1, spec=MOST))
        scaled = [one for one in planned(observed).actions if isinstance(one, Scale)]
        assert [(one.name, one.was, one.replicas < 10) for one in scaled if one.replicas < one.was] == [
            ("web-spot", MOST, True)
        ]

    def test_a_deployment(self) -> None:
        """Its cover stays, although spot is back since long; a loss is covered all the same."""
        large = source(10, manifest_json=json.dumps({"x": "x" * limits.MAX_MANIFEST_BYTES}))
        rested = observation(large, on_demand=twin(Pool.ON_DEMAND, pods(6)), spot=twin(Pool.SPOT, pods(10)))
        assert lowered(planned(replace(rested, source=source(10))).actions)
        result = planned(rested)
        assert result.verdict.reason is Reason.TOO_LARGE
        assert result.actions == ()
        lost = replace(rested, on_demand=twin(Pool.ON_DEMAND), spot=twin(Pool.SPOT, pods(7, doomed=3)))
        raised = planned(lost).actions
        assert [one.name for one in raised if isinstance(one, Scale)] == ["web-on-demand"]
        assert lowered(raised) == []
