"""The cluster, namespace and user that a verb is asked about, and the connection to them.

`cluster_options` makes a `Cluster` of the command line. Without `-n` it is the namespace of the kubeconfig's
context, as for kubectl. Nothing here writes.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from splitter.core.labels_annotations import SOURCES_SELECTOR
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.exits import MendableError
from splitter.kube.access import check_connection
from splitter.kube.client import ApiError, Client
from splitter.kube.connect import connect
from splitter.kube.kubeconfig import namespace_of
from splitter.kube.paths import workloads
from splitter.plugin.cli.target import Target, target_of
from splitter.settings import Settings
from splitter.settings.loading import load_settings

_CONNECTIONS = 32  # of `plan`, which reads many kinds at once


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options that select cluster, namespace and user; None where one was not given."""

    namespace: str | None = None
    everywhere: bool = False
    selector: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None
    settings_file: Path | None = None

    def target(self, workload: str | None) -> Target:
        """Return what is asked about. Raises typer.BadParameter when it cannot be meant."""
        if workload is not None and self.selector is not None:
            raise typer.BadParameter("name a workload, or choose by -l, not both")
        namespace = self.namespace
        if namespace is None and not self.everywhere:
            settings = load_settings(self.settings_file)
            path = self.kubeconfig or settings.kubeconfig or kubeconfig_path()
            namespace = namespace_of(path, self.context or settings.context)
        return target_of(workload, namespace, everywhere=self.everywhere)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[Client, Settings]]:
        """Connect as kubectl would: --kubeconfig, KUBECONFIG, ~/.kube/config, the pod's service account.

        Raises SplitterError when nobody answers, MendableError with the API server's words for what a verb
        does not know better.
        """
        settings = load_settings(self.settings_file)
        path = self.kubeconfig or settings.kubeconfig or kubeconfig_path()
        context = self.context or settings.context
        client = await connect(path, context, settings.api_timeout_s, connections=_CONNECTIONS)
        try:
            await check_connection(client)
            yield client, settings
        except ApiError as error:
            raise MendableError(f"the API server answered: {error}") from error
        finally:
            await client.close()

    async def chosen(self, client: Client, target: Target) -> Callable[[Key], bool]:
        """Return which workloads are asked about: by name and namespace, and by their labels with `-l`.

        Raises ApiError: 400 for a selector that cannot be read, 403 when workloads may not be listed.
        """
        if self.selector is None:
            return target.includes
        keys = await labelled(client, target.namespaces, self.selector)
        return lambda key: target.includes(key) and key in keys

    async def sources(self, client: Client, namespaces: tuple[str, ...]) -> dict[Key, str]:
        """Return the UID of each split workload that is asked about with `-l`, `-A` or a namespace alone.

        `namespaces`: where to look; none means all. Raises ApiError as `chosen`.
        """
        asked = ",".join(filter(None, (SOURCES_SELECTOR, self.selector)))
        return await labelled(client, namespaces, asked)


async def labelled(client: Client, namespaces: tuple[str, ...], selector: str) -> dict[Key, str]:
    """Return the UID of each workload with these labels, by namespace and name. Raises ApiError."""
    sources = {
        Key(kind, one["metadata"]["namespace"], one["metadata"]["name"]): str(one["metadata"]["uid"])
        for kind in (DEPLOYMENT, STATEFUL_SET)
        for namespace in namespaces or ("",)
        for one in (await client.get(workloads(kind, namespace), labelSelector=selector))["items"]
    }
    return dict(sorted(sources.items(), key=lambda one: (one[0].namespace, one[0].name, one[0].kind)))


def kubeconfig_path() -> Path | None:
    """Return where kubectl would look: KUBECONFIG, which may name several files, or ~/.kube/config."""
    if named := os.environ.get("KUBECONFIG"):
        # Like kubectl: of several files some may be missing; with none there, `connect` says so.
        there = [file for file in named.split(os.pathsep) if Path(file).exists()]
        return Path(os.pathsep.join(there) or named)
    usual = Path.home() / ".kube" / "config"
    return usual if usual.exists() else None
