"""YAML as kubectl reads and writes it; the table was asked of sigs.k8s.io/yaml 1.6.0, word by word."""

import re
from math import isinf

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from splitter.plugin.cli.dialect import Loader, meaning, written

NUMBERS = {
    "0o17": 15,
    "017": 15,
    "0O17": 15,
    "-017": -15,
    "089": 89,
    "08": 8,
    "0x1F": 31,
    "-0x1f": -31,
    "0b101": 5,
    "1_000": 1000,
    "1__0": 10,
    "1000_": 1000,
    "0x_1f": 31,
    "1_0.5_0": 10.5,
    "-_1": -1,
    "0_": 0,
    "+12": 12,
    "1e3": 1000,
    "81111e1": 811110,
    "1E3": 1000,
    "1e+3": 1000,
    "1.e3": 1000,
    ".5": 0.5,
    "5.": 5,
    "+.5": 0.5,
    "0222e04": 2220000,
    "00e1": 0,
    "1e1_0": 10_000_000_000,
    ".1_0": 0.1,
    "-._1": -0.1,
    "1.10": 1.1,
    "-0": 0,
    "9223372036854775808": 9223372036854775808,
    "18446744073709551616": 18446744073709551616,
}
TEXTS = (
    *(
        "yEs",
        "oN",
        "tRue",
        "nUll",
        "=",
        "12:30",
        "1:2:3",
        "190:20:30.15",
        "-1:30",
        "_1000",
        "1e",
        "1e+",
        ".e3",
    ),
    *(
        ".e3",
        "0x",
        "0xg",
        "0b",
        "0b2",
        "0o8",
        "1e400",
        "Inf",
        "inf",
        "NaN",
        "-.nan",
        "Infinity",
        "0x1p3",
        "1,000",
    ),
    *("2001-01-01", "2001-01-01T10:00:00Z", "+", ".", "..", "\u0661", "._1", "1.2.3", "<<"),
)
TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
ENDLESS = (".inf", ".Inf", "-.INF", "+.inf", ".nan", ".NaN", ".NAN")

# The same rules once more, as one expression over a word without underscores: what is no text.
NO_TEXT = re.compile(
    r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO][0-7]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))"
    r"|~|\.(?:nan|NaN|NAN)|null|Null|NULL|" + "|".join((*TRUE, *FALSE)),
    re.ASCII,
)
WORDS = st.one_of(
    st.text("0123456789eE+-._xXobB", max_size=8),
    st.text("0123456789eE+-._xobyYnNfF:=~<>#'\" &*!|%@,[]{}?\\\t\n\x85\u2028é", max_size=10),
    st.text(max_size=10).filter(lambda text: text.isprintable()),
    st.sampled_from((*NUMBERS, *TEXTS, *TRUE, *FALSE, *ENDLESS, "null", "~", "")),
)


def read(text: str) -> object:
    """Return what kubectl would read."""
    return yaml.load(text, Loader)  # noqa: S506 (a safe one)


def is_no_text(word: str) -> bool:
    """Whether a plain word is anything but a text, by the other writing of the rules."""
    between_digits = "(?<=[0-9])_(?=[0-9])"
    bare = word.replace("_", "") if word[:1] in set("+-0123456789") else re.sub(between_digits, "", word)
    if word and NO_TEXT.fullmatch(bare) is None:
        return False
    return not re.fullmatch(r"[-+]?[0-9.]+[eE]\+?[0-9]+", bare) or not isinf(float(bare))


class TestMeaning:
    @pytest.mark.parametrize(("word", "value"), NUMBERS.items())
    def test_of_a_number(self, word: str, value: float) -> None:
        """A float without a fraction is an integer, as JSON writes it."""
        assert meaning(word) == value
        assert isinstance(meaning(word), type(value))

    @pytest.mark.parametrize("word", TEXTS)
    def test_of_a_text(self, word: str) -> None:
        """Times, dates, and what merely looks like a number."""
        assert meaning(word) == word

    def test_of_the_other_words(self) -> None:
        """Booleans in eleven spellings each, and null."""
        assert [meaning(word) for word in TRUE] == [True] * len(TRUE)
        assert [meaning(word) for word in FALSE] == [False] * len(FALSE)
        assert [meaning(word) for word in ("", "~", "null", "Null", "NULL")] == [None] * 5

    @pytest.mark.parametrize("word", ENDLESS)
    def test_of_what_json_does_not_know(self, word: str) -> None:
        """It is refused, as kubectl does, with what to do."""
        with pytest.raises(ValueError, match="put it in quotes"):
            meaning(word)


class TestLoader:
    def test_keys_are_texts(self) -> None:
        """As in JSON: `on: ` in a workflow is the key `true`."""
        assert read("on: a\n0x10: b\n1.5: c\n") == {"true": "a", "16": "b", "1.5": "c"}
        with pytest.raises(yaml.MarkedYAMLError, match="a key is null"):
            read("~: a\n")

    def test_merges(self) -> None:
        """A merge key merges, and is a text elsewhere."""
        merged = read("a: &x {b: 1}\nc:\n  <<: *x\n  d: <<\n")
        assert merged == {"a": {"b": 1}, "c": {"b": 1, "d": "<<"}}

    def test_quoted_words_are_texts(self) -> None:
        """Whatever they look like."""
        assert read("""[ "y", '1e3', !!str off, "" ]""") == ["y", "1e3", "off", ""]


@given(WORDS)
@example("y")
@example("81111e1")
@example("a\x85b")
def test_what_is_written_is_read_back(text: str) -> None:
    """As a value and as a key, also by other rules than ours: what has no quotes is a text to all."""
    made = written({"a": [text], f"{text}": 1})
    assert read(made) == yaml.safe_load(made) == {"a": [text], f"{text}": 1}
    node = yaml.compose(made, yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    words = [node.value[0][1].value[0], node.value[-1][0]] if len(node.value) == 2 else []
    for word in words:
        assert word.style is not None or not is_no_text(str(word.value))
