"""`splitter status --contexts`: the workloads of several clusters in one table, as a hub has divided them.

A cluster that does not answer, or that has no splitter, is a line of its own: the others are shown.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from rich.text import Text

from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.exits import MendableError
from splitter.kube.as_user import key_of
from splitter.kube.client import ApiError, Client, Json
from splitter.kube.paths import workload
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.splits import called, read_splits, status_of, table
from splitter.plugin.cli.target import Target
from splitter.report.printable import printable

_MOST = 32  # clusters that one command asks


@dataclass(frozen=True, slots=True)
class Member:
    """What one cluster has answered; `failure` says why it has not."""

    context: str
    splits: Sequence[Json] = ()
    failure: str = ""


def contexts_in(text: str) -> tuple[str, ...]:
    """Return the contexts of a list with commas, each once.

    Raises ValueError if there is none, or too many.

    >>> contexts_in("m1, m2,m1")
    ('m1', 'm2')
    """
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if not 0 < len(names) <= _MOST:
        raise ValueError(f"name 1 to {_MOST} contexts, with commas between them")
    return names


async def members(contexts: Iterable[str], cluster: Cluster, target: Target) -> list[Member]:
    """Ask all clusters at once."""
    return list(await asyncio.gather(*(_asked(context, cluster, target) for context in contexts)))


async def _asked(context: str, cluster: Cluster, target: Target) -> Member:
    of = replace(cluster, context=context)
    try:
        async with of.connected() as (client, _):
            return Member(context, await read_splits(client, target, await of.chosen(client, target)))
    except (SplitterError, MendableError) as error:
        return Member(context, failure=str(error))


async def wanted_at(hub: str, cluster: Cluster, keys: Iterable[Key]) -> Mapping[Key, int | None]:
    """Return the replicas that the hub asks for, None of a workload that is not there.

    Raises SplitterError or MendableError if the hub does not answer.
    """
    async with replace(cluster, context=hub).connected() as (client, _):
        asked = tuple(keys)
        return dict(zip(asked, await asyncio.gather(*(_wanted(client, key) for key in asked)), strict=True))


async def _wanted(client: Client, key: Key) -> int | None:
    try:
        raw = await client.get(workload(key))
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    replicas = raw.get("spec", {}).get("replicas", 1)
    return replicas if isinstance(replicas, int) else None


def whole(
    answers: Sequence[Member],
    wanted: Mapping[Key, int | None] | None,
    *,
    namespaced: bool,
    wide: bool,
    width: int | None,
) -> Text:
    """Return the table of all clusters, the sum of each workload, and which clusters have not answered."""
    rows = [(split, member.context) for member in answers for split in member.splits]
    rows.sort(key=lambda row: str(key_of(row[0])))
    lines = []
    if rows:
        splits, clusters = zip(*rows, strict=True)
        lines.append(table(splits, namespaced=namespaced, wide=wide, width=width, clusters=clusters))
    if sums := list(_sums(answers, wanted, namespaced=namespaced)):
        lines += [Text(), *map(Text, sums)]
    lines += [
        Text(printable(f"{member.context}: {member.failure}"), style="yellow")
        for member in answers
        if member.failure
    ]
    return Text("\n").join(lines) if lines else Text("no workload is split in any of these clusters")


def _sums(
    answers: Sequence[Member], wanted: Mapping[Key, int | None] | None, *, namespaced: bool
) -> Iterable[str]:
    of: dict[Key, list[tuple[str, Json]]] = {}
    for member in answers:
        for split in member.splits:
            of.setdefault(key_of(split), []).append((member.context, split))
    for key, parts in sorted(of.items(), key=lambda one: str(one[0])):
        ready = sum(status_of(split).ready for _, split in parts)
        desired = sum(status_of(split).desired for _, split in parts)
        there = ", ".join(context for context, _ in parts)
        hub = ""
        if wanted is not None:
            asks = wanted.get(key)
            hub = "; the hub has no such workload" if asks is None else f"; the hub asks for {asks}"
        yield printable(f"{called(key, namespaced=namespaced)}: {ready} of {desired} ready in {there}{hub}")
