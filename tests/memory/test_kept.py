"""What is kept of an object is no more than was sent of it, however it is grown."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import orjson
import pytest

from kube.cached import cache
from memory.dense import KINDS, PLACES, Grow, grown

_KIB = 1024
# What is kept of a small one all the same. Of what no tenant writes, some lists are kept parsed, up to a
# limit; of a Split 1,000 ordinals.
LEAST_KIB = {"node": 64, "claim": 64, "autoscaler": 128, "template set": 16, "split": 40}
# Of what is split, more is kept: all of it is counted, and limited by the share of its namespace.
COUNTED = frozenset({"deployment", "statefulset", "twin", "placement"})
_LEAST_KIB = 8
# Of the whole cluster, or of the namespaces of its administrators.
_WITHOUT_SHARE = frozenset({"node", "claim", "namespace", "autoscaler", "template set"})
_NUMBER = 2
_GROWTHS = [
    (kind, grow, count) for kind, grows in PLACES.items() for grow in grows for count in (50, 250, 4000)
]


@pytest.fixture(scope="module", autouse=True)
def nothing_else_is_collected() -> Iterator[None]:
    """Leave what was there before to itself: each measure collects garbage twice."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def kept_sent_and_counted(kind: str, grow: Grow, count: int) -> tuple[int, int, int]:
    """Return the bytes that are held of an object, those of its JSON, and those that its share counts."""
    kept_in, into = cache(), KINDS[kind].into
    into(kept_in).upsert(orjson.loads(grown(kind, grow, 1, _NUMBER)))  # what comes with the first one
    lines = [grown(kind, grow, count, number) for number in range(_NUMBER)]
    tracemalloc.start()
    try:
        for line in lines:
            orjson.loads(line)  # it remembers 2,000 short keys, of whatever text
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for line in lines:
            into(kept_in).upsert(orjson.loads(line))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = max(record.weight for record in into(kept_in).values())
    return (after - before) // _NUMBER, len(lines[0]), counted


@pytest.mark.parametrize(
    ("kind", "grow", "count"),
    _GROWTHS,
    ids=[f"{kind}-{grow.__name__}-{count}" for kind, grow, count in _GROWTHS],
)
def test_no_more_than_was_sent(
    kind: str, grow: Grow, count: int, record_property: Callable[[str, object], None]
) -> None:
    """Each kind, in each place that grows."""
    kept, sent, counted = kept_sent_and_counted(kind, grow, count)
    if count == max(of for _, _, of in _GROWTHS):
        record_property(f"kept of {kind}, bytes a byte sent", kept / sent)
    least = counted if kind in COUNTED else LEAST_KIB.get(kind, _LEAST_KIB) * _KIB
    assert kept <= max(sent, least), f"{kept} bytes of {sent}"
    if "namespace" in KINDS[kind].make()["metadata"] and kind not in _WITHOUT_SHARE:
        assert kept <= counted, f"{kept} bytes, of which {counted} are counted"
