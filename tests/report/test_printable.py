"""What others wrote moves no cursor, begins no line, and turns no text around."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.report.printable import printable


@pytest.mark.parametrize("text", ["", "scale web-spot 0 -> 1", "grüße…", "日本", "a b"])
def test_what_people_write_stays(text: str) -> None:
    """Letters of every language are shown."""
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\nb", r"a\r\nb"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u2028b", r"a\u2028b"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u00a0b", r"a\xa0b"),
    ],
)
def test_all_else_is_escaped(text: str, shown: str) -> None:
    """What a terminal would obey is shown as Python writes it."""
    assert printable(text) == shown


@given(st.text())
def test_whatever_it_is(text: str) -> None:
    """Nothing is left to be escaped."""
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
