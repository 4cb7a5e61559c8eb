"""What tests of every folder share: one real control plane for the session; properties without a clock."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from splitter.sandbox import Sandbox

# How long one example takes says how busy the machine is, and nothing about the property. And the same code
# is judged the same each time: random examples are for those who look for faults, not for the next change.
_LOOKS = bool({"FUZZ_EXAMPLES", "SPLITTER_EXPLORE"} & os.environ.keys())
settings.register_profile("untimed", deadline=None, derandomize=not _LOOKS)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print) as running:
        yield running
