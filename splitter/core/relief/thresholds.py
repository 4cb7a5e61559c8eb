"""Reads thresholds as people write them: `cpu=85,memory=90`."""

import re

from splitter.core.relief.model import Resource, Thresholds

LEAST, MOST = 50, 100
_MAX_CHARACTERS = 64
_QUOTED = 20


def read_thresholds(text: str) -> Thresholds | str:
    """Return the thresholds of a text, or what is wrong with it and what to write instead. Never raises.

    >>> read_thresholds("cpu=85,memory=90").percent[Resource.MEMORY]
    90.0
    >>> read_thresholds("cpu=85,cpu=90")
    'cpu stands there twice; write each once, as in "cpu=85,memory=90"'
    """
    example = 'as in "cpu=85,memory=90"'
    if len(text) > _MAX_CHARACTERS:
        return f"it is longer than {_MAX_CHARACTERS} characters; write percent of a node, {example}"
    percent: dict[Resource, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in set(Resource):
            return f"{_quoted(part.strip())} names neither cpu nor memory; write percent of a node, {example}"
        if not re.fullmatch(r"[0-9]{1,3}", value) or not LEAST <= int(value) <= MOST:
            return f"{name} must be a whole number of {LEAST} to {MOST} percent, {example}"
        if Resource(name) in percent:
            return f"{name} stands there twice; write each once, {example}"
        percent[Resource(name)] = float(value)
    return Thresholds(percent)


def _quoted(text: str) -> str:
    return repr(text[:_QUOTED])
