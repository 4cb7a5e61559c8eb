"""What stands in the way of splitting a Deployment, with what to do."""

import json
from dataclasses import replace
from typing import Any

import pytest

from builders import free_source, observation, replica_set
from splitter.core.eligibility import objection_while_split, refusal
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import MAX_REPLICA_SETS
from splitter.core.model import Attachment
from splitter.core.reasons import Reason


@pytest.mark.parametrize(
    ("fields", "reason", "remedy"),
    [
        ({"controller": "Shop/web"}, Reason.OWNED_BY_CONTROLLER, "split what that controller creates"),
        ({"paused": True}, Reason.ALREADY_PAUSED, "kubectl rollout resume"),
        ({"unpaused_by_manifest": "Argo CD"}, Reason.UNPAUSED_BY_MANIFEST, "remove that line"),
        ({"recreate": True}, Reason.STRATEGY_RECREATE, "set spec.strategy.type to RollingUpdate"),
        ({"releasable": False}, Reason.SELECTOR_NOT_RELEASABLE, "re-create the Deployment"),
    ],
)
def test_is_refused_with_a_remedy(fields: dict[str, Any], reason: Reason, remedy: str) -> None:
    """The sentence says what to do."""
    refused = refusal(observation(), free_source(**fields), Policy(), ())
    assert refused is not None
    assert refused.reason is reason
    assert remedy in refused.message
    assert refused.warning


class TestPodsThatNobodyCouldTellApart:
    """Running pods change their owner by their labels: what is in the way is refused at once."""

    @pytest.mark.parametrize("label", ["splitter.io/pool", "splitter.io/source", "pod-template-hash"])
    def test_a_label_that_is_taken(self, label: str) -> None:
        """By the selector or the pod template; the sentence names it."""
        refused = refusal(observation(), free_source(pod_labels=("app", label)), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.SELECTOR_NOT_RELEASABLE
        assert label in refused.message

    @pytest.mark.parametrize("label", ["splitter.io/split", "splitter.io/pool", "splitter.io/of-no-version"])
    @pytest.mark.parametrize(
        ("selected", "templated", "place", "created_again"),
        [
            (True, True, "(spec.selector and spec.template.metadata.labels)", True),
            (False, True, "(spec.template.metadata.labels)", False),
            (True, False, "(spec.selector)", True),
        ],
    )
    def test_a_label_by_common_labels(
        self, label: str, selected: bool, templated: bool, place: str, created_again: bool
    ) -> None:
        """Whatever it is called and wherever it is: refused before anything is written, with the place."""
        labels = {"app": "web"}
        spec = {"template": {"metadata": {"labels": labels | ({label: "x"} if templated else {})}}}
        made = free_source(
            pod_labels=("app", label),
            selector_keys=("app", label) if selected else ("app",),
            manifest_json=json.dumps({"spec": spec}),
        )
        refused = refusal(observation(), made, Policy(), ())
        assert refused is not None
        assert f"have the label {label} {place}" in refused.message
        assert ("create it again" in refused.message) is created_again
        assert "keep it in metadata.labels alone" in refused.message
        assert "commonLabels" in refused.message

    def test_a_label_that_comes_while_it_is_split(self) -> None:
        """It stays split, and its Split says what is wrong."""
        made = free_source(pod_labels=("app", "splitter.io/split"))
        said = objection_while_split(observation(), made, Policy())
        assert said is not None
        assert "splitter.io/split" in said.message

    def test_a_replica_set_that_was_adopted_by_hand(self) -> None:
        """It does not select its pods by their hash; a restart makes one that does."""
        own = replace(replica_set("mine", 2, attachment=Attachment.ATTACHED), hashes=())
        refused = refusal(observation(sets=[own]), free_source(), Policy(), ())
        assert refused is not None
        assert refused.reason is Reason.SELECTOR_NOT_RELEASABLE
        assert "mine" in refused.message

    def test_an_old_one_without_pods(self) -> None:
        """Is parked as it is."""
        own = replace(replica_set("mine", 0, attachment=Attachment.ATTACHED), hashes=())
        assert refusal(observation(sets=[own]), free_source(), Policy(), ()) is None


class TestReplicaSets:
    @pytest.mark.parametrize(("count", "refused"), [(MAX_REPLICA_SETS, False), (MAX_REPLICA_SETS + 1, True)])
    def test_may_be_too_many(self, *, count: int, refused: bool) -> None:
        """Each is parked and given back by itself."""
        old = [replica_set(f"web-{number}", 0) for number in range(count)]
        said = refusal(observation(sets=old), free_source(), Policy(), ())
        assert (said is not None and said.reason is Reason.TOO_LARGE) is refused
