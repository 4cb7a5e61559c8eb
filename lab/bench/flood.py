"""A flood of lists: a process of its own that asks an API server on loopback as fast as it answers.

It ends with the next line of its input, and by itself after `LONGEST_S`. It prints "begun" after the first
answer, and in the end how many there were.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence

import urllib3

from lab.bench.crowd import must_be_loopback

LONGEST_S = 120.0
# All pods are looked through for one that does not exist: little to send, and much to do.
_PATH = "/api/v1/pods?fieldSelector=metadata.name%3Dnobody"


def main() -> None:
    """Read where and as whom to ask, flood, and print the answers by their status."""
    asked = json.loads(sys.stdin.readline())
    must_be_loopback(asked["url"])
    ended = threading.Event()
    until_s = time.monotonic() + LONGEST_S
    answers: Counter[int] = Counter()

    def flood(token: str) -> None:
        pool = urllib3.PoolManager(maxsize=1, ca_cert_data=asked["authority"], retries=False, timeout=30.0)
        while not ended.is_set() and time.monotonic() < until_s:
            answer = pool.request("GET", asked["url"] + _PATH, headers={"Authorization": f"Bearer {token}"})
            answers[answer.status] += 1

    threads = [
        threading.Thread(target=flood, args=(token,), daemon=True)
        for token in _spread(asked["tokens"], asked["connections"])
    ]
    for thread in threads:
        thread.start()
    while not answers and time.monotonic() < until_s:
        ended.wait(0.05)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    sys.stdin.readline()
    ended.set()
    for thread in threads:
        thread.join(timeout=30)
    sys.stdout.write(json.dumps(answers) + "\n")


def _spread(tokens: Sequence[str], connections: int) -> list[str]:
    return [tokens[number % len(tokens)] for number in range(connections)]


if __name__ == "__main__":
    main()
