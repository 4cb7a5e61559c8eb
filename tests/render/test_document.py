"""A rendered text as a manifest: strict YAML, and values that never decide what a line means."""

import pytest

from splitter.render.document import json_kind, parse, with_values
from splitter.render.errors import TemplateError
from splitter.render.sandbox import TOKEN

# As `sandbox` writes it, for the value of this number.
TOKEN_OF = TOKEN.pattern.replace(r"(\d+)", "{}").format


def fault(line: int | None, what: str) -> TemplateError:
    """Return the error of a template without a name."""
    return TemplateError("", "", line, what)


def refused(text: str, template: str = "") -> TemplateError:
    """Return what is wrong with a text."""
    with pytest.raises(TemplateError) as caught:
        parse(text, template, fault)
    return caught.value


class TestText:
    def test_is_what_json_knows(self) -> None:
        """`on`, a date and an octal number are texts; only JSON's own words and numbers are more."""
        text = (
            "{a: on, b: 2026-01-31, c: 0o7, d: 010, e: ~, f: true, g: -1, h: 1.5e3, i: .inf, j: '1', k: True}"
        )
        assert parse(text, "", fault) == {
            "a": "on",
            "b": "2026-01-31",
            "c": "0o7",
            "d": "010",
            "e": None,
            "f": True,
            "g": -1,
            "h": 1500.0,
            "i": ".inf",
            "j": "1",
            "k": "True",
        }

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("a: &b [1]\nc: *b", "an alias (*) is not allowed"),
            ("a: {b: 1, b: 2}", "the key b is there twice"),
            ("[a]: 1", "a key is a list or a mapping; only a text can be one"),
            ("a: 1\n--- \nb: 2", "expected a single document in the stream, but found another document"),
            ("a: !!bool maybe", "the output is not YAML: 'maybe'"),
            ("a: !!int ''", "the output is not YAML: string index out of range"),
            ("a: !!timestamp x", "the output is not YAML: "),
            ("a: !!set [x]", "the output is not YAML: "),
            ("a: !!python/name:os.system x", "could not determine a constructor"),
            (f"a: {'9' * 5_000}", "the output is not YAML: Exceeds the limit"),
            ("a: \x00", "the output is not YAML: "),
        ],
    )
    def test_is_refused(self, text: str, what: str) -> None:
        """One document, no anchors, keys once; and no tag makes it anything else."""
        assert what in refused(text).what

    def test_names_the_line_of_the_template(self) -> None:
        """The one that looks like the line of the output; the token of a value is not shown."""
        template = "kind: Deployment\nspec:\n  a: {{ source.a }}: b\n"
        error = refused(f"kind: Deployment\nspec:\n  a: {TOKEN_OF(0)}: b\n", template)
        assert error.line == 3
        assert error.what.endswith(': "a: {{ }}: b"')
        assert refused("a: b: c", "something: else").line is None


class TestValues:
    def test_stand_where_their_tokens_stood(self) -> None:
        """Whole they keep their kind, within a text they are written out, and keys are texts."""
        values: list[object] = [{"x": 1}, "web", 1.0, True, "key"]
        whole, name, number, truth, key = map(TOKEN_OF, range(5))
        node = {"a": [whole], "b": f"{name}-{number}-{truth}", key: None}
        assert with_values(node, values) == {"a": [{"x": 1}], "b": "web-1.0-true", "key": None}

    def test_are_not_looked_into(self) -> None:
        """What a value says of a token is its own text."""
        values: list[object] = [TOKEN_OF(1), "secret"]
        assert with_values({"a": TOKEN_OF(0)}, values) == {"a": TOKEN_OF(1)}

    @pytest.mark.parametrize(
        ("node", "what"),
        [
            ({"a": [f"{TOKEN_OF(0)}-x"]}, r"a\[0\] has a mapping within a text"),
            ({"a": {TOKEN_OF(0): 1}}, "a has a key that is a mapping; keys are texts"),
            ({True: 1}, "the output has a key that is a number or boolean"),
            ({"b": {"x": 1, TOKEN_OF(1): 2}}, 'b has the key "x" twice'),
            ({"a": {"b": b"x"}}, "a.b is a bytes, which JSON does not know"),
            ({"a": [{"x"}]}, r"a\[0\] is a set"),
        ],
    )
    def test_that_do_not_fit_are_refused(self, node: object, what: str) -> None:
        """With the place in the manifest."""
        with pytest.raises((TypeError, ValueError), match=what):
            with_values(node, [{}, "x"])


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), ({}, "a mapping"), ([], "a list"), ("", "a text"), (0, "a number or boolean")],
)
def test_kinds_are_those_of_json(value: object, kind: str) -> None:
    """As a message names them."""
    assert json_kind(value) == kind
