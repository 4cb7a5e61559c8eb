"""A Split as one reconcile sees it."""

from builders import split


def test_another_version_of_the_same_is_no_news() -> None:
    """A status that was written again changes the resourceVersion, and nothing that is decided by."""
    assert split(resource_version="1") == split(resource_version="2")
