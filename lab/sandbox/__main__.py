"""`python -m lab.sandbox` (`make sandbox`): one control plane that runs until Ctrl-C, for developers.

`python -m lab.sandbox build` only builds the programs; `check` tells within 10 seconds whether this
machine can build and run what `make test` needs. A running one prints the path of its kubeconfig on standard
output, everything else on standard error; claims get volumes there. With `--karpenter` it begins without
machines, and Karpenter buys what pending pods ask for. With `--real-nodes` its machines run containers. It
decides nothing; `controlplane`, `fleet`, `real`, `provisioner`, `karpenter` and `preflight` do the work.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from lab.sandbox import build, preflight, upstream
from lab.sandbox.controlplane import Sandbox
from lab.sandbox.credentials import write_private
from lab.sandbox.errors import SandboxError
from lab.sandbox.machines import Pool
from lab.sandbox.provisioner import Provisioner
from lab.sandbox.real.build import real_nodes
from lab.sandbox.real.world import refusal

_POOLS: tuple[Pool, ...] = get_args(Pool)
_LOOK_EVERY_S = 1.0
_MACHINES = "on-demand=4,spot=8"
_REAL = "on-demand=2,spot=3"


def parse_nodes(text: str) -> dict[Pool, int]:
    """Return how many machines of each pool `--nodes` asks for.

    Example: `parse_nodes("on-demand=4,spot=8")` is `{"on-demand": 4, "spot": 8}`.
    """
    wanted: dict[Pool, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition("=")
        pool = next((pool for pool in _POOLS if pool == name.strip()), None)
        if pool is None or not count.strip().isdigit():
            raise argparse.ArgumentTypeError(
                f"{part!r} is not POOL=COUNT; write for instance on-demand=4,spot=8"
            )
        wanted[pool] = int(count)
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check, or run a sandbox until Ctrl-C or SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.sandbox", description="A control plane on loopback.")
    parser.add_argument("action", nargs="?", choices=("run", "build", "check"), default="run")
    parser.add_argument(
        "--nodes",
        type=parse_nodes,
        metavar="POOL=COUNT,...",
        help=f"machines to begin with (default: {_MACHINES}; none with --karpenter or --real-nodes)",
    )
    parser.add_argument(
        "--real-nodes",
        type=parse_nodes,
        nargs="?",
        const=parse_nodes(_REAL),
        metavar="POOL=COUNT,...",
        help=f"machines that run containers, called real-POOL-N (default: {_REAL})",
    )
    parser.add_argument("--karpenter", action="store_true", help="have Karpenter buy machines of both pools")
    parser.add_argument("--helm", action="store_true", help="with build and check: Helm too")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="with check: so many of them at the same time"
    )
    parser.add_argument("--kubeconfig-out", type=Path, metavar="PATH", help="write the kubeconfig here too")
    chosen = parser.parse_args(arguments)
    nodes = chosen.nodes
    if nodes is None:
        nodes = {} if chosen.karpenter or chosen.real_nodes else parse_nodes(_MACHINES)
    try:
        if chosen.action == "build":
            sys.stdout.write(f"{build.programs(_tell).kwok.parent}\n")
            if chosen.karpenter:
                sys.stdout.write(f"{upstream.built(upstream.KARPENTER, _tell).program.parent}\n")
            if chosen.real_nodes:
                if (reason := refusal()) is None:
                    sys.stdout.write(f"{real_nodes(_tell)}\n")
                else:
                    _tell(f"not built, since it could not run: {reason}")
            if chosen.helm:
                sys.stdout.write(f"{build.helm(_tell).parent}\n")
        elif chosen.action == "check":
            return _check(helm=chosen.helm, real=bool(chosen.real_nodes), at_once=chosen.at_once)
        else:
            _run(nodes, chosen.real_nodes or {}, chosen.kubeconfig_out, karpenter=chosen.karpenter)
    except KeyboardInterrupt:
        return 0
    except SandboxError as fault:
        _tell(f"error: {fault}")
        return 1
    return 0


def _check(*, helm: bool, real: bool, at_once: int) -> int:
    report = preflight.check(helm=helm, real=real, at_once=at_once)
    sys.stdout.writelines(f"{line}\n" for line in report.notes)
    sys.stdout.flush()
    for line in report.problems:
        _tell(f"error: {line}")
    return 1 if report.problems else 0


def _run(
    nodes: dict[Pool, int], real: dict[Pool, int], kubeconfig_out: Path | None, *, karpenter: bool
) -> None:
    with (
        Sandbox.start(progress=_tell, karpenter=karpenter, real=bool(real)) as sandbox,
        Provisioner(sandbox.api),
    ):
        for pool in _POOLS if karpenter else ():
            sandbox.karpenter.offer(pool, consolidate_after="30s")
        for pool, count in nodes.items():
            sandbox.fleet.add(pool, count)
        for pool, count in real.items():
            _tell(f"{', '.join(sandbox.real.add(pool, count))} run containers")
        try:
            if kubeconfig_out:
                write_private(kubeconfig_out, sandbox.kubeconfig.read_text())
            sys.stdout.write(f"{kubeconfig_out or sandbox.kubeconfig}\n")
            sys.stdout.flush()
            _tell(f"logs in {sandbox.logs}; Ctrl-C ends it")
            while True:
                sandbox.check()
                time.sleep(_LOOK_EVERY_S)
        finally:
            if kubeconfig_out:
                kubeconfig_out.unlink(missing_ok=True)  # it leads nowhere now


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
