"""`splitter uninstall`: the options of a person who gives workloads back (`splitter.giving_back`)."""

import typer

from splitter.giving_back import give_back
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster


@asks_cluster()
def uninstall(
    timeout_s: float = typer.Option(600, "--timeout", min=1, help="Seconds to wait."), *, cluster: Cluster
) -> None:
    """Give every workload back, and wait for it.

    It removes the labels. The running controller gives the workloads back.

    With settings that name `watch_namespaces`, all namespaces are those.
    Exit code 0 when all is given back; 4 when some are not within the time.
    """
    namespace = cluster.target(None).namespace
    raise typer.Exit(give_back(cluster.connected, namespace, cluster.selector, timeout_s))
