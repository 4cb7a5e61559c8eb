"""Plans once without writing anything, for `splitter plan`.

It fills a cache by plain lists, observes, and plans with the very functions of the reconciler, the dry run
by server-side dry run included.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus

from splitter.core.hot_nodes import HotNodes
from splitter.core.labels_annotations import LABEL_SPLIT, SPLIT_ENABLED
from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Note, Observation
from splitter.core.names import Key
from splitter.core.plan import Plan, PolicyInForce, Rules, begins
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.kube.cache import Cache
from splitter.kube.client import Allowing, Client
from splitter.kube.dry_run import dry_run
from splitter.kube.observe import Observer
from splitter.kube.paths import NAMESPACES, workload
from splitter.kube.rehearsal import lacks_rights
from splitter.reconciler.rendering import Rendering
from splitter.render.bounded import BoundedRenderer


@dataclass(frozen=True, slots=True)
class Preview:
    """One workload as it is, and what would be done about it now."""

    observed: Observation
    in_force: PolicyInForce
    plan: Plan
    without_dry_run: str = ""
    """Why nobody could say whether the API server would take the first writes; empty when it is known."""
    supposed: bool = False
    """It has no label, and was looked at as if it had."""


async def preview(
    client: Client,
    cache: Cache,
    renderer: BoundedRenderer,
    rules: Rules,
    *,
    namespaces: Sequence[str],
    wanted: Callable[[Key], bool],
    named: Sequence[Key] = (),
) -> list[Preview]:
    """Return a preview of each workload that is or may be ours and that is `wanted`, in order of its name.

    One that was named and is not ours yet is looked at as if somebody had just labelled it.

    Raises ApiError when the cluster cannot be read.
    """
    await _look(client, cache, namespaces)
    supposed = not any(map(wanted, cache.workloads()))
    if supposed:
        for key in named:
            await _labelled_here(client, cache, key)
    observer, rendering = Observer(client, cache, rules.reservations), Rendering(renderer)
    previews = []
    for key in sorted(filter(wanted, cache.workloads()), key=str):
        # Nothing was measured here: a preview neither begins a move nor ends one.
        observed = replace(await observer.observe(key, datetime.now(UTC)), hot_nodes=HotNodes())
        in_force = policy_in_force(observed, rules.defaults)
        twins = await rendering.twins_of(observed, in_force.policy)
        if renderer.template_set(in_force.policy.template_set) is None and cache.template_sets.unread:
            twins = _unreadable(in_force.policy.template_set, cache.template_sets.unread)
        observed = observer.with_pools(observed, twins)
        planned = plan(observed, in_force, twins, rules)
        without_dry_run = ""
        if isinstance(twins, Mapping) and begins(planned):
            said = await dry_run(client, observed, twins)
            if said.denied is not None and lacks_rights(said.denied):
                without_dry_run = said.denied.message
            else:
                observed = replace(observed, denied=said.denied, additions=said.added)
                planned = plan(observed, in_force, twins, rules)
        previews.append(Preview(observed, in_force, planned, without_dry_run, supposed))
    return previews


async def _labelled_here(client: Client, cache: Cache, key: Key) -> None:
    """Take a workload into the cache with the label on it, if it is there; nothing is written."""
    with Allowing(HTTPStatus.NOT_FOUND):
        raw = await client.get(workload(key))
        raw["metadata"].setdefault("labels", {}).setdefault(LABEL_SPLIT, SPLIT_ENABLED)
        cache.sources.upsert(raw)


def _unreadable(template_set: str, why: str) -> Note:
    """Return what is known with rights that do not reach the sets: not that this one is missing."""
    message = (
        f"the template set {quoted(template_set)} cannot be read with these credentials, so nobody can say"
        f" here what its twins are: {why}"
    )
    return Note(Reason.FORBIDDEN, message, warning=True)


async def observed_now(client: Client, cache: Cache, key: Key) -> Observation:
    """Return one workload as it is, split or not. Raises ApiError when the cluster cannot be read."""
    await _look(client, cache, (key.namespace,))
    return await Observer(client, cache).observe(key, datetime.now(UTC))


async def _look(client: Client, cache: Cache, namespaces: Sequence[str]) -> None:
    lists = [reflector.list_once() for reflector in cache.reflectors(client, namespaces)]
    await asyncio.gather(*lists, *(_read_defaults(client, cache, name) for name in namespaces))
    cache.find_vanished()


async def _read_defaults(client: Client, cache: Cache, namespace: str) -> None:
    """Read one Namespace, whose annotations are defaults; who may not, sees its workloads without them."""
    with Allowing(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
        cache.namespaces.upsert(await client.get(NAMESPACES.of(namespace)))
