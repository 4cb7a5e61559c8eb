"""The operator: starts everything, leads or stands by, and stops it.

`splitter.run` calls `run`. It connects and probes first (kopf would try for a minute and leave with a
traceback), then lets kopf run the process: start-up fills the caches and joins the election, clean-up stops.
A reconciler lives for one term: while this process leads, and no longer; the caches live on. The labelled
sources come through a reflector too: after a gap kopf never says what has disappeared (docs/adr/0004).
Nothing is decided here.
"""

import asyncio
import gc
import logging
import socket
import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import kopf
from prometheus_client import REGISTRY

from splitter.assembly import cache_of, relief_of, renderer_of, rules_of
from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason, State
from splitter.kube.access import check_access, check_connection, missing_in, patiently
from splitter.kube.apply import Writer
from splitter.kube.client import Client
from splitter.kube.connect import connect
from splitter.kube.crowded import Crowded
from splitter.kube.held_up import write_down_anew
from splitter.kube.lease import Election, leading_elsewhere
from splitter.kube.observe import Observer
from splitter.kube.records import TemplateSetRecord
from splitter.kube.views import Views
from splitter.kube.watch import Reflector
from splitter.reconciler import Reconciler
from splitter.reconciler.health_checks import checks
from splitter.reconciler.queue import REST_S, WorkQueue
from splitter.reconciler.watchdog import Watchdog, leave_alone
from splitter.render.bounded import BoundedRenderer
from splitter.report import health, metrics, scrapes
from splitter.report.serving import default_address
from splitter.settings import Settings

logger = logging.getLogger("splitter")

# With a pod's own credentials; a person at a terminal is told at once. Less than the liveness probe waits for
# a process that does not listen yet (manifests/deployment.yaml).
_PATIENCE_S = 20.0
_SYNC_S = 120.0
# What splitter does without may come a little later; a first look with it is the better one.
_OPTIONAL_SYNC_S = 2.0
# A write that was sent has so long to end before the lease is released; otherwise it runs out by itself.
_SETTLE_S = 2.0
_LOOK_S = 1.0
# What the last leader was moving has its turn still.
_ON_THE_MOVE = frozenset({State.TAKING_OVER, State.MOVING})
# Python looks for cyclic garbage after 700 new objects, and one page of a list has 30,000, which all go again
# without it: that was three quarters of the time to read it (docs/performance.md).
_GARBAGE_AT_START, _GARBAGE = 50_000, 5_000


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises SplitterError with what to do when it cannot start."""
    async with AsyncExitStack() as stack:
        client = await connect(
            settings.kubeconfig,
            settings.context,
            settings.api_timeout_s,
            # A watch holds its connection; each namespace that is named has watches of its own.
            connections=settings.workers
            + settings.emergency_workers
            + 64
            + 8 * len(settings.watch_namespaces),
            answered=metrics.count_request,
        )
        stack.push_async_callback(client.close)
        lease_namespace = settings.own_namespace if _elects(settings) else ""

        async def asked() -> tuple[str, tuple[str, ...]]:
            version = await check_connection(client)
            return version, await check_access(client, settings.watch_namespaces, lease_namespace)

        version, missing = await patiently(asked, 0 if settings.kubeconfig else _PATIENCE_S)
        logger.info("connected to Kubernetes %s at %s", version, client.server)
        if not _elects(settings) and settings.own_namespace:
            await _must_be_alone(client, settings.own_namespace)
        operator = _Operator(client, settings, missing)
        operator.listen()
        await kopf.operator(
            registry=operator.registry(),
            settings=_kopf_settings(),
            clusterwide=not settings.watch_namespaces,
            namespaces=list(settings.watch_namespaces),
            standalone=True,
            stop_flag=operator.stop,
        )
        if operator.failure is not None:
            raise operator.failure


def _elects(settings: Settings) -> bool:
    """Whether a leader is elected: unless said otherwise, with a pod's own credentials."""
    wanted = settings.leader_election == "on" or (
        settings.leader_election == "auto" and settings.kubeconfig is None
    )
    if wanted and not settings.own_namespace:
        message = (
            "the Lease of the election is in own_namespace, which is empty; name it, or leader_election: off"
        )
        raise SplitterError(Reason.INVALID_SETTINGS, message)
    return wanted


async def _must_be_alone(client: Client, namespace: str) -> None:
    """Raise SplitterError when an elected leader works on this cluster: two writers would write conflict."""
    if (other := await leading_elsewhere(client, namespace)) is not None:
        message = (
            f"{other} leads on this cluster (Lease {namespace}/splitter), and this process takes part in no"
            " election. Stop the other one first (kubectl scale), or stand by: SPLITTER_LEADER_ELECTION=on"
        )
        raise SplitterError(Reason.ANOTHER_LEADS, message)


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # it has nothing to watch: the reflectors do
    return settings


async def _synced(reflectors: Sequence[Reflector], deadline_s: float) -> None:
    async with asyncio.timeout(deadline_s):
        await asyncio.gather(*(reflector.synced.wait() for reflector in reflectors))


class _Operator:
    """What lives as long as the process, and the handlers that kopf calls."""

    def __init__(self, client: Client, settings: Settings, forbidden: Collection[str] = ()) -> None:
        """`forbidden`: watched namespaces in which rights are missing."""
        self._client = client
        self._settings = settings
        workers, urgent = settings.workers, settings.emergency_workers
        self._queue = WorkQueue(
            settings.tuning.node_coalesce_s, REST_S, workers=workers, emergency_workers=urgent
        )
        self._cache = cache_of(settings, self._queue.add)
        self._reflectors = self._cache.reflectors(client, tuple(settings.watch_namespaces))
        self._crowded = Crowded(client, self._cache, self._queue.add)
        rights = partial(missing_in, client)
        self._views = Views(self._reflectors, self._cache.written, rights, self._crowded.blocks)
        self._views.forbid(forbidden)
        self._cache.template_sets.announce_to(self._validate_template_set)
        self._election: Election | None = None
        self._writing = client
        if _elects(settings):
            identity = f"{socket.gethostname()}_{uuid.uuid4()}"
            self._election = Election(
                client,
                settings.own_namespace,
                identity,
                settings.lease_duration_s,
                reconnected=self._reopen,
            )
            self._writing = client.under(self._election)
        self._renderer = BoundedRenderer(renderer_of(settings, self._cache.template_sets.by_name))
        self._watch_of = relief_of(settings)
        self._reconciler: Reconciler | None = None  # of this term
        self._health = health.Health()
        self._watchdog = Watchdog(
            self._queue,
            self._health,
            partial(write_down_anew, settings.kubeconfig, settings.context, settings.own_namespace)
            if self._election is not None
            else None,
        )
        self._terms: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.stop = asyncio.Event()
        self.failure: BaseException | None = None

    def registry(self) -> kopf.OperatorRegistry:
        """Register the handlers of the process; none is about an object, so none leaves a trace on one."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._clean_up)
        return registry

    async def _login(self, **_: Any) -> kopf.ConnectionInfo:  # noqa: ANN401 (kopf's own signature)
        credentials = await self._client.credentials()
        return kopf.ConnectionInfo(
            server=credentials.server,
            ca_path=credentials.ca_path,
            insecure=credentials.insecure,
            scheme="Bearer" if credentials.token else None,
            token=credentials.token,
            certificate_path=credentials.certificate_path,
            private_key_path=credentials.private_key_path,
            proxy_url=credentials.proxy_url,
        )

    async def _start(self, **_: Any) -> None:  # noqa: ANN401 (kopf's own signature)
        """Fill the caches, then lead, or stand by until it is our turn."""
        gc.set_threshold(_GARBAGE_AT_START)
        metrics.count_nodes(self._cache.count_nodes)
        metrics.queue_keys.set_function(lambda: len(self._queue) if self._queue.served else 0)
        REGISTRY.register(metrics.Watches(self._restarts, self._failing))
        metrics.leads(now=False)
        self._spawn(self._look_after_health())
        self._watchdog.begin()
        for reflector in self._reflectors:
            self._spawn(reflector.run())
        await self._fill()
        self._cache.find_vanished()
        # What was imported and listed stays: looking for garbage in it would stop every reconcile for 0.1 s,
        # again and again (docs/performance.md).
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        logger.info("watching: %d pods, %d nodes", len(self._cache.pods), len(self._cache.nodes))
        self._spawn(self._crowded.run())
        if self._election is not None:
            self._spawn(self._election.run())
        self._terms = self._spawn(self._serve_terms())

    def listen(self) -> None:
        """Serve metrics and probes. Raises SplitterError when a port is taken, or a certificate is none."""
        address = self._settings.listen_address or default_address()
        try:
            if self._settings.metrics_port:
                tls, client_ca = self._settings.metrics_tls, self._settings.metrics_client_ca
                scrapes.serve(self._settings.metrics_port, tls, client_ca, address)
            if self._settings.http_port:
                health.serve(self._health, self._settings.http_port, address)
        except OSError as error:
            message = (
                f"cannot serve ({error}); look at http_port, metrics_port (0: none), listen_address and"
                " metrics_tls"
            )
            raise SplitterError(Reason.INVALID_SETTINGS, message) from error

    def _reopen(self, anew: bool) -> None:  # noqa: FBT001 (the election's only word)
        """Open all watches again: the API server was away for this process.

        A stream that was cut off without a word looks like one in which nothing happens.
        """
        for reflector in self._reflectors:
            reflector.reopen(anew=anew)

    async def _fill(self) -> None:
        optional = [reflector for reflector in self._reflectors if not reflector.awaited]
        if missing := await self._views.filled(_SYNC_S):
            late = ", ".join(f"{one.path} ({one.error or 'no answer yet'})" for one in missing)
            message = f"could not list {late} within {_SYNC_S:.0f} s; check the rights in manifests/rbac.yaml"
            self.failure = SplitterError(Reason.API_UNREACHABLE, message)
            raise kopf.PermanentError(message)
        with suppress(TimeoutError):
            await _synced(optional, _OPTIONAL_SYNC_S)

    async def _serve_terms(self) -> None:
        """Reconcile whenever this process leads, and only then."""
        if self._election is None:
            await self._term(after_others=False)
            return
        while True:
            await self._election.gained()
            term = asyncio.create_task(self._term(after_others=True))
            lost = asyncio.create_task(self._election.lost())
            try:
                await asyncio.wait((term, lost), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _ended(lost)
                await _ended(term)
            if not term.cancelled():
                term.result()  # it ends by itself only with a fault

    async def _term(self, *, after_others: bool) -> None:
        """Lead: first see what the last leader wrote, then reconcile until cancelled.

        A watched namespace that cannot be seen yet keeps the others for a moment only.
        """
        metrics.leads(now=True)
        self._views.begin()
        self._cache.applied.forget_all()
        try:
            await self._views.catch_up(after_others=after_others)
            async with asyncio.TaskGroup() as group:
                entering = [
                    group.create_task(self._enter(namespace, after_others=after_others))
                    for namespace in self._views.namespaces
                ]
                if entering:
                    await asyncio.wait(entering, timeout=_OPTIONAL_SYNC_S)
                await self._reconcile()
        finally:
            metrics.leads(now=False)

    async def _enter(self, namespace: str, *, after_others: bool) -> None:
        """Look after a namespace as soon as it can be seen; what was asked for until then is forgotten."""
        await self._views.catch_up(namespace, after_others=after_others)
        if self._queue.served:
            for key in self._cache.workloads():
                if key.namespace == namespace:
                    self._queue.add(key)
            self._cache.put_endangered_first()

    def _restarts(self) -> Counter[str]:
        """Count, by the kind that is watched, how often a watch had to begin anew; called by scrapes."""
        restarts: Counter[str] = Counter()
        for reflector in self._reflectors:
            restarts[reflector.path.plural] += reflector.restarts
        return restarts

    def _failing(self) -> Counter[tuple[str, str]]:
        """Count, by kind and namespace, the watches without which something stands still."""
        return Counter((one.path.plural, one.namespace) for one in self._views.failing())

    async def _reconcile(self) -> None:
        rules = rules_of(self._settings)
        self._reconciler = reconciler = Reconciler(
            self._queue,
            Observer(self._client, self._cache, rules.reservations),
            Writer(self._writing, self._cache),
            self._renderer,
            rules=rules,
            relief=self._watch_of and self._watch_of(rules, self._client, self._cache, self._queue.add),
            resync_s=self._settings.resync_s,
            views=self._views,
            moving=[one.source for one in self._cache.splits.values() if one.state in _ON_THE_MOVE],
        )
        for record in list(self._cache.template_sets.store.values()):
            reconciler.validate_template_set(record)
        if self._election is not None:
            leave_alone(self._queue, self._election.lease)
        for key in self._cache.workloads():
            self._queue.add(key)
        self._cache.put_endangered_first()
        self._queue.serve(served=True)
        logger.info("reconciling: %d workloads", len(self._queue))
        try:
            await reconciler.run(self._settings.workers, self._settings.emergency_workers)
        finally:
            self._queue.serve(served=False)
            self._reconciler = None

    def _validate_template_set(self, record: TemplateSetRecord) -> None:
        if self._reconciler is not None:
            self._reconciler.validate_template_set(record)

    async def _clean_up(self, **_: Any) -> None:  # noqa: ANN401 (kopf's own signature)
        """Stop reconciling, let what was sent arrive, hand over the lease, leave."""
        self.stop.set()  # kopf would wait 5 s for its own task that waits for this flag
        self._show_health()
        if self._terms is not None:
            await _ended(self._terms)
        self._renderer.close()
        settled = await self._writing.settled(_SETTLE_S)
        for task in self._tasks:
            await _ended(task)
        if self._election is not None and settled:
            await self._election.release()

    async def _look_after_health(self) -> None:
        while True:
            self._show_health()
            await asyncio.sleep(_LOOK_S)

    def _show_health(self) -> None:
        shown = checks(
            self._reflectors,
            self._queue,
            self._election,
            stopping=self.stop.is_set(),
            waiting_s=self._views.waiting_s,
        )
        self._health.show(shown)

    def _spawn(self, work: Any) -> asyncio.Task[None]:  # noqa: ANN401 (any coroutine)
        task: asyncio.Task[None] = asyncio.create_task(work)
        task.add_done_callback(self._fell)
        self._tasks.append(task)
        return task

    def _fell(self, task: asyncio.Task[None]) -> None:
        """Leave when a part that must run for ever has ended: half a splitter is worse than none."""
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a part of splitter ended and the process leaves", exc_info=error)
            self.failure = error
            self.stop.set()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end, whatever it is."""
    task.cancel()
    await asyncio.wait((task,))
