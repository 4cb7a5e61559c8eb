"""Errors that a person reads: what happened, why, and what to do.

`SplitterError` and its subclasses carry a reason word and one sentence. They are raised where an
input is read (settings, annotations, templates, start-up) and shown once, where that person looks.
"""

from typing import Final

from splitter.core.reasons import Reason

UNREADABLE: Final = (ValueError, RecursionError, LookupError, AttributeError, TypeError)
"""What PyYAML raises beside its own errors: for depth, or a tag its value does not suit (`!!bool maybe`)."""


class SplitterError(Exception):
    """A failure with a reason word and a sentence that says what to do.

    >>> str(SplitterError(Reason.FORBIDDEN, "may not list nodes; apply manifests/rbac.yaml"))
    'Forbidden: may not list nodes; apply manifests/rbac.yaml'
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
