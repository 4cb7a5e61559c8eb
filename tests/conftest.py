"""What tests of every folder share: one real control plane for the session; properties without a clock."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from splitter.sandbox import Sandbox

# How long one example takes says how busy the machine is, and nothing about the property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print) as running:
        yield running
