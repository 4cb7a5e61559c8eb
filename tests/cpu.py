"""A bound on seconds of CPU, which a slow machine keeps as well as a fast one."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# What one piece of work takes on a machine of the usual speed.
_PIECE_S: Final = 0.1
_TIMES: Final = 3


@contextmanager
def cpu_below(bound_s: float) -> Iterator[None]:
    """Claim that what is done meanwhile takes less CPU than `bound_s`, on a machine of the usual speed.

    Others who share its cores and caches make the same work several times dearer. So where it took longer, it
    is compared with a piece of work of a known size. Raises AssertionError.
    """
    began_s = time.process_time()
    yield
    took_s = time.process_time() - began_s
    if took_s >= bound_s:
        slowness = max(1.0, *(_piece_s() / _PIECE_S for _ in range(_TIMES)))
        assert took_s < bound_s * slowness, f"{took_s:.2f} s of CPU, {slowness:.1f} times slower than usual"


def _piece_s() -> float:
    began_s = time.process_time()
    piece_of_work()
    return time.process_time() - began_s


def piece_of_work(times: int = 1) -> None:
    """Make texts, sort them, write and read JSON: what splitter does most."""
    for _ in range(times):
        words = sorted(str(number * 2_654_435_761 % 1_000_003) for number in range(40_000))
        json.loads(json.dumps({word: [word] for word in words}))
