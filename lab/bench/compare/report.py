"""The table and the raw figures, from the cells that the rounds have measured.

Pure. `__main__` prints what is made here and writes it where it is told to.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.bench.compare.columns import COLUMNS, Column
from lab.bench.compare.rounds import Cell
from lab.bench.compare.scenario import ANNOTATIONS, TEXT
from lab.bench.compare.systems import System

_JUDGED = "splitter"


def markdown(cells: Iterable[Cell], systems: Sequence[System]) -> str:
    """Return the table: a row a system, a column an event, and what splitter is to reach in the last row."""
    by_name = {(cell.column, cell.system): cell for cell in cells}
    columns = [column for column in COLUMNS if any(key == column.key for key, _ in by_name)]
    rows = [[system.title, *(_cell(by_name, column, system) for column in columns)] for system in systems]
    if any(system.key == _JUDGED for system in systems):
        rows.append(["*to reach*", *(f"*{column.target}*" for column in columns)])
    head = ["system", *(column.heading for column in columns)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def misses(cells: Iterable[Cell]) -> list[str]:
    """Return one sentence for each figure of splitter's that is not as it is to be."""
    judged = {cell.column: cell for cell in cells if cell.system == _JUDGED}
    return [
        sentence
        for column in COLUMNS
        if column.key in judged
        for sentence in column.misses(judged[column.key].figures)
    ]


def raw(cells: Sequence[Cell], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything, for the JSON file: machine, scenario, figures and the steps behind them.

    A step is a line: seconds since the column's event, available replicas, pods.
    """
    return {
        "machine": dict(machine),
        "scenario": TEXT.splitlines(),
        "annotations": ANNOTATIONS,
        "misses": misses(cells),
        "columns": {
            column.key: {
                cell.system: {
                    "figures": {key: _rounded(value) for key, value in cell.figures.items()},
                    "steps": [f"{time_s:.2f} {available} {pods}" for time_s, available, pods in cell.steps],
                }
                for cell in cells
                if cell.column == column.key
            }
            for column in COLUMNS
            if any(cell.column == column.key for cell in cells)
        },
    }


def _cell(values: Mapping[tuple[str, str], Cell], column: Column, system: System) -> str:
    cell = values.get((column.key, system.key))
    return column.written(cell.figures) if cell else "-"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
