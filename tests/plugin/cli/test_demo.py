"""The verb that says where the demo is."""

import pytest

from splitter.exits import MendableError
from splitter.plugin.cli.demo import demo


def test_says_what_to_type() -> None:
    """The demo is part of a checkout."""
    with pytest.raises(MendableError, match="run `make demo`"):
        demo()
