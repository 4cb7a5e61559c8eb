"""What is nested too deeply is cut out of an answer, and nothing else of it."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.kube.documents import MAX_DEPTH, read_json

PARSER_DEPTH = 1024  # orjson's own
SERVER_DEPTH = 10_000


def nested(depth: int, opens: str = '{"a":', closes: str = "}") -> str:
    """Return what lies so deep."""
    return opens * depth + "1" + closes * depth


@pytest.mark.parametrize("depth", [PARSER_DEPTH, SERVER_DEPTH, 200_000])
@pytest.mark.parametrize(
    ("opens", "closes"), [('{"a":', "}"), ("[", "]"), ('[{"}":', "}]"), ('{"\\"{":[', "]}")]
)
def test_the_neighbours_of_something_deep_are_read(depth: int, opens: str, closes: str) -> None:
    """One object of a list does not hide the others, and is read but for that."""
    text = f'{{"items": [{{"name": "web"}}, {{"deep": {nested(depth, opens, closes)}, "name": "evil"}}]}}'
    result = read_json(text.encode())
    assert result["items"][0] == {"name": "web"}
    assert result["items"][1]["name"] == "evil"


def test_what_the_parser_takes_is_left_whole() -> None:
    """Nothing is cut that can be read."""
    result = read_json(nested(PARSER_DEPTH - 1).encode())
    for _ in range(PARSER_DEPTH - 1):
        result = result["a"]
    assert result == 1


def test_all_that_lies_less_deep_stays() -> None:
    """The cut is where it has to be."""
    deep = nested(SERVER_DEPTH)
    text = '{"b":2,"a":' * (MAX_DEPTH - 1) + deep + "}" * (MAX_DEPTH - 1)
    result = read_json(text.encode())
    for _ in range(MAX_DEPTH - 1):
        assert result["b"] == 2
        result = result["a"]
    assert result == {"a": None}


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"a"', b"[" * 5000, b'"' + b"\\" * 5001, b"]" * 5000, b"{}}", b'{"a": nul}']
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    """As the parser refuses it, and at once."""
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(-9, 9),
        lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    )
)
def test_beside_something_deep_every_value_is_the_same(value: object) -> None:
    """Texts with braces and quotes in them are texts."""
    text = (
        b'{"deep": ' + nested(PARSER_DEPTH, "[", "]").encode() + b', "value": ' + orjson.dumps(value) + b"}"
    )
    assert read_json(text)["value"] == value
