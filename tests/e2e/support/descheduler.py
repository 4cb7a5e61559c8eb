"""The descheduler, built from its own module, as a process that looks at a sandbox again and again."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from splitter.sandbox import Sandbox
from splitter.sandbox.processes import Child, Nursery


@contextmanager
def descheduling(sandbox: Sandbox, program: Path, home: Path, policy: str, every_s: int) -> Iterator[Child]:
    """Have it look at the cluster every so many seconds, with all rights; its files lie in `home`."""
    file = home / "policy.yaml"
    file.write_text(policy)
    command = (
        str(program),
        f"--client-connection-kubeconfig={sandbox.kubeconfig}",
        f"--policy-config-file={file}",
        f"--descheduling-interval={every_s}s",
        "--secure-port=0",
        "--v=3",
    )
    nursery = Nursery()
    try:
        environment = {**os.environ, "HOME": str(home)}
        yield nursery.start("descheduler", command, log=home / "descheduler.log", environment=environment)
    finally:
        nursery.end()


def reported(log: Path) -> dict[str, int]:
    """Count what the descheduler says that it did."""
    text = log.read_text()
    return {
        "looks": len(re.findall(r'"Number of evictions/requests" totalEvicted', text)),
        "evicted": len(re.findall(r'"Evicted pod"', text)),
        "refused": len(re.findall(r'"Error evicting pod".*would violate', text)),
    }
