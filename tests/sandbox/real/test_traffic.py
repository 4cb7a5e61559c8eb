"""What a load generator wrote, read again."""

import json
from collections import Counter

from lab.sandbox.real.traffic import Failure, read

SUM = json.dumps({"sum": 5, "failed": 1, "took_s": 1.0})
LOST = {
    "at": 12.5,
    "took_s": 2.0,
    "way": "service",
    "address": "10.96.0.1:80",
    "pod": "web-1",
    "failed": "reset",
}


def second(at: int, pod: str, sent: int) -> str:
    """Return the line of one second in which one pod answered everything."""
    return json.dumps({"second": at, "sent": {"pod": sent}, "failed": {}, "pods": {pod: sent}})


class TestReading:
    """Everything is counted once, whatever the order of the lines."""

    def test_a_whole_run(self) -> None:
        """Seconds come in the order of time, and what each pod and each way had is added up."""
        lines = [second(13, "web-2", 2), "a word of warning", second(12, "web-1", 3), SUM]
        content = read("\n".join(lines) + "\n")
        assert content is not None
        assert content.sent == 5
        assert [each.at for each in content.seconds] == [12, 13]
        assert content.by_pod() == Counter({"web-1": 3, "web-2": 2})
        assert content.by_way() == Counter({"pod": 5})

    def test_a_failure(self) -> None:
        """A request that failed says when, where, to whom and why."""
        content = read(f"{json.dumps(LOST)}\n{SUM}\n")
        assert content is not None
        [failure] = content.failures
        assert failure == Failure(12.5, 2.0, "service", "10.96.0.1:80", "web-1", "reset")
        assert str(failure) == "12.500 by service to 10.96.0.1:80, pod web-1: reset after 2.00 s"

    def test_failures_of_one_moment_apart(self) -> None:
        """They come in the order in which they began, not in which they were written."""
        later = LOST | {"at": 11.0, "pod": ""}
        content = read(f"{json.dumps(LOST)}\n{json.dumps(later)}\n{SUM}\n")
        assert content is not None
        assert [failure.at for failure in content.failures] == [11.0, 12.5]
        assert "pod unknown" in str(content.failures[0])

    def test_not_ended_yet(self) -> None:
        """Without the sum, or with half of it, nothing is known."""
        text = f"{second(1, 'web', 1)}\n{SUM}\n"
        assert all(read(text[:end]) is None for end in range(len(text)))
        assert read(text) is not None
