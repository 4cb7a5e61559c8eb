"""Texts of others, for a terminal or a log: nothing in them moves a cursor or begins a line."""


def printable(text: str) -> str:
    r"""Return a text with all escaped that is not printed: controls, ends of lines, marks of direction.

    >>> printable("calm\x1b[2J\nshop/web 4/4")
    'calm\\x1b[2J\\nshop/web 4/4'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
