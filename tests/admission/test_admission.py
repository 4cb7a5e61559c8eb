"""Policies for the API server: what is in `manifests/admission` is what splitter's tables say today."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from splitter.admission import placement_policy
from splitter.admission.annotations import FORMS
from splitter.bundled import bundled_path
from splitter.cli.admission import Subject, document, policies
from splitter.core.desired.scheduling import NodePresets
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS
from splitter.core.labels_annotations.words import parse_duration
from splitter.settings import Settings

EXPRESSION = {"key": "cheap.example.com/pool", "operator": "Exists"}


class TestManifests:
    @pytest.mark.parametrize("subject", Subject)
    def test_are_what_the_tables_say(self, subject: Subject) -> None:
        """After a change of a table, `make admission` writes them anew."""
        path = bundled_path(f"manifests/admission/{subject}.yaml")
        assert path.read_text(encoding="utf-8") == document(subject, policies(subject, Settings()))

    @pytest.mark.parametrize("subject", Subject)
    def test_let_everything_pass_that_they_cannot_judge(self, subject: Subject) -> None:
        """No user is held up by a policy of splitter's that is broken."""
        result = policies(subject, Settings())
        assert {one["spec"]["failurePolicy"] for one in result[::2]} == {"Ignore"}  # type: ignore[index]
        assert [one["kind"] for one in result[1::2]] == [f"{one['kind']}Binding" for one in result[::2]]

    def test_are_installed_where_every_cluster_takes_them(self) -> None:
        """A MutatingAdmissionPolicy is unknown before Kubernetes 1.36, and who announces ends is optional."""
        [text] = [bundled_path("manifests/kustomization.yaml").read_text(encoding="utf-8")]
        listed = {name for name in yaml.safe_load(text)["resources"] if name.startswith("admission/")}
        there = {f"admission/{path.name}" for path in bundled_path("manifests/admission").iterdir()}
        assert there - listed == {"admission/placement.yaml", "admission/notices.yaml"}


class TestForms:
    """The policy judges by pattern and bounds what the parser reads."""

    def test_every_annotation_has_one(self) -> None:
        """Whatever a user may write is looked at."""
        assert sorted(FORMS) == sorted(USER_ANNOTATIONS)

    @given(st.sampled_from(sorted(FORMS)), st.text() | st.from_regex(r"[0-9]{0,7}[hms]([0-9]{1,7}[ms])?"))
    def test_pattern_and_bounds_are_the_whole_rule(self, key: str, text: str) -> None:
        """Nothing but the pattern and, of a duration, the bounds decides whether a value is read."""
        form = FORMS[key]
        reads = re.fullmatch(form.pattern, text) is not None
        if reads and form.within_s is not None:
            least, most = form.within_s
            seconds = parse_duration(text)
            reads = seconds is not None and least <= seconds <= most
        assert (form.read(text) is not None) == reads


class TestPlacement:
    def test_own_selectors_enter(self) -> None:
        """Nodes that only the settings know are asked for, and kept away from."""
        settings = Settings(spot_selectors=("cheap.example.com/pool",), provider_presets=("oke",))
        text = document(Subject.PLACEMENT, policies(Subject.PLACEMENT, settings))
        # Among the labels to ask by; preferred, if so; kept away from, with and without the user's.
        assert text.count("cheap.example.com/pool") == 1 + 2 + 2
        assert "karpenter.sh/capacity-type" not in text

    def test_without_terms(self) -> None:
        """Nothing that tells spot nodes from others: no policy rather than one that does nothing."""
        with pytest.raises(ValueError, match="nothing tells spot nodes from others"):
            placement_policy(NodePresets((), ({"matchExpressions": [EXPRESSION]},)))

    def test_without_tolerations(self) -> None:
        """A provider that taints nothing needs none."""
        terms = ({"matchExpressions": [EXPRESSION]},)
        [made, _] = placement_policy(NodePresets(terms, terms))
        assert "variables.ownTolerations + dyn([])" in str(made)
