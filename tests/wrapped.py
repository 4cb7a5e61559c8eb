"""Wraps Markdown for readers of the plain text: paragraphs and list items, and nothing else."""

import re

WIDTH = 119
_TARGET = 116
_FENCE = re.compile(r"\s*(```|~~~)")
_KEPT = re.compile(r"\s*(\||#|<|!\[|---|===|!!!|\[[^\]]+\]:)|    ")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
# A code span with the text that touches it, or a word.
_WORD = re.compile(r"(?:[^\s`]*`[^`]+`[^\s`]*)+|\S+")
_MARK = re.compile(r"(?:[-+*]|#+|\d+[.)])")  # at the beginning of a line it would be a list, or a heading


def too_long(text: str) -> list[str]:
    """Return the lines of paragraphs and lists that are too long and can be broken."""
    return [line for line in _prose(text) if len(line) > WIDTH and _wrapped([line]) != [line]]


def _prose(text: str) -> list[str]:
    lines, inside = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            inside = not inside
        elif not inside and not _KEPT.match(line):
            lines.append(line)
    return lines


def wrapped(text: str) -> str:
    """Return the text with each paragraph that has a line too long wrapped anew.

    >>> wrapped("| a table stays | as it is |")
    '| a table stays | as it is |'
    """
    done: list[str] = []
    paragraph: list[str] = []

    def close() -> None:
        long = any(len(line) > WIDTH for line in paragraph)
        done.extend(_wrapped(paragraph) if long else paragraph)
        paragraph.clear()

    inside = False
    for line in text.split("\n"):
        inside ^= bool(_FENCE.match(line))
        if inside or _FENCE.match(line) or not line.strip() or _KEPT.match(line):
            close()
            done.append(line)
            continue
        if _ITEM.match(line):
            close()
        paragraph.append(line)
    close()
    return "\n".join(done)


def _wrapped(lines: list[str]) -> list[str]:
    item = _ITEM.match(lines[0])
    lead = item.group() if item else ""
    text = " ".join([lines[0][len(lead) :], *lines[1:]])
    lines, line = [], lead
    for word in _WORD.findall(text):
        if line == lead or len(line) + 1 + len(word) <= _TARGET or _MARK.fullmatch(word):
            line += word if line.endswith(" ") or not line else f" {word}"
        else:
            lines.append(line)
            line = " " * len(lead) + word
    return [*lines, line]
