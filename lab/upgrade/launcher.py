"""Starts `splitter run` of another checkout, the folder that UPGRADE_FROM names.

`lab.fixtures.controller` starts this file in place of `-m splitter`. It changes nothing of that version.
"""

import os
import runpy
import sys

FOLDER = "UPGRADE_FROM"


def main() -> None:
    """Be the splitter of that folder."""
    sys.path[0] = os.environ["PYTHONPATH"] = os.environ[FOLDER]
    os.chdir(os.environ[FOLDER])  # where the processes that it starts look first
    sys.argv[1:] = ["run"]
    runpy.run_module("splitter", run_name="__main__")  # of the folder that is first now


if __name__ == "__main__":
    main()
