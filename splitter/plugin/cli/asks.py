"""`splitter restart`, `rollout`, `freeze`, `unfreeze`: write the annotation that a user would write.

Each asks the running controller for something by an annotation on the source; nothing else is touched, and
it is the user's own right that counts. What comes of it is seen with `splitter status`, or waited for with
`--wait` (`splitter wait`). A StatefulSet that is
split by placement runs its own pods: what Kubernetes does with them already is said, and not asked for.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from splitter.core import labels_annotations as keys
from splitter.core.names import Key
from splitter.exits import Exit
from splitter.kube.as_user import PlacementAnswer, annotate, placement_answer
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import workloads
from splitter.plugin.cli.target import Target
from splitter.plugin.cli.wait import TIMEOUT, TIMEOUT_HELP, interrupted, seconds_of, wait_for
from splitter.plugin.core.waiting import Until
from splitter.report.printable import printable


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class _Ask:
    """One verb: what it writes (None removes), the result in words, and its help."""

    annotation: str
    value: Callable[[], str | None]
    comes: str
    says: str
    # Why nothing would come of it for a StatefulSet split by placement, and what does instead.
    placed: str = ""
    # And for a workload that is labelled and not split.
    refused: str = ""

    @property
    def rolls(self) -> bool:
        """Whether every pod is replaced: that can be waited for."""
        return bool(self.placed)


_ASKS = (
    _Ask(
        keys.ANNOTATION_RESTARTED_AT,
        _now,
        "restarts",
        "Replace every pod, one twin after the other."
        "\n\n`kubectl rollout restart` cannot do this while a workload is split into twins. For a"
        " StatefulSet in placement mode, use `kubectl rollout restart`.",
        "its pods are its own; restart them with `kubectl rollout restart {target} -n {namespace}`",
        "restart it with `kubectl rollout restart {target} -n {namespace}`",
    ),
    _Ask(
        keys.ANNOTATION_ROLLOUT_AT,
        _now,
        "gets its template set",
        "Roll a changed template set out now.\n\nOtherwise it is applied with the workload's next rollout.",
        "no template set is used, so there is none to roll out",
        "it has no twins that a template set could be rolled out to",
    ),
    _Ask(
        keys.ANNOTATION_FREEZE,
        lambda: "true",
        "is frozen",
        "Hold both counts as they are.\n\nThey stay in an emergency too, until `splitter unfreeze`.",
    ),
    _Ask(
        keys.ANNOTATION_FREEZE,
        lambda: None,
        "is no longer frozen",
        "Let both counts move again.",
    ),
)


_WORKLOADS = typer.Argument(
    None, help="One or more of deploy/NAME or sts/NAME; or use -l or -A.", autocompletion=workloads
)


def _verb(ask: _Ask) -> Callable[..., None]:
    @asks_cluster()
    def verb(workload: list[str] | None = _WORKLOADS, *, cluster: Cluster) -> None:
        _run(ask, workload, cluster)

    @asks_cluster()
    def verb_that_rolls(
        workload: list[str] | None = _WORKLOADS,
        wait: bool = typer.Option(False, "--wait", help="Wait until it is rolled out, as `splitter wait`."),
        timeout: str = typer.Option(TIMEOUT, "--timeout", help=TIMEOUT_HELP),
        *,
        cluster: Cluster,
    ) -> None:
        _run(ask, workload, cluster, seconds_of(timeout) if wait else None)

    refuses = ""
    if ask.rolls:
        refuses = "; 1 when one is split by placement, or with --wait as of `splitter wait`"
    made = verb_that_rolls if ask.rolls else verb
    made.__doc__ = f"{ask.says}\n\nExit code 0; 3 when a workload that was named is not split{refuses}."
    return made


def _run(ask: _Ask, workload: list[str] | None, cluster: Cluster, timeout_s: float | None = None) -> None:
    targets = cluster.targets(workload)
    try:
        code = asyncio.run(_all_asked(ask, targets, cluster, timeout_s))
    except KeyboardInterrupt:
        if timeout_s is None:
            raise
        code = interrupted()
    if code is not Exit.DONE:
        raise typer.Exit(code)


restart, rollout, freeze, unfreeze = map(_verb, _ASKS)


def _put(sentence: str, key: Key) -> str:
    return sentence.format(target=f"{key.kind.lower()}/{key.name}", namespace=key.namespace)


async def _all_asked(ask: _Ask, targets: list[Target], cluster: Cluster, timeout_s: float | None) -> Exit:
    """Write each annotation and report it; with a time-out wait for all then; return the last failure."""
    code, asked = Exit.DONE, list[Target]()
    async with cluster.connected() as (client, settings):
        targets = await cluster.named(client, settings, targets)
        if not targets:
            sys.stderr.write("no split workload was chosen: nothing is changed\n")
        for target in targets:
            seen = await placement_answer(client, target.key) if ask.placed else PlacementAnswer()
            if seen.placed:
                sys.stderr.write(f"{target.words} is split by placement: {_put(ask.placed, target.key)}\n")
                code = Exit.MENDABLE
            elif seen.refused:
                instead = _put(ask.refused, target.key)
                sys.stderr.write(
                    f"{target.words} is labelled and not split; {instead}. {printable(seen.refused)}\n"
                )
                code = Exit.NOT_SPLIT
            elif await annotate(client, target.key, {ask.annotation: ask.value()}):
                see = f"splitter status {target.short} -n {target.key.namespace}"
                typer.echo(f"{target.words} {ask.comes}; see: {see}")
                asked.append(target)
            else:
                sys.stderr.write(f"{target.words} is not split: it has no label {keys.LABEL_SPLIT}\n")
                code = Exit.NOT_SPLIT
        if timeout_s is not None:
            waited = await wait_for(client, asked, Until.UPDATED, timeout_s)
            code = code if waited is Exit.DONE else waited
    return code
