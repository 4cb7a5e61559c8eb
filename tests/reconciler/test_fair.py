"""What waits, by namespace: in turn, in order, and the largest gives way."""

import pytest

from splitter.reconciler.fair import FairQueue


def filled(**waiting: int) -> FairQueue[str, int]:
    """Return a queue in which so many of each namespace wait."""
    queue: FairQueue[str, int] = FairQueue()
    for namespace, count in waiting.items():
        for number in range(count):
            queue.put(namespace, f"{namespace}{number}", number)
    return queue


def drained(queue: FairQueue[str, int]) -> list[str]:
    """Take everything."""
    return [queue.pop()[0] for _ in range(len(queue))]


def test_one_of_each_in_turn() -> None:
    """In the order in which they came within a namespace."""
    assert drained(filled(a=3, b=1, c=2)) == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_the_first_number_decides_about_every_second() -> None:
    """The others go to one namespace after the other, so two of high priority do not share all of them."""
    queue: FairQueue[str, int] = FairQueue(lambda key: (-1 if key < "c" else 0, 0))
    for key in ("d0", "c0", "a0", "a1", "a2", "b0", "b1", "d1"):
        queue.put(key[0], key, 0)
    assert queue.first() == "a0"
    assert drained(queue) == ["a0", "d0", "b0", "c0", "a1", "d1", "b1", "a2"]


def test_who_comes_again_keeps_the_place() -> None:
    """Only the value is another."""
    queue = filled(a=2)
    queue.put("a", "a0", 9)
    assert len(queue) == 2
    assert queue.pop() == ("a0", 9)


def test_who_is_let_go_is_not_taken() -> None:
    """And who does not wait is let go without a word."""
    queue = filled(a=1, b=2)
    for namespace, key in (("a", "a0"), ("a", "a0"), ("b", "b0"), ("nobody", "x")):
        queue.discard(namespace, key)
    assert (len(queue), queue.has("b", "b0"), queue.has("b", "b1")) == (1, False, True)
    assert drained(queue) == ["b1"]


def test_the_oldest_of_the_largest_is_dropped() -> None:
    """Not the oldest of all."""
    queue = filled(a=1, b=3)
    queue.drop()
    queue.drop()
    assert drained(queue) == ["a0", "b2"]


def test_nothing_waits() -> None:
    """Who takes it is told."""
    with pytest.raises(KeyError):
        filled().pop()
    with pytest.raises(KeyError):
        filled().drop()
