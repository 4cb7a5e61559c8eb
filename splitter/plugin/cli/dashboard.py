"""`splitter dashboard`: a page on this machine that shows what splitter does, live."""

import asyncio
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from html import escape
from pathlib import Path

import typer

from splitter.core.errors import SplitterError
from splitter.core.names import Key
from splitter.exits import Exit, faults_as_sentences
from splitter.kube.client import ApiError
from splitter.kube.records import SplitRecord
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.explain import explained
from splitter.plugin.cli.plan import lines_of_plan
from splitter.plugin.report.meanings import meanings
from splitter.plugin.simulate.trace import Trace, read_trace

_PORT_MAX = 65_535


@asks_cluster()
def dashboard(
    port: int = typer.Option(0, "--port", min=0, max=_PORT_MAX, help="The port on 127.0.0.1; 0: any."),
    open_: bool = typer.Option(False, "--open", help="Open the page in a browser."),
    trace: Path | None = typer.Option(None, help="A trace for the simulator, as `splitter simulate` reads."),
    *,
    cluster: Cluster,
) -> None:
    """Show a page of what splitter does, live, until Ctrl-C.

    It is on 127.0.0.1 only, read-only, and sees what you may see. Its address has a secret in it.

    Exit code 0; 1 when the port is taken or the cluster does not answer.
    """
    with faults_as_sentences("dashboard"):
        played = read_trace(trace) if trace is not None else None
        meanings()  # an installation without its page is no matter of each view
    with suppress(KeyboardInterrupt):  # how it ends
        asyncio.run(_run(cluster, port, played, open_=open_))


async def _run(cluster: Cluster, port: int, trace: Trace | None, *, open_: bool) -> None:
    from splitter.assembly import assess_of, rules_of
    from splitter.plugin.dashboard import Model, Simulator, Tellers, Views, serve
    from splitter.plugin.kube.cluster_view import ClusterView

    target = cluster.target(None)
    async with cluster.connected() as (client, settings):
        rules, model = rules_of(settings), Model()
        namespaces = target.namespaces or settings.watch_namespaces
        wanted = await cluster.chosen(client, target)
        view = ClusterView(client, namespaces, assess_of(settings), model.changed, wanted)
        model.look(view)
        where = f"{client.server} · {target.namespace or 'all namespaces'}"
        views = Views(model, Tellers(explain_record, partial(_plan, cluster)), where)
        simulator = Simulator(rules.defaults, rules.tuning, trace)
        try:
            async with view.followed(), serve(model, views, simulator, port) as served:
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
