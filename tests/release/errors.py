"""What stops a release: one sentence that says what to do."""


class ReleaseError(Exception):
    """A release is refused, or cannot be built; nothing has been changed."""
