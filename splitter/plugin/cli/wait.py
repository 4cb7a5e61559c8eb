"""`splitter wait`: waits until a change of workloads is rolled out, and says meanwhile what it waits for.

What `kubectl rollout status` is to a Deployment that is not split, with its exit codes. Each look reads
the source and its Split: no watch, so there is no gap in one, and no right to watch is needed. Nothing is
written.
"""

import asyncio
import math
import sys
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import typer

from splitter.core.labels_annotations import LABEL_SPLIT, SPLIT_ENABLED
from splitter.core.labels_annotations.words import parse_duration
from splitter.core.names import Key
from splitter.core.split_status import SplitStatus
from splitter.exits import Exit
from splitter.kube import paths
from splitter.kube.client import ApiError, Client, Json
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.target import Target
from splitter.plugin.core.waiting import Asked, Judgement, Until, judged
from splitter.report.printable import printable

_LOOK_S = 1.0
TIMEOUT = "10m"
TIMEOUT_HELP = "How long to wait, such as 90s or 10m; 0s: without end."
_HINT = "Is splitter running (kubectl -n splitter-system get pods)?"


@asks_cluster()
def wait(
    workload: list[str] | None = typer.Argument(
        None, help="One or more of deploy/NAME or sts/NAME; or use -l or -A.", autocompletion=workloads
    ),
    until: Until = typer.Option(
        Until.UPDATED,
        "--for",
        help="updated: all replicas have the newest template and are available;"
        " steady: they are in the pools of the policy, too.",
    ),
    timeout: str = typer.Option(TIMEOUT, "--timeout", help=TIMEOUT_HELP),
    *,
    cluster: Cluster,
) -> None:
    """Wait until a change is rolled out.

    It waits for the workload as it is when the command begins, or newer, and prints what it waits for.

    Exit code 0 when it is rolled out; 1 when the time is over, or a roll cannot go on before somebody acts;
    3 when a workload is not split.
    """
    targets, timeout_s = cluster.targets(workload), seconds_of(timeout)
    try:
        code = asyncio.run(_wait(cluster, targets, until, timeout_s))
    except KeyboardInterrupt:
        code = interrupted()
    if code is not Exit.DONE:
        raise typer.Exit(code)


def seconds_of(timeout: str) -> float:
    """Return a time-out in seconds, infinity for 0. Raises typer.BadParameter for what is no duration."""
    seconds = 0 if timeout == "0" else parse_duration(timeout)
    if seconds is None:
        raise typer.BadParameter(f"--timeout is {timeout[:80]!r}; write a duration such as 90s, 10m or 1h30m")
    return seconds or math.inf


def interrupted() -> Exit:
    """Say that Ctrl-C ends the wait alone."""
    sys.stderr.write("\nno longer waiting; what was begun goes on: splitter status\n")
    return Exit.INTERRUPTED


async def _wait(cluster: Cluster, targets: Sequence[Target], until: Until, timeout_s: float) -> Exit:
    async with cluster.connected() as (client, settings):
        targets = await cluster.named(client, settings, list(targets))
        if not targets:
            sys.stderr.write("no split workload was chosen: there is nothing to wait for\n")
        return await wait_for(client, targets, until, timeout_s)


async def wait_for(client: Client, targets: Sequence[Target], until: Until, timeout_s: float) -> Exit:
    """Wait for each of these workloads as it is now, all within one time; return the last failure.

    Raises ApiError where one of them may not be read.
    """
    begun = [(target, await _source(client, target.key)) for target in targets]
    deadline, code = time.monotonic() + timeout_s, Exit.DONE
    for target, source in begun:
        ended = _not_split(target, source)
        if ended is None and source is not None:
            ended = await _Wait(client, target, source, until).ended(deadline)
        sentence, this = ended or ("", Exit.DONE)
        if this is Exit.DONE:
            _say(sentence)
        else:
            sys.stderr.write(f"{printable(sentence)}\n")
            code = this
    return code


class _Wait:
    """The wait for one workload."""

    def __init__(self, client: Client, target: Target, source: Json, until: Until) -> None:
        self._client = client
        self._target = target
        self._uid = source["metadata"]["uid"]
        annotations: Mapping[str, str] = source["metadata"].get("annotations") or {}
        self._asked = Asked(source["metadata"].get("generation", 0), annotations)
        self._until = until
        self._said = ""

    async def ended(self, deadline: float) -> tuple[str, Exit]:
        """Return how it ended, in a sentence, and the exit code; `deadline` is on the monotonic clock."""
        words = self._target.words
        while True:
            look = await self._look()
            if not isinstance(look, Judgement):
                return look
            if look.done:
                return f"{words} is rolled out: {look.sentence}", Exit.DONE
            if look.refused:
                return _refused(self._target, look.sentence), Exit.NOT_SPLIT
            if look.failed:
                return f"{words} cannot be rolled out: {look.sentence}", Exit.MENDABLE
            if time.monotonic() > deadline:
                hint = f". {_HINT}" if look.unseen else ""
                return f"timed out waiting for {words}: {look.sentence}{hint}", Exit.MENDABLE
            if look.sentence != self._said:
                self._said = look.sentence
                _say(f"waiting for {words}: {look.sentence}")
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> Judgement | tuple[str, Exit]:
        """Return how it stands, or how the wait ends if its workload is another one by now."""
        words = self._target.words
        try:
            source = await _source(self._client, self._target.key)
            if source is None or source["metadata"]["uid"] != self._uid:
                return f"{words} was deleted while it was waited for", Exit.MENDABLE
            if (no_more := _not_split(self._target, source)) is not None:
                return no_more
            return judged(await self._status(), self._asked, self._until)
        except ApiError as error:
            if error.status in {HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED}:
                raise
            return Judgement(f"no answer from the API server ({error.message or error}); trying again")

    async def _status(self) -> SplitStatus:
        """Return what the Split of this very workload says; nothing where there is none."""
        try:
            raw = await self._client.get(paths.split(self._target.key))
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return SplitStatus()
        owners = raw["metadata"].get("ownerReferences") or ()
        is_its_own = any(owner.get("uid") == self._uid for owner in owners)
        return SplitStatus.from_json(raw.get("status")) if is_its_own else SplitStatus()


async def _source(client: Client, key: Key) -> Json | None:
    """Return a workload, None where there is none. Raises ApiError."""
    try:
        return await client.get(paths.workload(key))
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def _not_split(target: Target, source: Json | None) -> tuple[str, Exit] | None:
    """Say that there is nothing to wait for, and what to wait for instead."""
    if source is None:
        return f"{target.words} is not there", Exit.NOT_SPLIT
    if (source["metadata"].get("labels") or {}).get(LABEL_SPLIT) is not None:
        return None
    label = f"it has no label {LABEL_SPLIT}={SPLIT_ENABLED}"
    return f"{target.words} is not split: {label}; {_instead(target)}", Exit.NOT_SPLIT


def _refused(target: Target, why: str) -> str:
    return f"{target.words} is labelled and not split; {_instead(target)}. {why}"


def _instead(target: Target) -> str:
    kind = target.key.kind.lower()
    return f"wait with `kubectl rollout status {kind}/{target.key.name} -n {target.key.namespace}`"


def _say(sentence: str) -> None:
    sys.stdout.write(f"{printable(sentence)}\n")
    sys.stdout.flush()
