"""`splitter dashboard`: a page on this machine that shows what splitter does, live."""

import asyncio
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.exits import Exit, faults_as_sentences
from splitter.kube.client import ApiError
from splitter.kube.records import SplitRecord
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.explain import explained
from splitter.plugin.cli.members import contexts_in
from splitter.plugin.cli.plan import lines_of_plan
from splitter.plugin.report.meanings import meanings
from splitter.plugin.simulate.trace import Trace, read_trace

if TYPE_CHECKING:
    from splitter.plugin.dashboard import Model, Served, Simulator, Views, Wishes
    from splitter.plugin.kube.cluster_view import ClusterView
    from splitter.plugin.kube.hub_view import HubView

_PORT_MAX = 65_535


@asks_cluster()
def dashboard(
    port: int = typer.Option(0, "--port", min=0, max=_PORT_MAX, help="The port on 127.0.0.1; 0: any."),
    open_: bool = typer.Option(False, "--open", help="Open the page in a browser."),
    trace: Path | None = typer.Option(None, help="A trace for the simulator, as `splitter simulate` reads."),
    contexts: str | None = typer.Option(
        None, "--contexts", help="Several clusters on one page: their contexts, as m1,m2."
    ),
    hub: str | None = typer.Option(
        None, "--hub", help="With --contexts: the context of Karmada, whose wish is shown beside the sum."
    ),
    *,
    cluster: Cluster,
) -> None:
    """Show a page of what splitter does, live, until Ctrl-C.

    It is on 127.0.0.1 only, read-only, and sees what you may see. Its address has a secret in it.

    Exit code 0; 1 when the port is taken or the cluster does not answer.
    """
    names = _several(contexts, hub, cluster)
    with faults_as_sentences("dashboard"):
        played = read_trace(trace) if trace is not None else None
        meanings()  # an installation without its page is no matter of each view
    with suppress(KeyboardInterrupt):  # how it ends
        if names:
            asyncio.run(_run_all(names, hub, cluster, port, played, open_=open_))
        else:
            asyncio.run(_run(cluster, port, played, open_=open_))


def _several(contexts: str | None, hub: str | None, cluster: Cluster) -> tuple[str, ...]:
    """Return the contexts of several clusters; none if one is shown. Raises typer.BadParameter."""
    if contexts is None:
        if hub is not None:
            raise typer.BadParameter("--hub goes with --contexts")
        return ()
    if cluster.context is not None:
        raise typer.BadParameter("name one cluster with --context, or several with --contexts")
    try:
        return contexts_in(contexts)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from None


async def _run(cluster: Cluster, port: int, trace: Trace | None, *, open_: bool) -> None:
    from splitter.plugin.dashboard import serve

    async with _connected(cluster, trace) as one, one.view.followed():
        await _until_ended(serve(one.model, one.views, one.simulator, port), port, open_=open_)


async def _run_all(
    names: Sequence[str], hub: str | None, cluster: Cluster, port: int, trace: Trace | None, *, open_: bool
) -> None:
    """Follow several clusters; one that does not answer is named on the page, and waited for."""
    from splitter.plugin.dashboard import Clusters, ClustersViews, Member, serve_clusters

    async with AsyncExitStack() as stack:
        each = [
            await stack.enter_async_context(_connected(replace(cluster, context=name), trace, name))
            for name in names
        ]
        wishes, hubs = None, []
        if hub is not None:
            asked, wishes = await stack.enter_async_context(_asked(hub, cluster))
            hubs = [asked.followed()]
        # All at once: each waits for its first lists, longest for one that is away.
        following = [*(one.view.followed() for one in each), *hubs]
        await asyncio.gather(*map(stack.enter_async_context, following))
        clusters = Clusters([Member(name, one.model) for name, one in zip(names, each, strict=True)], wishes)
        where = f"{', '.join(names)} · {cluster.target(None).namespace or 'all namespaces'}"
        members = [(one.model, one.views, one.simulator) for one in each]
        page = serve_clusters(ClustersViews(clusters, where), members, port)
        await _until_ended(page, port, open_=open_)


@dataclass(frozen=True, slots=True)
class _Shown:
    """One cluster, and what shows it."""

    view: "ClusterView"
    model: "Model"
    views: "Views"
    simulator: "Simulator"


@asynccontextmanager
async def _connected(cluster: Cluster, trace: Trace | None, name: str = "") -> AsyncIterator[_Shown]:
    """Yield what shows a cluster; with a name it is one of several, and need not answer yet."""
    from splitter.assembly import assess_of, rules_of
    from splitter.plugin.dashboard import Model, Simulator, Tellers, Views
    from splitter.plugin.kube.cluster_view import ClusterView

    target = cluster.target(None)
    async with cluster.connected(at_once=not name) as (client, settings):
        rules, model = rules_of(settings), Model()
        namespaces = target.namespaces or settings.watch_namespaces
        wanted = await cluster.chosen(client, target)
        view = ClusterView(client, namespaces, assess_of(settings), model.changed, wanted)
        model.look(view)
        where = f"{name or client.server} · {target.namespace or 'all namespaces'}"
        tellers = Tellers(explain_record, partial(_plan, cluster))
        views = Views(model, tellers, where, above=bool(name))
        yield _Shown(view, model, views, Simulator(rules.defaults, rules.tuning, trace))


@asynccontextmanager
async def _asked(hub: str, cluster: Cluster) -> AsyncIterator[tuple["HubView", "Wishes"]]:
    """Yield the hub, and what it asks for."""
    from splitter.plugin.dashboard import Wishes
    from splitter.plugin.kube.hub_view import HubView

    async with replace(cluster, context=hub).connected(at_once=False) as (client, _):
        view = HubView(client, cluster.target(None).namespaces)
        yield view, Wishes(hub, view.replicas, lambda: view.missing, lambda: view.changes)


async def _until_ended(page: AbstractAsyncContextManager["Served"], port: int, *, open_: bool) -> None:
    """Serve a page until Ctrl-C. Raises typer.Exit if the port cannot be used."""
    try:
        async with page as served:
            typer.echo(f"The page is at {served.address}")
            typer.echo("Who knows the address sees it, on this machine only. Ctrl-C ends it.")
            with opened(served.address) if open_ else nullcontext():
                await asyncio.Event().wait()
    except OSError as fault:
        sys.stderr.write(f"splitter dashboard: port {port} cannot be used: {fault.strerror}\n")
        raise typer.Exit(Exit.MENDABLE) from None


def explain_record(record: SplitRecord) -> list[str]:
    """Return what `splitter explain` says of a Split."""
    return explained(record.source, record.view.status, record.spec.ordinals)


async def _plan(cluster: Cluster, key: Key) -> list[str]:
    """Return what `splitter plan` says of a workload, or why it cannot."""
    try:
        return await lines_of_plan(cluster, key)
    except ApiError as error:
        return [f"no plan can be made: the API server answered: {error}"]
    except SplitterError as error:
        return [f"no plan can be made: {error.message}"]


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Open the address in a browser, from a file that only its owner can read.

    An address among the arguments of a process could be read by everybody on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="splitter-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">', encoding="utf-8"
        )
        if not webbrowser.open(file.as_uri()):
            sys.stderr.write("no browser could be opened; open the address above\n")
        yield
