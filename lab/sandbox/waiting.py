"""Waiting for a condition with a deadline: the only way the sandbox waits for anything.

Everything that starts, adds or restores something in the sandbox calls it; it looks again and again, fails
early when `check` raises (a process died), and says what it was waiting for when the deadline passes.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from lab.sandbox.errors import SandboxError

Answer = TypeVar("Answer")

# A look at a local API server costs about 2 ms of CPU: with ten looks a second a wait costs a fiftieth of a
# core, and eight test processes wait at the same time. Whoever has waited for long is late by a tenth of it.
LOOK_EVERY_S, LOOK_LATER_EVERY_S = 0.1, 0.3


def wait_until(
    look: Callable[[], Answer | None],
    *,
    what: str,
    deadline_s: float,
    check: Callable[[], None] | None = None,
) -> Answer:
    """Return what `look` finds, looking until it is neither None nor False.

    `what` completes the sentence "waited 30 s for ...". `check` may raise to give up early.
    Raises SandboxError when `deadline_s` seconds have passed.

    Example: `wait_until(lambda: path.exists(), what="the serving certificate", deadline_s=30)`.
    """
    began_s = time.monotonic()
    until_s = began_s + deadline_s
    while True:
        answer = look()
        if answer is not None and answer is not False:
            return answer
        if check is not None:
            check()
        now_s = time.monotonic()
        if now_s >= until_s:
            raise SandboxError(f"waited {deadline_s:g} s for {what}; it did not come.")
        time.sleep(min(max(LOOK_EVERY_S, (now_s - began_s) / 10), LOOK_LATER_EVERY_S))
