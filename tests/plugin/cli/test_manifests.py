"""Manifests as people write them: documents, Lists, lines; and what is no manifest is said with its line."""

import re

import pytest

from splitter.plugin.cli.manifests import read_documents

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
ANNOTATED = """\
kind: Deployment
metadata:
  name: web
  annotations:
    splitter.io/on-demand-base: "2"
    splitter.io/spot-percent: "80"
"""


class TestDocuments:
    def test_know_their_lines(self) -> None:
        """Where a document and its annotations stand, behind others and empty ones."""
        service, deployment = read_documents(f"---\n{SERVICE}---\n---\n{ANNOTATED}", "web.yaml")
        assert (service.title, service.line, service.lines) == ("Service web", 2, {})
        assert (deployment.title, deployment.line) == ("Deployment web", 7)
        assert deployment.lines == {"splitter.io/on-demand-base": 11, "splitter.io/spot-percent": 12}

    def test_of_lists_are_single(self) -> None:
        """A List in a List too; each item has its own line, and its own manifest."""
        text = (
            "kind: List\nitems:\n- kind: DeploymentList\n  items:\n"
            "  - {kind: Deployment, metadata: {name: a}}\n- kind: Secret\n"
        )
        documents = read_documents(text, "web.yaml")
        assert [(one.title, one.line) for one in documents] == [("Deployment a", 5), ("Secret", 6)]
        assert documents[0].manifest == {"kind": "Deployment", "metadata": {"name": "a"}}

    def test_items_of_another_kind_are_its_own(self) -> None:
        """A ConfigMap projection has `items` as well."""
        [only] = read_documents("kind: Projection\nitems: [{key: a}]\n", "web.yaml")
        assert only.manifest["items"] == [{"key": "a"}]

    def test_have_no_dates(self) -> None:
        """A date is a text, as for kubectl; numbers and booleans are what they are."""
        [only] = read_documents("a: 2026-01-31\nb: 2026-01-31T10:00:00Z\nc: 1\nd: true\n", "web.yaml")
        assert only.manifest == {"a": "2026-01-31", "b": "2026-01-31T10:00:00Z", "c": 1, "d": True}

    @pytest.mark.parametrize("text", ["a: 1\n", "metadata: [x]\n", "metadata: {annotations: x}\n"])
    def test_without_a_kind_or_name_have_a_title(self, text: str) -> None:
        """For messages."""
        [only] = read_documents(text, "web.yaml")
        assert (only.title, only.lines) == ("no kind", {})

    def test_are_none_in_an_empty_file(self) -> None:
        """Nor where there are comments only."""
        assert read_documents("# nothing\n---\n", "web.yaml") == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (f"{SERVICE}---\n- a\n", "web.yaml, line 5: this is no manifest; it must be one mapping"),
            ("kind: List\nitems:\n- a\n", "web.yaml, line 3: this is no manifest; it must be one mapping"),
            ("a: [\n", "web.yaml, line 2: this is no YAML: while parsing a flow node"),
            ("a: *b\n", "web.yaml, line 1: this is no YAML: found undefined alias"),
            (
                "[a]: 1\n",
                "web.yaml, line 1: this is no YAML: while constructing a mapping, found unhashable key",
            ),
            ("a: \x00", "web.yaml: this is no YAML: "),
            ("&a {kind: List, items: [*a]}", "web.yaml: this is no YAML: maximum recursion depth"),
        ],
    )
    def test_say_where(self, text: str, sentence: str) -> None:
        """The file, the line where it is known, and why."""
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            read_documents(text, "web.yaml")

    @pytest.mark.parametrize(
        "value", ["!!bool maybe", "!!int ''", "!!float ''", "!!timestamp x", "!!int x", "!!set [x]"]
    )
    def test_of_a_tag_that_does_not_suit_are_no_traceback(self, value: str) -> None:
        """PyYAML raises whatever its converters stumble over."""
        with pytest.raises(ValueError, match=r"web\.yaml.*: this is no YAML"):
            read_documents(f"a: {value}\n", "web.yaml")
