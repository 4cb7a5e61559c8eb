"""Policies for the API server: what is in `manifests/admission` is what splitter's tables say today."""

import pytest
import yaml

from splitter.bundled import bundled_path
from splitter.plugin.cli.admission import Subject, document, policies
from splitter.settings import Settings


class TestManifests:
    @pytest.mark.parametrize("subject", Subject)
    def test_are_what_the_tables_say(self, subject: Subject) -> None:
        """After a change of a table, `make admission` writes them anew."""
        path = bundled_path(f"manifests/admission/{subject}.yaml")
        assert path.read_text(encoding="utf-8") == document(subject, policies(subject, Settings()))

    @pytest.mark.parametrize("subject", Subject)
    def test_let_everything_pass_that_they_cannot_judge(self, subject: Subject) -> None:
        """No user is held up by a policy of splitter's that is broken; an Event that is believed may be."""
        result = policies(subject, Settings())
        expected = "Fail" if subject is Subject.NOTICES else "Ignore"
        assert {one["spec"]["failurePolicy"] for one in result[::2]} == {expected}  # type: ignore[index]
        assert [one["kind"] for one in result[1::2]] == [f"{one['kind']}Binding" for one in result[::2]]

    def test_are_installed_where_every_cluster_takes_them(self) -> None:
        """A MutatingAdmissionPolicy is unknown before Kubernetes 1.36, and who announces ends is optional."""
        [text] = [bundled_path("manifests/kustomization.yaml").read_text(encoding="utf-8")]
        listed = {name for name in yaml.safe_load(text)["resources"] if name.startswith("admission/")}
        there = {f"admission/{path.name}" for path in bundled_path("manifests/admission").iterdir()}
        assert there - listed == {
            f"admission/{name}.yaml" for name in ("placement", "notices", "keep-paused")
        }
