"""Requests at a constant rate, and what became of each: the question that users of a Service ask.

`RealFleet.traffic` sends them from one machine, through the Service's address and straight to its pods, each
with and without keep-alive. Nothing is tried again. It says nothing about why.
"""

import json
import os
import signal
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.sandbox.errors import SandboxError
from lab.sandbox.processes import Child, last_lines
from lab.sandbox.waiting import wait_until

# The last request may take its whole 2 s, and a busy machine writes late.
_END_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that a user has lost.

    `at` in seconds since 1970, when it began; `took_s` until it failed; `way` as in `Second.sent`; `address`
    is the one it was sent to; `pod` the one it went to, "" where it went to none.
    """

    at: float
    took_s: float
    way: str
    address: str
    pod: str
    reason: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        where = f"{self.address}, pod {self.pod or 'unknown'}"
        return f"{self.at:.3f} by {self.way} to {where}: {self.reason} after {self.took_s:.2f} s"


@dataclass(frozen=True, slots=True)
class Second:
    """What began in one second (since 1970): requests sent and failed by way, answers by pod."""

    at: int
    sent: Counter[str]
    failed: Counter[str]
    pods: Counter[str]


@dataclass(frozen=True, slots=True)
class Requests:
    """All requests of one run, oldest first."""

    sent: int
    failures: tuple[Failure, ...]
    seconds: tuple[Second, ...]

    def by_way(self) -> Counter[str]:
        """Count the requests that were sent by each way."""
        return sum((second.sent for second in self.seconds), Counter[str]())

    def by_pod(self) -> Counter[str]:
        """Count the answers of each pod."""
        return sum((second.pods for second in self.seconds), Counter[str]())


def read(text: str) -> Requests | None:
    """Return what the load generator wrote, None while the sum at its end is missing."""
    lines = _lines(text)
    sums = [line["sum"] for line in lines if "sum" in line]
    return replace(_parsed(lines), sent=sums[0]) if sums else None


def _parsed(lines: list[dict[str, Any]]) -> Requests:
    failures = [
        Failure(line["at"], line["took_s"], line["way"], line["address"], line["pod"], line["failed"])
        for line in lines
        if "way" in line
    ]
    seconds = [
        Second(line["second"], Counter(line["sent"]), Counter(line["failed"]), Counter(line["pods"]))
        for line in lines
        if "second" in line
    ]
    return Requests(
        sent=sum(one.sent.total() for one in seconds),
        failures=tuple(sorted(failures, key=lambda one: one.at)),
        seconds=tuple(sorted(seconds, key=lambda one: one.at)),
    )


def _lines(text: str) -> list[dict[str, Any]]:
    whole = text[: text.rfind("\n") + 1]  # the last line may be in the middle of being written
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


@dataclass(slots=True)
class Traffic:
    """A running load generator; `stop` ends it and returns what became of its requests."""

    child: Child
    log: Path
    _requests: Requests | None = field(default=None)

    def so_far(self) -> Requests:
        """Return the requests of the seconds that are over, and all failures until now."""
        return _parsed(_lines(self.log.read_text()))

    def stop(self) -> Requests:
        """End it after the last answer. Raises SandboxError when it has exited unexpectedly."""
        if self._requests is None:
            self.child.check()
            os.killpg(self.child.process.pid, signal.SIGTERM)
            self._requests = wait_until(
                lambda: read(self.log.read_text()),
                what=f"the sum of all requests in {self.log}",
                deadline_s=_END_DEADLINE_S,
            )
        if sum(self._requests.by_way().values()) != self._requests.sent:
            raise SandboxError(f"requests are missing in {self.log}, which ends:\n{last_lines(self.log)}")
        return self._requests
