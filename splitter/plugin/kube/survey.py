"""Reads once what `splitter suggest` needs to know about workloads without the label.

Whole lists, page by page, with the rights of who asks. What these do not reach is told in a sentence, and the
rest goes on. It uses the controller's own parsers, cache and observer, so that a refusal is the one that the
controller would give. Nothing is written.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import orjson

from splitter.admission.placement import NAME as POLICY
from splitter.core.desired.scheduling import ReservationRules
from splitter.core.evictions import BudgetView
from splitter.core.label_sets import LabelSets
from splitter.core.labels_annotations import LABEL_POOL, LABEL_SPLIT
from splitter.core.model import Note, SourceView, seconds_between
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.core.nodes.facts import Health
from splitter.core.reasons import Reason
from splitter.kube import parse, paths
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError, Client, Json
from splitter.kube.listed import Listed
from splitter.kube.observe import Observer
from splitter.kube.parse.fields import Raw
from splitter.kube.paths import ResourcePath
from splitter.kube.workload_autoscalers import WorkloadAutoscalers
from splitter.plugin.core.suggestion import Candidate, Sight, notice_of

_HIDDEN = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED})
# How old the lists of autoscalers may be: as old as this look.
_ANY_AGE_S = 0.0
# What a template set makes of a workload is not looked at: each is taken with what splitter adds by default.
_UNRENDERED = Note(Reason.TEMPLATE_INVALID, "no twins are rendered here", quiet=True)
_NOT_INSTALLED = "splitter is not installed in this cluster: a label does nothing until it is"

Take = Callable[[Json], object]
Tell = Callable[[str, float | None], object]
"""Told what is done now, and the share of it that is done; None: nobody knows how much there is."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found."""

    candidates: tuple[tuple[Candidate, SourceView], ...]
    sight: Sight
    unseen: tuple[str, ...]
    """What could not be seen, for want of rights or of splitter, and what that means: a sentence each."""
    ages_s: tuple[float, ...]
    """Of each node that is spot capacity and not gone: the seconds since it came."""


async def survey(
    client: Client,
    cache: Cache,
    namespaces: Sequence[str],
    *,
    wanted: Callable[[Key], bool],
    now: datetime,
    tell: Tell = lambda _stage, _share: None,
    reservations: ReservationRules | None = None,
) -> Survey:
    """Read all workloads without the label; `tell` is called with the progress.

    `namespaces`: where to look; none means all. Raises ApiError: 404 for a namespace that is not there, 403
    where Deployments may not be listed, 0 when nobody answers.
    """
    looking = _Look(client, cache, namespaces, tell, reservations)
    await looking.read()
    candidates = await looking.candidates(wanted, now)
    spot = [
        node for node in cache.nodes.values() if node.state.is_spot and node.state.health is not Health.GONE
    ]
    sight = Sight(
        pods=not {"pods", "replicasets"} & looking.hidden,
        nodes="nodes" not in looking.hidden,
        notice_s=notice_of([node.facts.provider for node in spot]),
    )
    ages_s = tuple(seconds_between(node.created, now) for node in spot)
    return Survey(tuple(candidates), sight, tuple(looking.unseen), ages_s)


class _Look:
    """One look: the lists, and what was not shown."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        namespaces: Sequence[str],
        tell: Tell,
        reservations: ReservationRules | None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._namespaces = namespaces
        self._tell = tell
        self._reservations = reservations
        self._listed = Listed(client)
        self._budgets: defaultdict[str, list[BudgetView]] = defaultdict(list)
        self._requests: dict[Key, dict[str, int]] = {}
        self.hidden: set[str] = set()
        self.unseen: list[str] = []

    async def read(self) -> None:
        """Read all lists. Raises ApiError as `survey`."""
        await self._read_namespaces()
        cache = self._cache
        no_moves = "start times, and how many pods would change pool, are not shown"
        lists: list[Awaitable[bool]] = [
            self._list(
                paths.NODES,
                cache.nodes.upsert,
                "how many pods would change pool is not shown, and the shortest notice is assumed",
            )
        ]
        for namespace in self._namespaces or ("",):
            lists += [
                self._list(paths.pods(namespace), cache.pods.upsert, no_moves),
                self._list(paths.replica_sets(namespace), cache.replica_sets.upsert, no_moves),
                self._list(paths.splits(namespace), cache.splits.upsert, "a name that is taken is not found"),
                self._list(
                    paths.budgets(namespace), self._take_budget, "no proposal goes by their minAvailable"
                ),
                self._keep(paths.hpas(namespace), "nobody is said to change a count"),
                self._keep(paths.scaled_objects(namespace), ""),
                self._keep(paths.vpas(namespace), ""),
                *(
                    self._keep(where(namespace), "controllers whose selectors overlap are not found")
                    for where in (paths.daemon_sets, paths.replication_controllers, paths.jobs)
                ),
                *(self._read_workloads(kind, namespace) for kind in (DEPLOYMENT, STATEFUL_SET)),
            ]
        # All of them end before one fails: what is under way has no connection to be left on.
        for answer in await asyncio.gather(*lists, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
        sources = [record.view for record in cache.sources.values()]
        templates = any(view.stateful is not None and view.stateful.claim_templates for view in sources)
        if templates or any(view.claims for view in sources):
            for namespace in self._namespaces or ("",):
                await self._keep(
                    paths.claims(namespace), "volumes that only one node may mount are not found"
                )
            await self._keep(paths.VOLUMES, "where volumes can be attached is not known")
        if any(view.stateful is not None for view in sources):
            await self._see_policy()

    async def candidates(
        self, wanted: Callable[[Key], bool], now: datetime
    ) -> list[tuple[Candidate, SourceView]]:
        """Return what was found of each workload that has no label."""
        cache = self._cache
        observer = Observer(self._listed, cache, self._reservations)
        scaling = WorkloadAutoscalers(self._listed)
        sources = [record.view for record in cache.sources.values() if _is_free(record.view)]
        chosen = sorted((view for view in sources if wanted(view.key)), key=lambda view: str(view.key))
        candidates = []
        for place, view in enumerate(chosen):
            self._tell(f"looking at {place + 1} of {len(chosen)} workloads", place / len(chosen))
            split = cache.splits.one("source", view.key)
            if view.deleting or (split is not None and split.spec.takes_over):
                continue  # it is on its way out, or still on its way back
            aimed = await scaling.of(view.key.namespace, now, _ANY_AGE_S, resources=False)
            who = (one.who for one in aimed if (one.kind, one.aim) == (view.key.kind, view.key.name))
            requests = self._requests.get(view.key, {})
            candidate = Candidate(
                observed=observer.with_pools(await observer.observe(view.key, now), _UNRENDERED),
                cpu_m=requests.get("cpu", 0),
                memory_bytes=requests.get("memory", 0),
                budgets=tuple(self._budgets_of(view)),
                scaler=next(who, ""),
            )
            candidates.append((candidate, view))
        return candidates

    async def _read_namespaces(self) -> None:
        lost = "a policy that is annotated on a Namespace is not known"
        if not self._namespaces:
            await self._list(paths.NAMESPACES, self._cache.namespaces.upsert, lost)
        for name in self._namespaces:
            try:
                self._cache.namespaces.upsert(await self._client.get(paths.NAMESPACES.of(name)))
            except ApiError as error:
                if error.status not in _HIDDEN:
                    raise
                self._hide("namespaces", lost)

    async def _read_workloads(self, kind: str, namespace: str) -> bool:
        """List a kind of workloads. Raises ApiError where Deployments may not be listed."""
        path = paths.workloads(kind, namespace)
        self._listed.know(path)

        def take(raw: Json) -> None:
            # Who asks for one wants to know whose it is, and no more.
            metadata = raw["metadata"]
            slim = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
            selects = {"selector": raw["spec"].get("selector")}
            self._listed.keep(path, {"metadata": slim, "spec": selects})
            if LABEL_SPLIT in (metadata.get("labels") or {}):
                return
            record = self._cache.sources.upsert({**raw, "kind": kind})
            if record is not None:
                template = raw["spec"]["template"].get("spec") or {}
                self._requests[record.view.key] = dict(parse.pod_request(template).requests)

        seen = await self._list(path, take, f"no {kind} is shown")
        if not seen and kind == DEPLOYMENT:
            where = f"in namespace {namespace}" if namespace else "in all namespaces; name one with -n"
            message = f"these credentials may not list Deployments {where}"
            raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", message)
        return seen

    async def _keep(self, path: ResourcePath, lost: str) -> bool:
        """List a collection that is asked about object by object; one that is not there is empty."""
        self._listed.know(path)
        return await self._list(path, lambda raw: self._listed.keep(path, raw), lost)

    async def _list(self, path: ResourcePath, take: Take, lost: str) -> bool:
        """Give each object of a collection to `take`; return whether it may be listed.

        `lost` says what is not shown where it may not; empty: nothing that anybody misses. A kind that the
        cluster does not know has no objects. Raises ApiError for anything else.
        """
        number = 0
        try:
            async for page in self._client.pages(path):
                for raw in page["items"]:
                    take(raw)
                number += len(page["items"])
                self._tell(f"reading {path.plural}: {number}", None)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                if path.is_ours and _NOT_INSTALLED not in self.unseen:
                    self.unseen.append(_NOT_INSTALLED)
                return True
            if error.status not in _HIDDEN:
                raise
            self._hide(path.plural, lost)
            return False
        return True

    def _hide(self, what: str, lost: str) -> None:
        if what not in self.hidden and lost:
            self.unseen.append(f"these credentials may not list {what}: {lost}")
        self.hidden.add(what)

    async def _see_policy(self) -> None:
        """Take the placement policy for there where who asks may not see it: the controller may."""
        for path in (paths.POLICIES, paths.BINDINGS):
            try:
                await self._listed.get(path.of(POLICY))
            except ApiError as error:
                if error.status in _HIDDEN:
                    self._hide(path.plural, f"{POLICY} is assumed to be there, to place StatefulSets")
                    self._listed.know(path)
                    self._listed.keep(path, {"metadata": {"name": POLICY}})

    def _take_budget(self, raw: Raw) -> None:
        record = self._cache.budgets.indexer.upsert(raw)
        if record is not None and record.split_uid is None:
            self._budgets[record.namespace].append(record.view)

    def _budgets_of(self, view: SourceView) -> Iterable[BudgetView]:
        if not (here := self._budgets.get(view.key.namespace)):
            return ()
        template = orjson.loads(view.manifest_json)["spec"]["template"]
        sets = LabelSets()
        sets.add((template.get("metadata") or {}).get("labels") or {}, {})
        return [one for one in here if one.selector is not None and sets.selected(one.selector)]


def _is_free(view: SourceView) -> bool:
    """Whether it has no label of splitter's."""
    return LABEL_SPLIT not in view.labels and LABEL_POOL not in view.labels
