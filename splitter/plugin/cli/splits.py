"""Reads Splits and formats them as a table, for `status` and `explain`.

`cells` and `table` are pure: the JSON of Splits in, text out. A Split that is not reported on yet has dashes.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus

from rich.text import Text

from splitter.core.errors import SplitterError
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.core.reasons import Reason, State
from splitter.core.split_status import SplitStatus
from splitter.kube.as_user import key_of
from splitter.kube.client import ApiError, Client, Json
from splitter.kube.paths import splits, workload
from splitter.plugin.cli.target import Target
from splitter.plugin.core.other_tools import neighbour
from splitter.plugin.kube.field_managers import writers
from splitter.report.printable import printable

_HEADINGS = ("WORKLOAD", "READY", "ON-DEMAND", "SPOT", "COVER", "STATE", "REASON")
_STATE = _HEADINGS.index("STATE")
_NUMBERS = range(1, _STATE)
NAME_MIN = 12  # of a name that is shortened: less tells nobody anything

_STYLES = {
    State.STEADY.value: "green",
    State.REFUSED.value: "red",
    State.CONFLICT.value: "red",
    State.HELD.value: "yellow",
}
_MOVING = "cyan"


async def read_splits(client: Client, target: Target, wanted: Callable[[Key], bool]) -> list[Json]:
    """Return the Splits of the target's namespaces that are wanted, by namespace and name.

    Raises SplitterError where the kind Split is not known, ApiError when they cannot be read.
    """
    try:
        items = (await client.get(splits(target.namespace or "")))["items"]
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            message = f"{client.server} knows no Splits; install splitter there: kubectl apply -k manifests/"
            raise SplitterError(Reason.API_UNREACHABLE, message) from error
        raise
    chosen = [split for split in items if wanted(key_of(split))]
    return sorted(chosen, key=lambda split: (key_of(split).namespace, key_of(split).name))


async def beside(client: Client, key: Key) -> str:
    """Return a line about a tool that is known to undo splitter's writes to this workload; empty without one.

    Empty, too, where the workload may not be read.
    """
    if key.kind not in {DEPLOYMENT, STATEFUL_SET}:  # whoever may write a Split chooses the word
        return ""
    source = await client.find(workload(key))
    return neighbour(writers(source)) if source is not None else ""


def called(key: Key, *, namespaced: bool) -> str:
    """Return a workload as tables name it; the kind is said where it is no Deployment.

    >>> called(Key("StatefulSet", "shop", "db"), namespaced=True)
    'shop/statefulset/db'
    """
    return str(key) if namespaced else str(key).partition("/")[2]


def status_of(split: Json) -> SplitStatus:
    """Return the status; its state is empty before the first report."""
    return SplitStatus.from_json(split.get("status"))


def cells(split: Json, *, namespaced: bool) -> tuple[str, ...]:
    """Return one row: ready of desired; each pool ready of wanted.

    >>> cells({"metadata": {"name": "web"}}, namespaced=False)
    ('web', '-/-', '-/-', '-/-', '-', '-', '-')
    """
    name, status = called(key_of(split), namespaced=namespaced), status_of(split)
    if not status.state:
        return (printable(name), "-/-", "-/-", "-/-", "-", "-", "-")
    row = (
        name,
        f"{status.ready}/{status.desired}",
        *(f"{pool.ready}/{pool.wanted}" for pool in (status.on_demand, status.spot)),
        str(status.cover),
        status.state,
        status.reason or "-",
    )
    return tuple(map(printable, row))


def table(
    splits: Sequence[Json],
    *,
    namespaced: bool = False,
    wide: bool = False,
    width: int | None = None,
    clusters: Sequence[str] = (),
) -> Text:
    """Return the table; long names are shortened in their middle where it would be wider than `width`.

    `clusters`: of each Split the cluster, which is a column at the end then.
    """
    headings = (*_HEADINGS, "CLUSTER") if clusters else _HEADINGS
    rows = [cells(split, namespaced=namespaced) for split in splits]
    if clusters:
        rows = [(*row, printable(name)) for row, name in zip(rows, clusters, strict=True)]
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    if width is not None and not wide:
        left = max(NAME_MIN, width - sum(widths[1:]) - 2 * len(widths[1:]))
        widths[0] = min(widths[0], left)
    messages = [printable(status_of(split).message or "-") for split in splits]
    lines = [_line(headings, widths, "MESSAGE" if wide else "")]
    lines += [
        _line(row, widths, message if wide else "") for row, message in zip(rows, messages, strict=True)
    ]
    return Text("\n").join(lines)


def _line(row: Sequence[str], widths: Sequence[int], message: str) -> Text:
    line = Text()
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        shown = cell.rjust(width) if column in _NUMBERS else shortened(cell, width).ljust(width)
        style = _style(cell) if column == _STATE else ""
        line.append(shown, style)
        line.append("  ")
    line.append(message)
    line.rstrip()
    return line


def _style(state: str) -> str:
    """Return the colour of a state; the word says it too."""
    if state not in {known.value for known in State}:
        return ""
    return _STYLES.get(state, _MOVING)


def shortened(text: str, width: int) -> str:
    """Return a text that fits, its beginning and its end."""
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"
