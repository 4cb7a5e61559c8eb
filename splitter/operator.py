"""The doorway: starts everything, and stops it.

`cli.run` calls `run`. It connects and probes first (kopf would try for a minute and leave with a
traceback), then lets kopf run the process: start-up fills the caches and starts the reconciler, probes
answer, clean-up stops. The labelled sources come through a reflector too: after a gap kopf never says
what has disappeared (docs/adr/0004). Nothing is decided here.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import kopf
from prometheus_client import start_http_server

from splitter.assembly import cache_of, renderer_of, rules_of
from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.kube.access import check_access
from splitter.kube.apply import Writer
from splitter.kube.client import Client, connect, probe
from splitter.kube.observe import Observer
from splitter.kube.watch import Reflector
from splitter.reconciler import Reconciler
from splitter.reconciler.queue import WorkQueue
from splitter.report import metrics
from splitter.settings import Settings

logger = logging.getLogger("splitter")

_SYNC_S = 120.0
# What splitter does without may come a little later; a first look with it is the better one.
_OPTIONAL_SYNC_S = 2.0


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises SplitterError with what to do when it cannot start."""
    async with AsyncExitStack() as stack:
        client = await connect(
            settings.kubeconfig,
            settings.context,
            settings.api_timeout_s,
            connections=settings.workers + settings.emergency_workers + 64,
            answered=metrics.count_request,
        )
        stack.push_async_callback(client.close)
        version = await probe(client)
        await check_access(client, settings.watch_namespaces)
        logger.info("connected to Kubernetes %s at %s", version, client.server)
        doorway = _Doorway(client, settings)
        await kopf.operator(
            registry=doorway.registry(),
            settings=_kopf_settings(),
            clusterwide=not settings.watch_namespaces,
            namespaces=list(settings.watch_namespaces),
            standalone=True,
            stop_flag=doorway.stop,
            liveness_endpoint=f"http://0.0.0.0:{settings.http_port}/healthz" if settings.http_port else None,
        )
        if doorway.failure is not None:
            raise doorway.failure


def _kopf_settings() -> kopf.OperatorSettings:
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.scanning.disabled = True  # it has nothing to watch: the reflectors do
    return found


async def _synced(reflectors: Sequence[Reflector], deadline_s: float) -> None:
    async with asyncio.timeout(deadline_s):
        await asyncio.gather(*(reflector.synced.wait() for reflector in reflectors))


class _Doorway:
    """What lives as long as the process, and the handlers that kopf calls."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._queue = WorkQueue(settings.node_coalesce_s)
        self._cache = cache_of(settings, self._queue.add)
        self._reflectors = self._cache.reflectors(client, tuple(settings.watch_namespaces))
        self._reconciler = Reconciler(
            self._queue,
            Observer(client, self._cache),
            Writer(client, self._cache),
            renderer_of(settings, self._cache.template_sets.by_name),
            rules=rules_of(settings),
            resync_s=settings.resync_s,
        )
        self._cache.template_sets.announce_to(self._reconciler.inspect)
        self._tasks: list[asyncio.Task[None]] = []
        self.stop = asyncio.Event()
        self.failure: BaseException | None = None

    def registry(self) -> kopf.OperatorRegistry:
        """Register the handlers of the process; none is about an object, so none leaves a trace on one."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._clean_up)
        kopf.on.probe(registry=registry, id="caches")(self._probe)
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
        """Fill the caches, then let the reconciler look at everything that may be ours."""
        metrics.count_nodes(self._cache.count_nodes)
        metrics.count_queue(lambda: len(self._queue))
        metrics.count_watches(self._restarts)
        if self._settings.metrics_port:
            start_http_server(self._settings.metrics_port)
        for reflector in self._reflectors:
            self._spawn(reflector.run())
        needed = [reflector for reflector in self._reflectors if reflector.awaited]
        optional = [reflector for reflector in self._reflectors if not reflector.awaited]
        try:
            await _synced(needed, _SYNC_S)
        except TimeoutError as error:
            late = ", ".join(
                f"{reflector.path} ({reflector.error or 'no answer yet'})"
                for reflector in needed
                if not reflector.synced.is_set()
            )
            message = f"could not list {late} within {_SYNC_S:.0f} s; check the rights in manifests/rbac.yaml"
            self.failure = SplitterError(Reason.API_UNREACHABLE, message)
            raise kopf.PermanentError(message) from error
        with suppress(TimeoutError):
            await _synced(optional, _OPTIONAL_SYNC_S)
        self._cache.find_vanished()
        self._wake_all()
        metrics.leads(now=True)
        self._spawn(self._reconciler.run(self._settings.workers, self._settings.emergency_workers))
        logger.info("watching: %d pods, %d nodes", len(self._cache.pods), len(self._cache.nodes))

    async def _clean_up(self, **_: Any) -> None:  # noqa: ANN401 (kopf's own signature)
        self.stop.set()  # kopf would wait 5 s for its own task that waits for this flag
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def _probe(self, **_: Any) -> dict[str, int]:  # noqa: ANN401 (kopf's own signature)
        return {"queue": len(self._queue), "splits": len(self._cache.splits), "pods": len(self._cache.pods)}

    def _restarts(self) -> Counter[str]:
        """Count, by the kind that is watched, how often a watch had to begin anew; called by scrapes."""
        found: Counter[str] = Counter()
        for reflector in self._reflectors:
            found[reflector.path.rpartition("/")[2]] += reflector.restarts
        return found

    def _wake_all(self) -> None:
        for key in self._cache.workloads():
            self._queue.add(key)

    def _spawn(self, work: Any) -> None:  # noqa: ANN401 (any coroutine)
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Leave when a part that must run for ever has ended: half a splitter is worse than none."""
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a part of splitter ended and the process leaves", exc_info=error)
            self.failure = error
            self.stop.set()
