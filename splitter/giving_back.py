"""`splitter uninstall`: gives every workload back by removing its label, and waits.

It removes the label a user would remove; the running controller does the rest. With no controller
there, nothing would happen, so it says who is still split when the time is over, and how to go on.
When nothing is split in any namespace, it lets the CRD be deleted (manifests/admission/keep-crd.yaml).
With `-l` it is about the workloads with these labels alone.
"""

import asyncio
import sys
import time

import typer

from splitter.core.labels_annotations import ANNOTATION_KEEP, CRD_NAME
from splitter.core.names import Key
from splitter.exits import Exit
from splitter.kube.as_user import let_crd_go, remove_label
from splitter.kube.client import Client
from splitter.kube.lease import leading_elsewhere
from splitter.kube.paths import splits
from splitter.plugin.cli.cluster import Cluster, labelled
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.splits import key_of
from splitter.plugin.cli.target import Target

_LOOK_S = 1.0


@asks_cluster()
def uninstall(
    timeout_s: float = typer.Option(600, "--timeout", min=1, help="Seconds to wait."), *, cluster: Cluster
) -> None:
    """Give every workload back, and wait for it.

    It removes the labels. The running controller gives the workloads back.

    With settings that name `watch_namespaces`, all namespaces are those.
    Exit code 0 when all is given back; 4 when some are not within the time.
    """
    target = cluster.target(None)
    try:
        left = asyncio.run(_give_back(target, cluster, timeout_s))
    except KeyboardInterrupt:
        sys.stderr.write("\nno longer waiting; what was begun goes on: splitter status\n")
        raise typer.Exit(Exit.INTERRUPTED) from None
    if left:
        sys.stderr.write(
            f"not given back within {timeout_s:.0f} s: {', '.join(left)}. Is the controller running"
            " (kubectl -n splitter-system get pods)? Without it: docs/how-to/give-back-by-hand.md\n"
        )
        raise typer.Exit(Exit.NOT_ALL_BACK)
    typer.echo(
        "everything is given back; the controller, manifests/rbac.yaml and the CRD may go now"
        if cluster.selector is None
        else f"every workload with {cluster.selector} is given back"
    )


async def _give_back(target: Target, cluster: Cluster, timeout_s: float) -> list[str]:
    async with cluster.connected() as (client, settings):
        namespaces = target.namespaces or settings.watch_namespaces
        # Asked once: who they were, whatever becomes of their labels.
        selector = cluster.selector
        chosen = None if selector is None else await labelled(client, namespaces, selector)
        for key, uid in (await cluster.sources(client, namespaces)).items():
            await remove_label(client, key, uid)
            typer.echo(f"label removed from {key.kind.lower()} {key.namespace}/{key.name}")
        deadline = time.monotonic() + timeout_s
        while left := [key for key in await _split(client, namespaces) if chosen is None or key in chosen]:
            if time.monotonic() > deadline:
                await _tell_leader(client, settings.own_namespace)
                return [str(key) for key in left]
            await asyncio.sleep(_LOOK_S)
        if chosen is not None:
            return []
        if target.namespace is None and not await let_crd_go(client):
            sys.stderr.write(
                f"you may not change the CRD {CRD_NAME}; somebody who may has to let it go:"
                f" kubectl annotate crd {CRD_NAME} {ANNOTATION_KEEP}-\n"
            )
        return []


async def _tell_leader(client: Client, own_namespace: str) -> None:
    """Print which process leads and should have given back, and where to look."""
    if not own_namespace:
        return
    leader = await leading_elsewhere(client, own_namespace)
    leading = f"{leader} leads: its log says more" if leader else "no elected controller shows a sign of life"
    sys.stderr.write(f"{leading} (kubectl -n {own_namespace} get lease splitter)\n")


async def _split(client: Client, namespaces: tuple[str, ...]) -> list[Key]:
    """Return the workloads that still have a Split."""
    pages = [await client.get(splits(namespace)) for namespace in namespaces or ("",)]
    return [key_of(one) for page in pages for one in page["items"]]
