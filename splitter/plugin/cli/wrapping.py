"""Wraps sentences for people, never inside a word: what is copied stays whole."""

import textwrap


def wrapped(text: str, width: int | None, indent: str = "", further: str | None = None) -> list[str]:
    """Return a text as lines of at most `width` columns, where words allow it; without a width as one line.

    `further` is the indent of those behind the first, where it is another.

    >>> wrapped("would scale web-spot 0 -> 1", 20, "  ", "    ")
    ['  would scale', '    web-spot 0 -> 1']
    """
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )
