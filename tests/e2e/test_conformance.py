"""The scripts of tests/world/conformance on a real control plane: it still does what is recorded of it.

With SPLITTER_REGENERATE=1 what it does is recorded again.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lab.sandbox import Sandbox
from lab.sandbox.versions import PINNED, kubernetes_version
from world.conformance.real import Stage
from world.conformance.recorded import record, recorded
from world.conformance.scene import play
from world.conformance.scripts import SCRIPTS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(kubernetes_version() != PINNED, reason=f"what is recorded is of Kubernetes {PINNED}"),
]

_REGENERATE = "SPLITTER_REGENERATE" in os.environ
_AT_ONCE = 16  # they wait nearly all the time


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Iterator[Mapping[str, "Future[list[str]]"]]:
    """Yield what the scripts that are asked for show, on one control plane, as they end."""
    asked = [name for item in request.session.items if (name := _script_of(item))]
    with (
        Sandbox.start(progress=print) as sandbox,
        Stage.over(sandbox) as stage,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):

        def shown(name: str) -> list[str]:
            with stage.ground() as ground:
                return play(SCRIPTS[name], ground)

        # What waits for the collection of pods takes a minute, so it begins first.
        order = sorted(asked, key=lambda name: name != "vanished_node")
        yield {name: threads.submit(shown, name) for name in order}


def _script_of(item: pytest.Item) -> str:
    """Return the name of the script that a test is about, "" for other tests."""
    is_ours = item.path.samefile(__file__)
    return str(item.callspec.params["name"]) if is_ours and isinstance(item, pytest.Function) else ""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_real_control_plane_does_what_is_recorded(
    played: Mapping[str, "Future[list[str]]"], name: str
) -> None:
    """Kubernetes does in each script what is recorded of it."""
    seen = played[name].result()
    if _REGENERATE:
        record({name: seen})
    assert seen == recorded()[name]
