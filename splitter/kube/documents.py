"""Reads JSON that tenants have written in part: no part can make the whole unreadable.

`client` reads each answer with it, `watch` each line. The parser goes 1,024 levels deep and refuses the whole
text beyond; an API server stores 10,000, in what a kind leaves open. One such object in a list of all
namespaces would blind us to everybody's.
"""

import re
from typing import Any, Final

import orjson

# No object that splitter reads has a third of it. It is looked at only where the parser has given up.
MAX_DEPTH: Final = 100
# Nothing is tried twice, so that a text without an end takes no longer than others.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENS, _CLOSES = frozenset(b"[{"), frozenset(b"]}")


def read_json(text: bytes) -> Any:  # noqa: ANN401 - whatever was sent
    """Parse a JSON text; a value nested too deeply for the parser is null. Raises ValueError.

    >>> read_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(_shallow(text))


def _shallow(text: bytes) -> bytes:
    """Return a JSON text with null for each value that lies deeper than MAX_DEPTH."""
    pieces, kept, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        sign = text[token.start()]
        if sign in _OPENS:
            depth += 1
            if depth == MAX_DEPTH + 1:
                pieces.append(text[kept : token.start()])
        elif sign in _CLOSES:
            if depth == MAX_DEPTH + 1:
                pieces.append(b"null")
                kept = token.end()
            depth -= 1
    if depth > MAX_DEPTH:  # cut off in the middle: for the parser to refuse
        return text
    return b"".join([*pieces, text[kept:]])
