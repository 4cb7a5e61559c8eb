"""What end-to-end tests of every folder share: one real control plane for the whole session."""

from collections.abc import Iterator

import pytest

from splitter.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print) as running:
        yield running
