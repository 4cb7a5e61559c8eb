"""Templates are compiled once a text, and what comes out is of the kind that was asked for."""

import pytest

from splitter.render.errors import TemplateError
from splitter.render.templates import Templates, checked

HEAD = "apiVersion: apps/v1\nkind: Deployment\n"


def fault(line: int | None, what: str) -> TemplateError:
    """Return the error of a template without a name."""
    return TemplateError("", "", line, what)


class TestCompiled:
    def test_once_while_a_file_says_the_same(self) -> None:
        """By its name: another text of the same file is another template."""
        templates = Templates()
        first = templates.compiled("a: 1", "a.j2", fault)
        assert templates.compiled("a: 1", "a.j2", fault) is first
        assert templates.compiled("a: 1", "b.j2", fault) is not first
        assert templates.compiled("a: 2", "a.j2", fault) is not first
        assert templates.compiled("a: 1", "a.j2", fault) is not first, "the last text of a file is kept"

    def test_of_the_files_used_last(self) -> None:
        """64: whoever writes many sets does not fill the memory, and what is in use stays."""
        templates = Templates()
        used = templates.compiled("a: 1", "used.j2", fault)
        once = templates.compiled("a: 1", "once.j2", fault)
        for number in range(63):
            templates.compiled("a: 1", f"{number}.j2", fault)
            assert templates.compiled("a: 1", "used.j2", fault) is used
        assert templates.compiled("a: 1", "once.j2", fault) is not once

    def test_what_is_broken_is_kept_by_nobody(self) -> None:
        """It is a fault each time, and what was there before is there again."""
        templates = Templates()
        for _ in range(2):
            with pytest.raises(TemplateError, match="Jinja2 syntax"):
                templates.compiled("{{", "a.j2", fault)


class TestManifest:
    def test_has_its_values(self) -> None:
        """And is that of the source's kind."""
        made = Templates().manifest(
            f"{HEAD}a: {{{{ source }}}}", "a.j2", "Deployment", {"source": {"b": 1}}, fault
        )
        assert made == {"apiVersion": "apps/v1", "kind": "Deployment", "a": {"b": 1}}

    @pytest.mark.parametrize(
        ("output", "what"),
        [
            (
                {"apiVersion": "apps/v1", "kind": "StatefulSet"},
                '"apps/v1/StatefulSet"; it must be apps/v1/Deployment',
            ),
            ({"apiVersion": "v1", "kind": "Deployment"}, '"v1/Deployment"'),
            ({}, '"None/None"'),
            ([], "the output is a list; it must be one mapping, the manifest of a Deployment"),
            (None, "the output is null"),
        ],
    )
    def test_of_another_kind_is_refused(self, output: object, what: str) -> None:
        """A template makes no Secret."""
        with pytest.raises((TypeError, ValueError)) as caught:
            checked(output, "Deployment")
        assert what in str(caught.value)
