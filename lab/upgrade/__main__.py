"""`make upgrade FROM=CHECKOUT`: from another version to this one and back, with its own code.

It plays what a test cannot, which has no other version's code: that version runs, is replaced by this one,
takes over again, and is replaced for good, while workloads are split in every mode. Nothing may restart, and
no fewer pods may be available at any moment than is promised. Exit code 1 otherwise.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import Watched
from lab.sandbox import Sandbox, SandboxError
from lab.upgrade.versions import NOW, Installation, Version
from lab.upgrade.world import World, assert_promised


def main(arguments: Sequence[str] | None = None) -> int:
    """Play it and return the exit code."""
    parser = argparse.ArgumentParser(prog="make upgrade", description=__doc__)
    parser.add_argument("checkout", type=Path, help="the other version, as `git worktree add` makes it")
    chosen = parser.parse_args(arguments)
    began_s = time.monotonic()

    def tell(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began_s:6.1f} s  {line}\n")
        sys.stdout.flush()

    home = Path(tempfile.mkdtemp(prefix="splitter-upgrade-"))
    try:
        _play(Version.of("other", chosen.checkout.resolve()), home, tell)
    except (SandboxError, AssertionError) as fault:
        sys.stderr.write(f"broken: {fault}\nlogs are in {home}\n")
        return 1
    return 0


def _play(other: Version, home: Path, tell: Callable[[str], None]) -> None:
    with Sandbox.start(progress=tell) as sandbox, contextlib.ExitStack() as stack:
        sandbox.fleet.add("on-demand", 4)
        sandbox.fleet.add("spot", 4)
        installed = Installation(sandbox, home)
        stack.callback(installed.end)
        installed.run(other)
        first, second = (
            stack.enter_context(contextlib.contextmanager(open_shop)(sandbox, installed.controller, name))
            for name in ("first", "second")
        )
        first.check = second.check = installed.check
        world = World(first, second)
        world.create()
        world.split()
        tell("the other version has split a Deployment and a StatefulSet in twins, and a placed one")
        with world.watch() as watched:
            before = world.pods()
            for version in (NOW, other, NOW):
                states = world.states()
                installed.run(version)
                world.wait_reported(states)
                world.wait_split()
                assert world.pods() == before, f"{version.name}: pods were replaced: {before} {world.pods()}"
                tell(f"{version.name}: leads, all is steady, no pod was replaced, none restarted")
            world.give_back()
            assert_promised(watched)
            tell("given back by this version; pods available at least: " + _lowest(watched))


def _lowest(watched: dict[str, Watched]) -> str:
    return ", ".join(f"{name} {one.lowest()}" for name, one in watched.items())


if __name__ == "__main__":
    sys.exit(main())
