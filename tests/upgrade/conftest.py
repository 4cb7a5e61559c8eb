"""A cluster with nothing of splitter's in it, and what is installed there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.sandbox import Sandbox
from lab.upgrade.versions import Installation


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[tuple[Sandbox, Installation]]:
    """Yield a cluster and the installation; nothing is installed yet."""
    with Sandbox.start(progress=print) as sandbox:
        sandbox.fleet.add("on-demand", 4)
        sandbox.fleet.add("spot", 4)
        installation = Installation(sandbox, tmp_path)
        try:
            yield sandbox, installation
        finally:
            installation.end()
