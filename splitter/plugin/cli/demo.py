"""`splitter demo`: says where the demo is."""

from splitter.exits import MendableError


def demo() -> None:
    """Say how to run the demo.

    It builds a control plane of its own, so it is part of a checkout of splitter and not of the command.
    """
    raise MendableError(
        "the demo builds a control plane of its own, and is part of a checkout of splitter: run `make demo`"
        " there"
    )
