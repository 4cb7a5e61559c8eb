"""A process of splitter's that fills its caches and follows what changes, and says how much memory it took.

`python -m memory.start ADDRESS CHANGES`: it ends when so many watches have told of a change, and prints its
peak of resident memory in MiB.
"""

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any, cast

from floods.process import standing_by
from kube.server import client_of
from leaping import passing
from memory.server import LAST
from splitter.operator import _GARBAGE_AT_START


async def _start(address: str, changes: int) -> None:
    gc.set_threshold(_GARBAGE_AT_START)
    async with client_of(address, 30.0) as client, standing_by(cast("Any", client)) as operator:
        async with asyncio.timeout(60):
            while sum(one._version == str(LAST) for one in operator._reflectors) < changes:
                await passing(0.05)


def peak_mib() -> int:
    """Return the most resident memory that this process has had (Linux, proc(5))."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    asyncio.run(_start(sys.argv[1], int(sys.argv[2])))
    print(peak_mib())  # noqa: T201 (its answer)
