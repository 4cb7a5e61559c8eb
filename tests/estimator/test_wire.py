"""The wire format of protobuf: what is read, what is skipped, and what is no message."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.requests import IN_1_18, field
from splitter.estimator.wire import Message, WireError, number_field, text_of


def test_reads_what_is_asked_for_and_skips_the_rest() -> None:
    """Fields of other numbers and kinds are a newer Karmada's."""
    fixed = bytes([9 << 3 | 1, *range(8)]) + bytes([10 << 3 | 5, *range(4)])
    message = Message(
        field(1, "m1") + fixed + field(99 % 16, b"\xff") + number_field(2, 300) + field(1, "m2")
    )
    assert (message.text(1), message.number(2)) == ("m2", 300)
    assert (message.text(7), message.number(8), message.many(9)[0]) == ("", 0, bytes(range(8)))
    assert message.message(12).many(1) == []


def test_reads_signed_numbers() -> None:
    """A negative one has ten bytes."""
    assert Message(b"\x18" + b"\xff" * 9 + b"\x01").number(3) == -1
    assert Message(b"\x18" + b"\xff" * 8 + b"\x7f").number(3) == 2**63 - 1


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x08", "ends within a number"),
        (b"\x08\xff", "ends within a number"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than 64 bits"),
        (b"\x0a\x05abcd", "longer than the message"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "longer than the message"),
        (b"\x0d\x00", "longer than the message"),
        (b"\x00\x00", "field 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
    ],
)
def test_refuses_what_is_no_message(raw: bytes, why: str) -> None:
    """Truncated, with a length that is huge, with a kind that there is not."""
    with pytest.raises(WireError, match=why):
        Message(raw)


def test_refuses_a_field_of_another_kind() -> None:
    """A number is no text, a text no number, and not all bytes are one."""
    message = Message(number_field(1, 5) + field(2, b"\xff"))
    with pytest.raises(WireError, match="field 1 is a number"):
        message.text(1)
    with pytest.raises(WireError, match="field 2 is no number"):
        message.number(2)
    with pytest.raises(WireError, match="UTF-8"):
        text_of(message.many(2)[0])


@given(st.integers(0, 2**63 - 1))
def test_reads_what_it_writes(value: int) -> None:
    """Any whole number."""
    assert Message(number_field(1, value)).number(1) == value


@given(st.binary(max_size=64) | st.integers(0, 400).map(lambda cut: bytes.fromhex(IN_1_18)[:cut]))
def test_any_bytes_are_a_message_or_none(raw: bytes) -> None:
    """They are a message, or a WireError tells why not; a message with a cut field behind it is none."""
    with suppress(WireError):
        Message(raw)
        with pytest.raises(WireError):
            Message(raw + b"\x0a\x05a")
