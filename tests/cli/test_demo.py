"""The verb that says where the demo is."""

import pytest

from splitter.cli.demo import demo
from splitter.cli.exits import MendableError


def test_says_what_to_type() -> None:
    """The demo is part of a checkout."""
    with pytest.raises(MendableError, match="run `make demo`"):
        demo()
