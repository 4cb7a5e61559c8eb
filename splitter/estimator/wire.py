"""Reads and writes protobuf's wire format, as much of it as Karmada's estimator needs.

A message is a sequence of fields, each a number and either a varint or bytes (docs/adr/0116). A field that
the reader does not ask for is skipped, as protobuf does, so that a newer Karmada is understood. Nothing that
is read is longer than what was sent.
"""

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED_64: 8, _FIXED_32: 4}
_BITS: Final = 64
_LOW: Final = 0x7F


class WireError(ValueError):
    """Bytes are no message, or not the one that was asked for. The message says why."""


class Message:
    """The fields of one message."""

    def __init__(self, raw: bytes) -> None:
        """Raise WireError if the bytes are no message."""
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _fields(raw):
            self._fields.setdefault(number, []).append(value)

    def many(self, number: int) -> list[bytes]:
        """Return a repeated field of bytes. Raises WireError if it is a number."""
        values = self._fields.get(number, [])
        if not all(isinstance(value, bytes) for value in values):
            raise WireError(f"field {number} is a number")
        return [value for value in values if isinstance(value, bytes)]

    def message(self, number: int) -> "Message":
        """Return a message within this one; an empty one if it is not there. Of several the last counts."""
        return Message((self.many(number) or [b""])[-1])

    def text(self, number: int) -> str:
        """Return a text; empty if it is not there."""
        return text_of((self.many(number) or [b""])[-1])

    def number(self, number: int) -> int:
        """Return a signed whole number; 0 if it is not there."""
        value = self._fields.get(number, [0])[-1]
        if isinstance(value, bytes):
            raise WireError(f"field {number} is no number")
        return value - (1 << _BITS) if value >> (_BITS - 1) else value


def text_of(raw: bytes) -> str:
    """Return bytes as text. Raises WireError if they are none."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise WireError("a text is not UTF-8") from None


def number_field(number: int, value: int) -> bytes:
    """Write a field with a whole number, 0 or more.

    >>> number_field(1, 300).hex()
    '08ac02'
    """
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > _LOW:
        written.append(value & _LOW | _LOW + 1)
        value >>= 7
    return bytes([*written, value])


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError("there is no field 0")
        if kind == _VARINT:
            value, at = _read_varint(raw, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _read_varint(raw, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise WireError(f"field {number} has the wire type {kind}")
        if size > len(raw) - at:
            raise WireError(f"field {number} is longer than the message")
        yield number, raw[at : at + size]
        at += size


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _BITS, 7):
        if at >= len(raw):
            raise WireError("the message ends within a number")
        value |= (raw[at] & _LOW) << shift
        at += 1
        if raw[at - 1] <= _LOW:
            return value & (1 << _BITS) - 1, at
    raise WireError("a number has more than 64 bits")
