"""How a workload is split: into twins, or by placing its own pods (P2).

Eligibility asks, before a workload is taken over. One that is split keeps the way it was taken: changing
it means removing the label and setting it again.
"""

from splitter.core.model import Mode
from splitter.core.names import STATEFUL_SET


def mode_of(kind: str, asked: Mode | None) -> Mode:
    """Return how a workload of this kind is split, given what its annotation says.

    A StatefulSet's pods have names and often volumes, which twins would change: that has to be asked for.

    >>> mode_of("StatefulSet", None)
    <Mode.PLACEMENT: 'placement'>
    >>> mode_of("Deployment", Mode.PLACEMENT)
    <Mode.TWINS: 'twins'>
    """
    if kind != STATEFUL_SET:
        return Mode.TWINS
    return asked or Mode.PLACEMENT
