"""`splitter estimator`: Karmada's accurate estimator of one member cluster, which knows spot and twins.

Karmada's scheduler and descheduler ask it over gRPC how many more replicas fit, and how many find no place.
It follows the cluster as the controller does, with caches of its own, and writes nothing.
"""

import asyncio
import logging
import signal
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from splitter.assembly import cache_of, node_presets_of
from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.estimator.answers import Estimator
from splitter.exits import MendableError
from splitter.kube.access import check_connection, patiently
from splitter.kube.client import Client
from splitter.kube.connect import connect
from splitter.kube.parse.pods import pod_request
from splitter.kube.views import Views
from splitter.kube.watch import Reflector
from splitter.report.serving import default_address
from splitter.run import configured
from splitter.settings import Settings

logger = logging.getLogger("splitter.estimator")

# What only the controller asks about. A member without splitter's CRDs is answered for, too.
_UNUSED: Final = frozenset({"namespaces", "placements", "poddisruptionbudgets", "splits"})
_LOOK_S: Final = 1.0
_SYNC_S: Final = 120.0
_PATIENCE_S: Final = 20.0
_SETTLE_S: Final = 2.0
_CONNECTIONS: Final = 64


def run(settings: Path | None) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises SplitterError, MendableError if grpcio is not installed."""
    try:
        from splitter.estimator import server  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as missing:
        if missing.name != "grpc":
            raise
        raise MendableError("the estimator needs grpcio: pip install 'splitter[karmada]'") from missing
    loaded = configured(settings)
    if not loaded.estimator_cluster:
        message = "estimator_cluster is empty; write the name that Karmada has for this cluster"
        raise SplitterError(Reason.INVALID_SETTINGS, message)
    asyncio.run(_serve(loaded))


class Following:
    """The caches of one estimator, and what keeps them in step with the cluster."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.cache = cache_of(settings, self._changed)
        # Of all namespaces, whichever the controller watches: every pod takes room.
        every = self.cache.reflectors(client, ())
        self.reflectors = [one for one in every if one.path.plural not in _UNUSED]
        self._views = Views(self.reflectors)
        presets = node_presets_of(settings)
        tolerations = pod_request({"tolerations": list(presets.spot_tolerations)}).tolerations
        self.estimator = Estimator(settings.estimator_cluster, self.cache, tolerations, self._unknown)

    async def filled(self) -> list[Reflector]:
        """Wait for the first lists, and look at what there is. Returns the watches that have none."""
        late = await self._views.filled(_SYNC_S)
        if not late:
            self.cache.find_vanished()
            for key in self.cache.workloads():
                self._changed(key, urgent=False)
        return late

    async def look(self) -> None:
        """Look at what has changed, each second, until cancelled."""
        while True:
            self.estimator.look()
            await asyncio.sleep(_LOOK_S)

    def _changed(self, key: Key, *, urgent: bool) -> None:
        self.estimator.changed(key, urgent=urgent)

    def _unknown(self) -> str:
        if failing := self._views.failing():
            return f"what is known of {failing[0].path} is old"
        if self.cache.view_broken:
            return "more than half of the on-demand nodes are not Ready, so nothing is believed"
        return ""


async def _serve(settings: Settings) -> None:
    serving = asyncio.create_task(follow(settings))
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


async def follow(settings: Settings) -> None:
    """Fill the caches, then answer until cancelled, or until a part ends with a fault."""
    from splitter.estimator.server import serve  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        client = await connect(settings.kubeconfig, settings.context, settings.api_timeout_s, _CONNECTIONS)
        stack.push_async_callback(client.close)
        await patiently(lambda: check_connection(client), 0 if settings.kubeconfig else _PATIENCE_S)
        following = Following(client, settings)
        watches = asyncio.gather(*(one.run() for one in following.reflectors))
        stack.callback(watches.cancel)
        if late := await following.filled():
            message = (
                f"could not list {late[0].path} within {_SYNC_S:.0f} s; check the rights of the estimator"
            )
            raise SplitterError(Reason.API_UNREACHABLE, message)
        host = settings.listen_address or default_address()
        address = f"{f'[{host}]' if ':' in host else host}:{settings.estimator_port}"
        server, port = await serve(
            following.estimator, address, settings.estimator_tls, settings.estimator_client_ca
        )
        stack.push_async_callback(server.stop, _SETTLE_S)
        logger.info("answering for the cluster %s on port %d", settings.estimator_cluster, port)
        await asyncio.gather(watches, following.look())
