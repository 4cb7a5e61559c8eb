"""The exit codes of every verb, and its failures as sentences.

Scripts rely on the codes, so changing one is a breaking change.

`docs/reference/commands.md` lists them; `tests/test_reference.py` keeps it in step.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from splitter.core.errors import SplitterError
from splitter.report.printable import printable


class Exit(IntEnum):
    """What the end of a verb means."""

    DONE = 0
    MENDABLE = 1  # one sentence on standard error says what
    USAGE = 2  # the command line's own; typer and argparse end with it
    NOT_SPLIT = 3
    NOT_ALL_BACK = 4
    DIFFERS = 5  # of `render --diff`; not 1 as for kubectl, which is a mistake to every verb here
    INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 and the signal's number


class MendableError(Exception):
    """A failure that the user can mend; shown as a sentence, without a traceback."""


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.MENDABLE: "something a person can mend: one sentence on standard error",
    Exit.USAGE: "wrong usage",
    Exit.NOT_SPLIT: (
        "`status`, `explain`, `savings`, `restart`, `rollout`, `wait`, `freeze`, `unfreeze`: a workload that"
        " was named is not split; `plan`: it is not there"
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
        raise SystemExit(Exit.MENDABLE) from None


@contextmanager
def failures_as_sentences() -> Iterator[None]:
    """End the process with a sentence on standard error where the block raises what a person can mend."""
    try:
        yield
    except (SplitterError, MendableError) as error:
        message = "\n".join(map(printable, str(error).splitlines()))
        sys.stderr.write(f"splitter: {message}\n")
        raise SystemExit(Exit.MENDABLE) from None
