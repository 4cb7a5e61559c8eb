"""What stands in the way of splitting by placement: a template that decides itself, and volumes."""

import json
from typing import Any

import pytest

from builders import NOW, observation, source, split
from splitter.core.eligibility.placement import CHECKS, advice, why_unplaceable
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, RelatedObjects, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.placeable import Reach
from splitter.core.reasons import Reason
from splitter.core.stateful import StatefulView

STUCK = Reach(on_demand=False, why="volume v can be attached in zone b only")
FREE = Reach(on_demand=True, why="")


def db(replicas: int = 5, template: dict[str, Any] | None = None, first: int = 0) -> SourceView:
    """Return a StatefulSet `db`."""
    manifest = json.dumps({"spec": {"template": template or {}}})
    own = StatefulView(replicas, replicas, replicas, NOW, first_ordinal=first)
    return source(replicas, key=Key(STATEFUL_SET, "shop", "db"), manifest_json=manifest, stateful=own)


def objection(of: SourceView, base: int = 2, **related: Any) -> Note | None:  # noqa: ANN401 - a field of any kind
    """Return the first objection."""
    seen, policy = observation(of, related=RelatedObjects(**related)), Policy(on_demand_base=base)
    return next((said for check in CHECKS if (said := check(seen, of, policy)) is not None), None)


class TestTemplate:
    @pytest.mark.parametrize(
        ("template", "why"),
        [
            ({"metadata": {"labels": {"splitter.io/pool": "spot"}}}, "remove it from spec.template.metadata"),
            (
                {"spec": {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}},
                "asks for spot nodes (karpenter.sh/capacity-type in nodeSelector)",
            ),
            ({"spec": {"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"}}}, ""),
            ({"spec": {"nodeSelector": {"disk": "ssd", "odd": 5}}}, ""),
            ({"metadata": {"labels": {"app": "db"}}}, ""),
            ({}, ""),
        ],
    )
    def test_that_decides_itself_is_refused(self, template: dict[str, Any], why: str) -> None:
        """The policy would not place its pods, or none could be on on-demand."""
        said = objection(db(template=template))
        assert (said is not None and said.reason is Reason.PLACEMENT_UNSUPPORTED) is bool(why)
        assert said is None or why in said.message

    def test_after_what_the_cluster_lacks(self) -> None:
        """Without the policy in the API server nothing is placed at all."""
        labelled = db(template={"metadata": {"labels": {"splitter.io/pool": "spot"}}})
        seen = observation(labelled, related=RelatedObjects(unplaceable="the policy is not installed"))
        assert why_unplaceable(seen, labelled) == "the policy is not installed"


class TestVolumes:
    def test_of_all_members_elsewhere_are_refused(self) -> None:
        """Then not one can be on on-demand; with the first one's cause."""
        said = objection(db(3), reach=dict.fromkeys(range(3), STUCK))
        assert said is not None
        assert said.reason is Reason.VOLUME_ZONE_CONFLICT
        assert said.message.startswith(
            "2 of its 3 pods are wanted on on-demand, and none can be there: volume v"
        )

    @pytest.mark.parametrize(
        ("base", "reach"),
        [
            (2, {0: STUCK, 1: STUCK, 2: FREE}),
            (2, {0: STUCK, 1: STUCK}),  # of the third nothing is known
            (0, dict.fromkeys(range(3), STUCK)),
            (2, dict.fromkeys(range(5, 8), STUCK)),  # of members that are none any more
        ],
    )
    def test_of_some_are_a_matter_of_advice(self, base: int, reach: dict[int, Reach]) -> None:
        """Nor do they matter where none is wanted on on-demand."""
        assert objection(db(3), base, reach=reach) is None


class TestAdvice:
    def test_names_who_stays(self) -> None:
        """Of the members that there are, lowest first; one Event each."""
        of = db(3, first=5)
        reach = {7: STUCK, 5: STUCK, 6: FREE, 4: STUCK, 8: STUCK}
        said = advice(observation(of, related=RelatedObjects(reach=reach)), of)
        assert [(note.about, note.message) for note in said] == [
            ("db-5", "db-5 is not moved: volume v can be attached in zone b only"),
            ("db-7", "db-7 is not moved: volume v can be attached in zone b only"),
        ]

    @pytest.mark.parametrize(("replicas", "few"), [(0, False), (1, True), (2, True), (3, False)])
    def test_says_where_they_are_too_few(self, replicas: int, few: bool) -> None:
        """With one or two no majority is left while one restarts; of none nothing is said."""
        of = db(replicas)
        assert [note.reason for note in advice(observation(of), of)] == [Reason.QUORUM_HELD] * few


class TestScaledInVain:
    @pytest.mark.parametrize(("asked", "said"), [(7, True), (5, False), (None, False)])
    def test_who_scales_the_split_is_told(self, asked: int | None, said: bool) -> None:
        """An autoscaler of the days as twins would be obeyed by nobody, and nobody would know."""
        seen = observation(db(), split=split(ordinals=(0, 1, 2), replicas=asked))
        notes = [one for one in advice(seen, db()) if one.reason is Reason.FOREIGN_WRITE]
        assert bool(notes) is said
        assert all("db-sts was scaled to 7, which does nothing" in one.message for one in notes)
