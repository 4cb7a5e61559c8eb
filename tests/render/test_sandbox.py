"""A template in the sandbox: values stay aside, nothing is called, and what goes wrong has its line."""

from collections.abc import Iterator

import pytest
from jinja2 import StrictUndefined, UndefinedError

from splitter.render import sandbox
from splitter.render.errors import TemplateError
from splitter.render.sandbox import TOKEN, Environment, plain, run

SOURCE = {"source": {"name": "web", "items": "a label", "n": 3}}


def fault(line: int | None, what: str) -> TemplateError:
    """Return the error of a template without a name."""
    return TemplateError("", "", line, what)


def ran(text: str) -> tuple[str, list[object]]:
    """Return the text with tokens, and the values."""
    return run(Environment().template(text, "a.j2", fault), SOURCE, fault)


def refused(text: str) -> TemplateError:
    """Return what is wrong with a template, when it is read or when it runs."""
    with pytest.raises(TemplateError) as caught:
        ran(text)
    return caught.value


class TestValues:
    def test_stay_aside_in_their_order(self) -> None:
        """The text has a token for each, whatever they hold."""
        text, values = ran("{% for x in [source.name, source, 1] %}[{{ x }}]{% endfor %}")
        assert values == ["web", SOURCE["source"], 1]
        assert [int(number) for number in TOKEN.findall(text)] == [0, 1, 2]
        assert TOKEN.sub("", text) == "[][][]"

    def test_that_look_like_a_token_are_none(self) -> None:
        """Nobody who writes a value can know one: it is drawn anew in each process."""
        assert len(sandbox._NONCE) == 18  # noqa: SLF001 - that it is long is what keeps it from being guessed
        assert TOKEN.fullmatch("v0123456789abcdefn0z") is None

    @pytest.mark.parametrize(
        ("value", "result"),
        [
            ((1, (2,)), [1, [2]]),
            (iter([1]), [1]),
            ({"a": (1,)}, {"a": [1]}),
            (True, True),
            (None, None),
        ],
    )
    def test_are_as_json_knows_them(self, value: object, result: object) -> None:
        """What a filter yields is a list."""
        assert plain(value) == result

    def test_that_json_does_not_know_are_refused(self) -> None:
        """With what it is; what is undefined says so itself, wherever it stands."""
        with pytest.raises(TypeError, match="an expression gives a set, which is not JSON"):
            plain({1})
        with pytest.raises(TypeError, match='"1" is a key and not a text'):
            plain({1: 2})
        with pytest.raises(UndefinedError, match="x"):
            plain([StrictUndefined(name="x")])


class TestWhatMayBeDone:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("{{ source.items }}", ["a label"]),
            ("{{ source['name'] | upper }}", ["WEB"]),
            ("{{ source.n * 2 }}", [6]),
            ("{% if source.other is defined %}{{ 1 }}{% endif %}", []),
            ("{{ source.other | default('x') }}", ["x"]),
            ("{{ [3, 1] | sort | first }}", [1]),
        ],
    )
    def test_is_arithmetic_on_values(self, text: str, values: list[object]) -> None:
        """Keys come before methods: a label may be called as it likes."""
        assert ran(text)[1] == values

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("{{ source.name.upper() }}", "a template calls nothing"),
            ("{{ source.keys() }}", '"keys" is not there (there is: items, n, name)'),
            ("{{ 'x' * 1000000000 }}", "* is for numbers only, and ** for none"),
            ("{{ 2 ** 9 }}", "* is for numbers only"),
            ("{{ source.__class__ }}", '"__class__" is not there'),
            ("{{ ''.__class__.__mro__ }}", "__class__"),
            ("{{ source | random }}", "No filter named 'random'"),
            ("{{ range(9) }}", "'range' is undefined; the variables are source, twin"),
            ("{{ source | merge(source.other) }}", '"other" is not there'),
            ("{{ source | merge({'a': [source.other]}) }}", '"other" is not there'),
            ("{{ 1 / 0 }}", "division by zero"),
        ],
    )
    def test_is_nothing_else(self, text: str, what: str) -> None:
        """Each with its line."""
        error = refused(f"a:\n{text}")
        assert what in error.what
        assert error.line == 2

    @pytest.mark.parametrize("statement", sandbox._FORBIDDEN_STATEMENTS.values())  # noqa: SLF001
    def test_captures_no_text_and_reaches_for_no_file(self, statement: str) -> None:
        """A token within a text that is captured could be taken apart."""
        texts = {
            "{% filter %}": "{% filter upper %}x{% endfilter %}",
            "{% set %} ... {% endset %}": "{% set a %}x{% endset %}",
            "{% macro %}": "{% macro a() %}x{% endmacro %}",
            "{% call %}": "{% call source() %}x{% endcall %}",
            "{% include %}": "{% include 'a' %}",
            "{% import %}": "{% import 'a' as b %}",
            "{% from %}": "{% from 'a' import b %}",
            "{% extends %}": "{% extends 'a' %}",
        }
        assert f"{statement} is not allowed" in refused(texts[statement]).what


class TestFaults:
    def test_of_an_output_that_grows_without_end(self) -> None:
        """It is given up, with no more in memory than may be."""
        pieces = 0

        def endless() -> Iterator[str]:
            nonlocal pieces
            while True:
                pieces += 1
                yield "x" * 65_536

        with pytest.raises(OverflowError, match="more than 1048576 characters"):
            sandbox._joined(endless())  # noqa: SLF001 - a template of that length takes a second
        assert pieces == 17

    def test_of_what_is_nested_too_deeply(self) -> None:
        """It is a fault of the template, and ends nothing."""
        assert "nested too deeply to be read" in refused("{{ " + "(" * 2_000 + "1" + ")" * 2_000 + " }}").what

    def test_names_what_is_there(self) -> None:
        """Twenty keys, and how many more: a source may have thousands."""
        many = {"source": {f"k{number:02}": 1 for number in range(25)}}
        with pytest.raises(TemplateError) as caught:
            run(Environment().template("{{ source.x }}", "a.j2", fault), many, fault)
        assert "(there is: k00, k01, " in caught.value.what
        assert "k19, 5 more)" in caught.value.what
