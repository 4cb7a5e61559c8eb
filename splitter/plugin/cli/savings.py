"""`splitter savings`: what spot has saved, by workload, by namespace and in all."""

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import typer

from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.words import parse_duration
from splitter.core.nodes.capacity import presets_with
from splitter.core.nodes.facts import NodeState
from splitter.core.nodes.signals import assess
from splitter.exits import Exit
from splitter.kube.client import ApiError, Client
from splitter.kube.parse.nodes import node_facts
from splitter.kube.paths import NODES
from splitter.kube.prometheus import without_credentials
from splitter.plugin.cli.bill import as_csv, as_json, counted, table
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.splits import read_splits
from splitter.plugin.core.savings import Prices, pool_price
from splitter.plugin.kube.prices import PricesError, from_opencost, from_prometheus, listed
from splitter.report.printable import printable
from splitter.settings import Settings

Output = Literal["table", "json", "csv"]


@asks_cluster()
def savings(
    workload: str | None = typer.Argument(
        None, help="deploy/NAME or sts/NAME. Default: every workload.", autocompletion=workloads
    ),
    since: str = typer.Option(
        "", "--since", help="How far back to look, such as 12h or 7d. Default: since the beginning."
    ),
    output: Output = typer.Option("table", "--output", "-o", help="Output format: table, json or csv."),
    prices: Path | None = typer.Option(
        None, "--prices", envvar="SPLITTER_PRICES", help="A file with prices of instance types."
    ),
    opencost: str | None = typer.Option(
        None, "--opencost", envvar="SPLITTER_OPENCOST", help="URL of OpenCost's API."
    ),
    prometheus: str | None = typer.Option(
        None,
        "--prometheus",
        envvar="SPLITTER_PROMETHEUS",
        help="URL of a Prometheus with OpenCost's metrics.",
    ),
    *,
    cluster: Cluster,
) -> None:
    """Show what spot has saved.

    Hours are hours of replicas on nodes of each pool. COVER and SURGE are part of them: on-demand replicas
    in place of spot, and replicas above the wanted number. SAVED compares with all replicas on on-demand;
    without prices a replica on spot is assumed to cost 0.3 of that.

    Exit code 0; 3 when a workload was named that is not split.
    """
    if sum(one is not None for one in (prices, opencost, prometheus)) > 1:
        raise typer.BadParameter("give one of --prices, --opencost and --prometheus")
    window_s = _seconds(since)
    asyncio.run(_show(cluster, workload, window_s, output, _Sources(prices, opencost, prometheus)))


def _seconds(since: str) -> int | None:
    """Return how far back; None for all. Raises typer.BadParameter."""
    if not since:
        return None
    days = re.fullmatch(r"([0-9]{1,5})d", since)
    seconds = int(days[1]) * 24 * 3600 if days is not None else parse_duration(since)
    if not seconds:
        raise typer.BadParameter(f"--since is {since[:40]!r}; it is a time such as 90m, 12h or 7d")
    return seconds


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where prices come from; at most one is given."""

    file: Path | None
    opencost: str | None
    prometheus: str | None

    @property
    def name(self) -> str:
        """Return what prices are said to be of."""
        return without_credentials(str(self.file or self.opencost or self.prometheus or ""))


async def _show(
    cluster: Cluster, workload: str | None, window_s: int | None, output: Output, sources: _Sources
) -> None:
    target = cluster.target(workload)
    async with cluster.connected() as (client, settings):
        splits = await read_splits(client, target, await cluster.chosen(client, target))
        prices = await _prices(client, settings, sources) if sources.name else None
    if target.name is not None and not splits:
        sys.stderr.write(f"{target.words} is not split\n")
        raise typer.Exit(Exit.NOT_SPLIT)
    now = datetime.now(UTC)
    rows, uncounted = counted(splits, now, window_s)
    for key in uncounted:
        sys.stderr.write(
            f"{printable(str(key))}: nothing is counted yet; splitter counts from its next reconcile on\n"
        )
    match output:
        case "table":
            typer.echo(table(rows, prices, namespaced=target.namespace is None))
        case "json":
            typer.echo(json.dumps(as_json(rows, prices, now), indent=2))
        case "csv":
            typer.echo(as_csv(rows, prices, now), nl=False)


async def _prices(client: Client, settings: Settings, sources: _Sources) -> Prices | None:
    """Return the prices of both pools; None, with the reason printed, when they are not available."""
    try:
        nodes = await _nodes(client, settings)
        currency = ""
        if sources.file is not None:
            prices, currency = await asyncio.to_thread(listed, sources.file, nodes)
        elif sources.opencost is not None:
            prices = await from_opencost(sources.opencost)
        else:
            prices = await from_prometheus(sources.prometheus or "")
        on_demand, spot = (pool_price(nodes, prices, spot=spot) for spot in (False, True))
        if on_demand is None or spot is None:
            missing = "spot" if on_demand is not None else "on-demand"
            raise PricesError(f"{sources.name} knows no price of any {missing} node that is there now")
    except SplitterError as error:
        sys.stderr.write(f"{printable(error.message)}; assumed prices are shown\n")
        return None
    return Prices(on_demand, spot, currency, sources.name)


async def _nodes(client: Client, settings: Settings) -> list[NodeState]:
    try:
        nodes = [raw async for page in client.pages(NODES) for raw in page["items"]]
    except ApiError as error:
        raise PricesError(
            f"nodes cannot be listed ({error.message}), so their prices are not known"
        ) from error
    presets = presets_with(settings.spot_selectors, settings.on_demand_selectors)
    return [assess(node_facts(raw), presets) for raw in nodes]
