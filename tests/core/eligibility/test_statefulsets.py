"""Which StatefulSets are refused: each says which field or who, and what to change."""

from dataclasses import replace
from typing import Any

import pytest

from builders import observation
from core.statefulset.databases import TWINS, database, stateful
from splitter.core.eligibility import advice, objection_while_split, refusal
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import RelatedObjects
from splitter.core.reasons import Reason
from splitter.core.replica import Pool


class TestRefusals:
    """Each says which field or who, and what to change; nothing was scaled."""

    def test_a_plain_one_is_eligible(self) -> None:
        """Asked to be split into twins, it is."""
        assert refusal(observation(), database(), TWINS, ()) is None

    def test_it_has_to_be_asked_for(self) -> None:
        """Twins give its pods other names, so nobody gets them unasked: it is placed, or refused."""
        assert refusal(observation(), database(), Policy(), ()) is None
        around = RelatedObjects(unplaceable="there is no policy")
        refused = refusal(observation(related=around), database(), Policy(), ())
        assert refused is not None
        assert (refused.reason, refused.message) == (Reason.PLACEMENT_UNSUPPORTED, "there is no policy")

    @pytest.mark.parametrize(
        ("fields", "reason", "remedy"),
        [
            ({"on_delete": True}, Reason.STRATEGY_ON_DELETE, "spec.updateStrategy.type to RollingUpdate"),
            ({"deletes_claims": True}, Reason.VOLUMES_DELETED_WHEN_SCALED, "whenScaled to Retain"),
            ({"claim_templates": ("data", "log")}, Reason.VOLUMES_NOT_SHARED, "volumes=disposable"),
            ({"declared_by": "argocd-controller"}, Reason.REPLICAS_IN_GIT, "scale the Split db-sts"),
        ],
    )
    def test_is_refused_with_a_remedy(self, fields: dict[str, Any], reason: Reason, remedy: str) -> None:
        """The sentence says what to do."""
        refused = refusal(observation(), database(stateful(**fields)), TWINS, ())
        assert refused is not None
        assert refused.reason is reason
        assert remedy in refused.message
        assert refused.warning

    def test_the_manager_and_the_claims_are_named(self) -> None:
        """Whoever reads it knows where to look."""
        git = refusal(observation(), database(stateful(declared_by="kustomize-controller")), TWINS, ())
        claims = refusal(observation(), database(stateful(claim_templates=("data",))), TWINS, ())
        assert git is not None
        assert "kustomize-controller" in git.message
        assert claims is not None
        assert "volumeClaimTemplates (data)" in claims.message

    def test_disposable_volumes(self) -> None:
        """Declared so, they are no obstacle; deleting them with a scale-down still is."""
        policy = replace(TWINS, disposable_volumes=True)
        assert refusal(observation(), database(stateful(claim_templates=("tmp",))), policy, ()) is None
        deletes = database(stateful(claim_templates=("tmp",), deletes_claims=True))
        refused = refusal(observation(), deletes, policy, ())
        assert refused is not None
        assert refused.reason is Reason.VOLUMES_DELETED_WHEN_SCALED

    def test_a_claim_of_somebody_else(self) -> None:
        """Before anything is made, and told while it is split, as is `whenScaled: Delete`."""
        policy = replace(TWINS, disposable_volumes=True)
        around = RelatedObjects(taken_claims={Pool.ON_DEMAND: (0, "tmp-db-on-demand-0")})
        seen = observation(related=around)
        for one in (
            refusal(seen, database(stateful(claim_templates=("tmp",))), policy, ()),
            objection_while_split(seen, database(stateful(0, saved=5)), policy),
        ):
            assert one is not None
            assert (one.reason, one.warning) == (Reason.CLAIM_NAME_TAKEN, True)
            assert "tmp-db-on-demand-0 exists and is not splitter's" in one.message
        deletes = database(stateful(0, saved=5, deletes_claims=True))
        set_since = objection_while_split(observation(), deletes, policy)
        assert set_since is not None
        assert set_since.reason is Reason.VOLUMES_DELETED_WHEN_SCALED

    @pytest.mark.parametrize(
        ("who", "remedy"),
        [
            ("HorizontalPodAutoscaler/db", "kind Split, name db-sts"),
            ("ScaledObject/db", "kind Split, name db-sts"),
            ("VerticalPodAutoscaler/db", "set its updateMode to Off"),
        ],
    )
    def test_autoscalers(self, who: str, remedy: str) -> None:
        """At 0 one of its count stops, and one of its pods finds none."""
        refused = refusal(observation(related=RelatedObjects(scaled_by=who)), database(), TWINS, ())
        assert refused is not None
        assert refused.reason is Reason.AUTOSCALER_ON_SOURCE
        assert who in refused.message
        assert remedy in refused.message

    def test_a_split_of_that_name(self) -> None:
        """A Deployment db-sts has it: nothing is written over it."""
        around = RelatedObjects(split_of="Deployment/db-sts")
        refused = refusal(observation(related=around, split=None), database(), TWINS, ())
        assert refused is not None
        assert refused.reason is Reason.SPLIT_NAME_TAKEN

    def test_its_peers_are_told(self) -> None:
        """The Event at the take-over has the old and the new names."""
        [said] = advice(observation(), database(stateful(first_ordinal=1)))
        assert said.reason is Reason.IDENTITIES_CHANGE
        assert "db-1.db becomes db-on-demand-1.db or db-spot-1001.db" in said.message
