"""Formats what `savings` shows: a table, JSON or CSV, with sums for namespaces and for all.

Pure: the JSON of Splits in, text or plain data out.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from splitter.core.names import Key
from splitter.core.reasons import State
from splitter.core.split_status.usage import Use
from splitter.kube.as_user import key_of
from splitter.kube.client import Json
from splitter.plugin.cli.splits import called, status_of
from splitter.plugin.core.savings import ASSUMED_SPOT_PRICE, Prices, Saving, UnitPrice, together
from splitter.report.printable import printable

_HOURS = {Use.ON_DEMAND: "ON-DEMAND", Use.SPOT: "SPOT", Use.COVER: "COVER", Use.SURGE: "SURGE"}
_TEXTS = 2  # columns that are no numbers


@dataclass(frozen=True, slots=True)
class Row:
    """One workload, one namespace, or all."""

    name: tuple[str, str, str]
    since: datetime
    saving: Saving


def counted(splits: Sequence[Json], now: datetime, window_s: int | None) -> tuple[list[Row], list[Key]]:
    """Return a row for each workload, and those of which nothing is counted."""
    rows, uncounted = [], []
    for split in splits:
        key, status = key_of(split), status_of(split)
        if (usage := status.usage) is None:
            if status.state != State.REFUSED:
                uncounted.append(key)
            continue
        begin = max(usage.since, now - timedelta(seconds=window_s)) if window_s else usage.since
        rows.append(Row((key.namespace, key.kind, key.name), begin, Saving(usage.between(begin, now))))
    return rows, uncounted


def sums(rows: Sequence[Row]) -> tuple[list[Row], Row | None]:
    """Return the sum of each namespace, and of all."""
    by_namespace = [
        _sum((namespace, "", ""), list(of)) for namespace, of in groupby(rows, key=lambda row: row.name[0])
    ]
    return by_namespace, _sum(("", "", ""), rows) if rows else None


def _sum(name: tuple[str, str, str], rows: Sequence[Row]) -> Row:
    return Row(name, min(row.since for row in rows), together(row.saving for row in rows))


def table(rows: Sequence[Row], prices: Prices | None, *, namespaced: bool) -> str:
    """Return the table, with sums where there is more than one workload, and what the prices are."""
    if not rows:
        return "no workload is split here, or nothing is counted yet"
    headings = ("WORKLOAD", "SINCE", *(f"{word} h" for word in _HOURS.values()), "ON SPOT", "SAVED")
    if prices is not None:
        headings = (*headings, f"SAVED {prices.currency}".rstrip(), "PAID")
    spaces, whole = sums(rows)
    lines = [_cells(row, prices, _name(row, namespaced=namespaced)) for row in rows]
    if namespaced and len(spaces) > 1:
        lines += [_cells(row, prices, f"all of {row.name[0]}") for row in spaces]
    if len(rows) > 1 and whole is not None:
        lines.append(_cells(whole, prices, "all"))
    widths = [max(len(line[column]) for line in (headings, *lines)) for column in range(len(headings))]
    text = [
        "  ".join(
            printable(cell).ljust(width) if column < _TEXTS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (headings, *lines)
    ]
    return "\n".join([*text, "", _prices_line(prices)])


def _prices_line(prices: Prices | None) -> str:
    if prices is None:
        return (
            f"assumed: a replica on spot costs {ASSUMED_SPOT_PRICE:g} of one on on-demand (prices come from"
            " --prices, --opencost or --prometheus)"
        )
    a, b = prices.on_demand, prices.spot
    return (
        f"prices of {prices.source}, for an hour of a vCPU and of a GiB: on-demand {a.cpu:.4f} and"
        f" {a.memory:.4f}, spot {b.cpu:.4f} and {b.memory:.4f}; the average of the nodes there are now"
    )


def _name(row: Row, *, namespaced: bool) -> str:
    namespace, kind, name = row.name
    return called(Key(kind, namespace, name), namespaced=namespaced)


def _cells(row: Row, prices: Prices | None, name: str) -> tuple[str, ...]:
    saving = row.saving
    cells = (
        name,
        f"{row.since:%Y-%m-%d %H:%M}",
        *(f"{saving.replicas(use):,.1f}" for use in _HOURS),
        _percent(saving.spot_share),
        _percent(saving.ratio(prices)),
    )
    if prices is None:
        return cells
    paid, all_on_demand = saving.money(prices)
    return (*cells, f"{all_on_demand - paid:,.2f}", f"{paid:,.2f}")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def figures(row: Row, prices: Prices | None) -> dict[str, Any]:
    """Return all figures of a row, flat: hours of replicas, vCPUs and GiB by use, shares, money."""
    saving = row.saving
    record: dict[str, Any] = {"since": f"{row.since:%Y-%m-%dT%H:%M:%SZ}"}
    for use in Use:
        record[f"{use.value}ReplicaHours"] = round(saving.replicas(use), 4)
        record[f"{use.value}VcpuHours"] = round(saving.cpu(use), 4)
        record[f"{use.value}GibHours"] = round(saving.memory(use), 4)
    record["spotShare"] = saving.spot_share
    record["savedShare"] = saving.ratio(prices)
    if prices is not None:
        record["paid"], record["allOnDemand"] = saving.money(prices)
        record["saved"] = record["allOnDemand"] - record["paid"]
    return record


def as_json(rows: Sequence[Row], prices: Prices | None, now: datetime) -> dict[str, Any]:
    """Return everything, with what the prices are."""
    spaces, whole = sums(rows)
    known = {"onDemand": 1.0, "spot": ASSUMED_SPOT_PRICE, "assumed": True} if prices is None else _of(prices)
    return {
        "until": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "prices": known,
        "workloads": [
            dict(zip(("namespace", "kind", "name"), row.name, strict=True)) | figures(row, prices)
            for row in rows
        ],
        "namespaces": [{"namespace": row.name[0]} | figures(row, prices) for row in spaces],
        "all": figures(whole, prices) if whole is not None else None,
    }


def _of(prices: Prices) -> dict[str, Any]:
    def pool(price: UnitPrice) -> dict[str, float]:
        return {"vcpuHour": price.cpu, "gibHour": price.memory}

    return {
        "onDemand": pool(prices.on_demand),
        "spot": pool(prices.spot),
        "currency": prices.currency,
        "source": prices.source,
        "assumed": False,
    }


def as_csv(rows: Sequence[Row], prices: Prices | None, now: datetime) -> str:
    """Return a line for each workload, with every figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, row in enumerate(rows):
        record = figures(row, prices)
        if number == 0:
            writer.writerow(["namespace", "kind", "name", "until", *record])
        writer.writerow([*map(printable, row.name), f"{now:%Y-%m-%dT%H:%M:%SZ}", *record.values()])
    return text.getvalue()
