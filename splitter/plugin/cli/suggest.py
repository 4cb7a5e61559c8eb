"""`splitter suggest`: suggests what to split, with which policy, and what it would save."""

import asyncio
import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import typer

from splitter.core.names import Key
from splitter.exits import faults_as_sentences
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.progress import Tell, progress
from splitter.plugin.cli.suggestions import Suggestion, Suggestions, as_json, as_lines
from splitter.plugin.cli.target import Target
from splitter.plugin.core.savings import ASSUMED_SPOT_PRICE
from splitter.plugin.core.suggestion import propose
from splitter.plugin.simulate.spot_history import SpotHistory, history_of
from splitter.plugin.simulate.trace import read_trace
from splitter.report.printable import printable

Output = Literal["table", "json"]


@asks_cluster()
def suggest(
    output: Output = typer.Option("table", "--output", "-o", help="Output format: table or json."),
    trace: Path | None = typer.Option(
        None, help="Spot nodes over time, as for `splitter simulate`. Default: the ages of your spot nodes."
    ),
    *,
    cluster: Cluster,
) -> None:
    """Suggest what to split, with which policy, and its saving.

    For each Deployment and StatefulSet without the label it shows the policy that fits and why, or why the
    workload is refused; how many pods would change pool; and the commands to type. Prices are assumed, and
    interruptions too where neither a trace nor spot nodes tell of them. It writes nothing.

    Exit code 0, also when nothing can be split; 1 when the trace or the cluster cannot be read.
    """
    with faults_as_sentences("suggest"):
        history = history_of(read_trace(trace), ()) if trace is not None else None
    target = cluster.target(None)
    with progress() as tell:
        suggestions = asyncio.run(_look(target, cluster, history, tell))
    if output == "json":
        typer.echo(json.dumps(as_json(suggestions), indent=2))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None  # what is piped is whole
    for line in as_lines(suggestions, namespaced=target.namespace is None, width=width):
        typer.echo(printable(line))


async def _look(target: Target, cluster: Cluster, given: SpotHistory | None, tell: Tell) -> Suggestions:
    """Return what is suggested, the largest saving first. Raises MendableError as `Cluster.connected`.

    `given`: the history of spot to go by; None: that of the cluster's own nodes.
    """
    from splitter.assembly import cache_of, rules_of
    from splitter.kube.asks import enqueue_nothing
    from splitter.plugin.kube.survey import survey
    from splitter.plugin.simulate.estimate import Estimator

    async with cluster.connected() as (client, settings):
        cache, rules = cache_of(settings, enqueue_nothing), rules_of(settings)
        chosen = await cluster.chosen(client, target)
        # Asked about everything, nobody means Kubernetes itself, or splitter.
        left_out = {*settings.excluded_namespaces, settings.own_namespace} if target.namespace is None else ()

        def wanted(key: Key) -> bool:
            return key.namespace not in left_out and chosen(key)

        seen = await survey(
            client,
            cache,
            target.namespaces,
            wanted=wanted,
            now=datetime.now(UTC),
            tell=tell,
            reservations=rules.reservations,
        )
    history = given or history_of(None, seen.ages_s)
    estimator = Estimator(history, seen.sight.notice_s, rules.tuning, ASSUMED_SPOT_PRICE)
    suggestions = []
    fits = [candidate.observed.pools for candidate, _ in seen.candidates]
    for place, (candidate, source) in enumerate(seen.candidates):
        number = len(seen.candidates)
        tell(f"estimating {place + 1} of {number} workloads", place / number)
        proposal = propose(candidate, source, rules, seen.sight)
        estimate = None
        if not proposal.refused and not proposal.barred:
            estimate = estimator.of(
                source.replicas, source.max_surge, source.max_unavailable, proposal.policy, proposal.start_s
            )
        suggestions.append(Suggestion(proposal, estimate))
    return Suggestions(
        suggestions=tuple(sorted(suggestions, key=Suggestion.order)),
        unseen=seen.unseen,
        history=history,
        spot_nodes=len(seen.ages_s) if seen.sight.nodes else None,
        looks_like_spot=next((pools.no_spot_node for pools in fits if pools is not None), ""),
        notice_s=seen.sight.notice_s,
        spot_price=ASSUMED_SPOT_PRICE,
    )
