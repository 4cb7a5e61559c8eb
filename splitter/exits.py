"""The exit codes of every verb: scripts rely on them, so changing one is a breaking change.

`docs/reference/commands.md` lists them; `tests/test_reference.py` keeps it in step.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

import typer


class Exit(IntEnum):
    """What the end of a verb means."""

    DONE = 0
    MENDABLE = 1  # one sentence on standard error says what
    USAGE = 2  # the command line's own; typer ends with it
    NOT_SPLIT = 3
    NOT_ALL_BACK = 4
    DIFFERS = 5  # of `render --diff`; not 1 as for kubectl, which is a mistake to every verb here
    INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 and the signal's number


class MendableError(Exception):
    """A failure that the user can mend; shown as a sentence, without a traceback."""


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.MENDABLE: (
        "something a person can mend: one sentence on standard error. `demo`: also a broken promise"
    ),
    Exit.USAGE: "wrong usage",
    Exit.NOT_SPLIT: (
        "`status`, `explain`, `savings`, `restart`, `rollout`, `freeze`, `unfreeze`: a workload that was"
        " named is not split; `plan`: it is not there"
    ),
    Exit.NOT_ALL_BACK: "`uninstall`: not all was given back within the time",
    Exit.DIFFERS: "`render --diff`: something would change",
    Exit.INTERRUPTED: "ended by Ctrl-C (`status -w`, whose end that is, leaves with 0)",
}


@contextmanager
def faults_as_sentences(verb: str) -> Iterator[None]:
    """End the verb with a sentence on standard error where the block raises ValueError or OSError.

    A file that cannot be read or written comes with its name.
    """
    try:
        yield
    except (ValueError, OSError) as fault:
        sentence = str(fault)
        if isinstance(fault, OSError) and fault.filename is not None:
            sentence = f"{fault.filename}: {fault.strerror}"
        sys.stderr.write(f"splitter {verb}: {sentence}\n")
        raise typer.Exit(Exit.MENDABLE) from None
