"""The demo (`make demo`): an application survives the loss of all its spot nodes, and is judged.

`__main__` reads the flags and calls `run_demo`. `journey` walks through the steps in a sandbox,
`controller` is the `splitter run` that is judged, `watching` sees what it writes,
`screen` shows it, and `promises` and `restored` judge (pure, from recorded pods and compared
objects, never from splitter's own words). It must never touch a cluster of the user's.
"""

from lab.demo.journey import run_demo
from lab.demo.options import DemoOptions

__all__ = ["DemoOptions", "run_demo"]
