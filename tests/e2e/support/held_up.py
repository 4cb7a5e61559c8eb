"""Starts `splitter run` in which a look at a workload of one namespace does not end, as a long computation.

`lab.fixtures.controller` starts this file instead of `-m splitter`. It changes nothing else of splitter.
"""

import os
import sys
import threading
from typing import Any

HELD_UP_IN = "HELD_UP_IN"
BEGUN = "the look that does not end has begun"


def main() -> None:
    """Be splitter, but for that namespace."""
    sys.path.pop(0)  # this folder: its modules have names of their own
    from splitter.command import main as splitter  # noqa: PLC0415 (found only now)
    from splitter.kube.observe import Observer  # noqa: PLC0415 (as above)

    observe = Observer.observe

    async def held_up(self: Observer, key: Any, *more: Any) -> Any:  # noqa: ANN401 (whatever it takes)
        if key.namespace == os.environ[HELD_UP_IN]:
            sys.stderr.write(f"{BEGUN}\n")
            threading.Event().wait()
        return await observe(self, key, *more)

    Observer.observe = held_up  # type: ignore[method-assign,assignment]
    sys.argv[1:] = ["run"]
    splitter()


if __name__ == "__main__":
    main()
