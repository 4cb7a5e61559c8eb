"""`splitter explain`: shows why a workload is in its state: policy, conditions, last decisions.

Everything comes from the Split; the source is read for who else writes it, and for why there is none.
`explained` is pure: the status of a Split in, lines of text out.
"""

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

import typer

from splitter.core.labels_annotations import LABEL_SPLIT, SPLIT_ENABLED
from splitter.core.labels_annotations.reported import policy_in_words
from splitter.core.names import Key
from splitter.core.placement.members import spoken
from splitter.core.reasons import Reason
from splitter.core.split_status import RebalanceState, SplitStatus
from splitter.core.start_times import gap_note, quantile
from splitter.exits import Exit, faults_as_sentences
from splitter.kube.as_user import key_of
from splitter.kube.client import Json
from splitter.kube.paths import workload
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.splits import beside, read_splits, status_of
from splitter.plugin.cli.target import Target
from splitter.plugin.cli.wrapping import wrapped
from splitter.plugin.report.meanings import meanings
from splitter.report.printable import printable

_COLUMNS = 80
_OF_TWINS = frozenset({"spot-affinity", "template", "rollout-order"})  # they mean nothing to placement
_EXPECTED = {
    "PoolsFit": "True",
    "Eligible": "True",
    "PolicyValid": "True",
    "Ready": "True",
    "PodsHealthy": "True",
    "SpotAvailable": "True",
    "Conflict": "False",
}  # Progressing is neither well nor ill


@asks_cluster(without=("everywhere", "selector"))
def explain(
    workload: str = typer.Argument(..., help="deploy/NAME or sts/NAME.", autocompletion=workloads),
    *,
    cluster: Cluster,
) -> None:
    """Show why a workload is in its state.

    It shows the state, the policy in force, conditions that are wrong, and the last decisions.

    Exit code 0; 3 when the workload is not split.
    """
    target = cluster.target(workload)
    split, others, why_not = asyncio.run(_look(target, cluster))
    if split is None:
        sys.stderr.write(f"{target.words} {why_not}\n")
        raise typer.Exit(Exit.NOT_SPLIT)
    ordinals = (split.get("spec") or {}).get("onDemandOrdinals")
    with faults_as_sentences("explain"):
        lines = explained(key_of(split), status_of(split), ordinals)
    lines += _section("Beside splitter", iter(wrapped(others, _COLUMNS, "  ")))
    typer.echo("\n".join(map(printable, lines)))


async def _look(target: Target, cluster: Cluster) -> tuple[Json | None, str, str]:
    """Return the Split, and a line about its neighbours; or without one None, and why there is none."""
    async with cluster.connected() as (client, _):
        splits = await read_splits(client, target, target.includes)
        if splits:
            return splits[0], await beside(client, key_of(splits[0])), ""
        return None, "", _why_not(target, await client.find(workload(target.key)))


def _why_not(target: Target, source: Json | None) -> str:
    if source is None:
        return "is not there, or may not be read, and is not split"
    label = (source["metadata"].get("labels") or {}).get(LABEL_SPLIT)
    if label is None:
        kind = target.key.kind.lower()
        return f"is not split: kubectl label {kind} NAME {LABEL_SPLIT}={SPLIT_ENABLED} would do it"
    return f"is labelled {LABEL_SPLIT}={label}, but no controller has reported on it; is one running?"


def explained(key: Key, status: SplitStatus, ordinals: Sequence[int] | None = None) -> list[str]:
    """Return the whole story of one Split, in lines of at most 80 columns where words allow it."""
    if not status.state:
        return [f"{key}: nothing is reported yet; is the controller running?"]
    lines = [f"{key}  {status.state}  {status.reason or '-'}", *wrapped(status.message, _COLUMNS, "  ")]
    lines += _section("Replicas", _replicas(status))
    lines += _section("Nodes that go (UTC)", _nodes(status))
    if ordinals is not None:
        born = f"  {spoken(ordinals)} are born on on-demand, the others on spot where they can"
        lines += _section("Ordinals", iter([born]))
    lines += _section("Policy in force", _policy(status, placed=ordinals is not None))
    lines += _section("Spot", _spot(status.memory.rebalance))
    lines += _section("Relief", _relief(status))
    lines += _section("Starts", _starts(status))
    lines += _section("Not as it should be", _faults(status))
    return lines + _section("Last decisions (UTC, newest last)", _decisions(status))


def _section(title: str, lines: Iterator[str]) -> list[str]:
    section = list(lines)
    return ["", title, *section] if section else []


def _replicas(status: SplitStatus) -> Iterator[str]:
    yield f"  {'all':<10} {status.ready} ready of {status.desired} wanted"
    for name, pool in (("on-demand", status.on_demand), ("spot", status.spot)):
        said = [f"  {name:<10} {pool.ready} ready of {pool.wanted} wanted"]
        said += [f"{pool.spec} asked for now"] if pool.spec != pool.wanted else []
        said += [f"{pool.doomed} doomed"] if pool.doomed else []
        said += [f"{pool.pending} pending"] if pool.pending else []
        said += [f"{status.cover} cover for spot"] if name == "on-demand" and status.cover else []
        yield ", ".join(said)
    if status.guard:
        yield f"  {'guard':<10} {status.guard}"


def _nodes(status: SplitStatus) -> Iterator[str]:
    for node in status.nodes:
        replicas = "1 replica" if node.replicas == 1 else f"{node.replicas} replicas"
        when = "gone" if node.state == "Lost" else "going"
        if node.deadline is not None:
            when = f"by {_time(node.deadline)}"
        yield f"  {node.name}: {replicas}, {when}: {node.signal or '-'}"


def _policy(status: SplitStatus, *, placed: bool) -> Iterator[str]:
    shown = [one for one in policy_in_words(status) if not (placed and one[0] in _OF_TWINS)]
    width = max((len(value) for _, value, _ in shown), default=0)
    for name, value, origin in shown:
        yield f"  {name:<15} {value:<{width}}  {origin or '-'}"


def _spot(state: RebalanceState) -> Iterator[str]:
    """Say what the rebalancing remembers, in so far as it explains why on-demand still covers."""
    if state.last_loss is not None:
        yield f"  lost last at {_time(state.last_loss)}" + (", and not made good yet" if state.lost else "")
    if state.soak_s is not None:
        yield f"  flapping: replicas are trusted after {state.soak_s:.0f} s instead of the policy's soak"
    if state.short_since is not None:
        yield f"  short since {_time(state.short_since)}"


def _relief(status: SplitStatus) -> Iterator[str]:
    """Say how relief stands, and the moves that still count; nothing where nobody asks."""
    relief = status.relief
    if relief.message:
        yield from wrapped(f"{relief.message} ({relief.reason})", _COLUMNS, "  ", "    ")
    for move in relief.moves:
        ended = "taken back" if move.taken_back else "moved" if move.ended is not None else "is being moved"
        yield f"  {_time(move.at)}  {move.pod} on {move.node}: {ended}"


def _starts(status: SplitStatus) -> Iterator[str]:
    """Say what was learned of its starts, and what that leaves of it when all of spot goes."""
    starts = status.memory.starts
    for name, pool in (("on-demand", starts.on_demand), ("spot", starts.spot)):
        if pool.start_s:
            half, most = quantile(pool.start_s, 0.5), max(pool.start_s)
            waited = max(pool.node_s, default=0)
            nodes = f"; a node took {quantile(pool.node_s, 0.5)} to {waited} s" if waited else ""
            seen = f"half of the last {len(pool.start_s)} within {half} s, all within {most} s"
            yield f"  {name:<10} {seen}{nodes}"
    if (gap := gap_note(status.desired, status.on_demand.wanted, starts)) is not None:
        yield from wrapped(f"{gap.message} ({gap.reason})", _COLUMNS, "  ! ", "    ")


def _faults(status: SplitStatus) -> Iterator[str]:
    for kind, expected in _EXPECTED.items():
        stated = next((one for one in status.conditions if one.type == kind), None)
        if stated is not None and stated.status != expected:
            yield f"  {kind} is {stated.status} since {_time(stated.since)}: {stated.reason}"
            yield from wrapped(stated.message, _COLUMNS, "    ")
            yield from wrapped(_remedy(stated.reason), _COLUMNS, "    -> ", "       ")


def _remedy(reason: str) -> str:
    """Return what to do about a reason, without the page's links; empty where there is nothing to do."""
    meaning = meanings().get(Reason(reason)) if reason in set(Reason) else None
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning.remedy) if meaning else ""


def _decisions(status: SplitStatus) -> Iterator[str]:
    """Say each decision once, with how often it was repeated in a row."""
    for (reason, message), group in groupby(status.decisions, lambda one: (one.reason, one.message)):
        same = list(group)
        again = f", {len(same)} times, last at {_time(same[-1].at)}" if len(same) > 1 else ""
        head = f"  {_time(same[0].at)}  {reason}{again}"
        if len(whole := f"{head}: {message}") <= _COLUMNS:
            yield whole
            continue
        yield head
        yield from wrapped(message, _COLUMNS, "    ")


def _time(at: datetime) -> str:
    """Return an instant as people read it; the seconds are exact."""
    return f"{at:%Y-%m-%d %H:%M:%S}"
