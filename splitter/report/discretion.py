"""Removes values from others' sentences for the log: what happened and where stays.

An API server quotes the value that it refuses, a webhook and a kubelet whatever they like, and Python what it
could not read. In an Event and in a Split that is what the owner needs, and both lie in the namespace of the
workload. The log does not: others read it, and it is kept elsewhere (docs/security.md, "What is said where").
`report.log` asks here for every exception that it is given and for the sentence of each reconcile. Nothing
here knows a cluster; a text of any kind is taken, in time that grows with its length only.
"""

import re
import traceback
from typing import Final

from splitter.report.printable import printable

EXCEPTION_MAX: Final = 1024
_CUT: Final = "…"
_CHAIN: Final = 8

# Who lacks which right, and what splitter's own policies say: no user has written any of it.
_WHOLE: Final = re.compile(
    r'User "[^"]*" cannot [a-z]+ resource "[^"]*" in API group "[^"]*"'
    r'(?: in the namespace "[^"]*"| at the cluster scope)?'
    # The policy on splitter's account is called as the installation, which may have any name.
    r"|ValidatingAdmissionPolicy '(splitter-[a-z-]+|[a-z0-9-]+-own-account)' with binding '\1'"
    r" denied request: [^\"]*"
)
# In this order: what has no end of its own goes to the end, and quotations before what is made of them.
_VALUES: Final = tuple(
    (re.compile(pattern, re.DOTALL), left)
    for pattern, left in (
        (r"(denied (?:the )?request: ).*", rf"\1{_CUT}"),  # the words of a policy or webhook of somebody's
        (r"\bgot &.*", f"got {_CUT}"),  # server-side apply, of a value of the wrong type
        (r"\.\.\.\|.*", _CUT),  # the surroundings of what is wrong in a JSON
        (r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', _CUT),
        (r"(?<!\w)'(?:[^'\\]|\\.)*(?:'(?!\w)|\\?\Z)", _CUT),
        (r"\b((?:Invalid|Unsupported|Duplicate) value: ).*?(?=: |\Z)", rf"\1{_CUT}"),
        (r"\bmap\[.*", f"map[{_CUT}]"),
        (r"\b((?:Not)?In |[GL]t )\([^()]*\)?", rf"\1({_CUT})"),
        (r"://[^/\s@]*@", f"://{_CUT}@"),
    )
)
_ASSIGNED: Final = re.compile(r"=[^\s,;)]+")
_OURS: Final = re.compile(r"splitter\.io/[a-z-]+\Z")
_OURS_MAX: Final = 64


def without_values(sentence: str) -> str:
    """Return a sentence with all cut out that a user may have written.

    >>> without_values('spec.containers[0].image: Invalid value: "secret": must not be empty')
    'spec.containers[0].image: Invalid value: …: must not be empty'
    """
    pieces, at = [], 0
    for whole in _WHOLE.finditer(sentence):
        pieces += [_cut(sentence[at : whole.start()]), whole.group()]
        at = whole.end()
    return "".join([*pieces, _cut(sentence[at:])])


def _cut(text: str) -> str:
    for pattern, left in _VALUES:
        text = pattern.sub(left, text)
    first, last = text.find("{"), text.rfind("}")
    if first >= 0:
        text = f"{text[:first]}{{{_CUT}}}{text[last + 1 :] if last > first else ''}"
    return _ASSIGNED.sub(_assigned, text)


def _assigned(match: re.Match[str]) -> str:
    """Cut what follows an equals sign, but for a label or an annotation of splitter's own."""
    before = match.string[max(0, match.start() - _OURS_MAX) : match.start()]
    return match.group() if _OURS.search(before) else f"={_CUT}"


class WithoutValues:
    """An exception as the log may tell it, wherever a format asks for its words or for itself."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __str__(self) -> str:
        """Return its words without values and on one line, or its type when it has none."""
        name = type(self._error).__name__
        try:
            words = str(self._error)
        except Exception:  # noqa: BLE001 (an exception of whoever wrote it)
            return name
        return printable(without_values(words)[:EXCEPTION_MAX]) or name

    def __repr__(self) -> str:
        """Return its type and its words."""
        return f"{type(self._error).__name__}({self})"


def traceback_of(error: BaseException, links: int = _CHAIN) -> str:
    """Return the traceback of an exception and of those that led to it, their words without values."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = [traceback_of(cause, links - 1), "", "Then:", ""] if cause is not None and links > 0 else []
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    lines += ["Traceback (most recent call last):", *([frames] if frames else [])]
    lines.append(f"{type(error).__name__}: {WithoutValues(error)}")
    if isinstance(error, BaseExceptionGroup) and links > 0:
        lines += [traceback_of(one, links - 1) for one in error.exceptions]
    return "\n".join(lines)
