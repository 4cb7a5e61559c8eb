"""The cluster, namespace and user that a verb is asked about, and the connection to them.

`cluster_options` makes a `Cluster` of the command line. Without `-n` it is the namespace of the kubeconfig's
context, as for kubectl. Nothing here writes.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import typer

from splitter.connection import connected
from splitter.core.labels_annotations import SOURCES_SELECTOR
from splitter.core.names import Key
from splitter.kube.as_user import labelled
from splitter.kube.client import Client
from splitter.kube.kubeconfig import kubeconfig_path, namespace_of
from splitter.plugin.cli.target import Target, target_of
from splitter.settings import Settings
from splitter.settings.loading import load_settings


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

    def targets(self, workloads: list[str] | None) -> list[Target]:
        """Return what several workloads, or `-l` or `-A` alone, ask about. Raises typer.BadParameter."""
        if not (workloads or self.selector or self.everywhere):
            raise typer.BadParameter("name a workload, or choose several by -l or -A")
        return [self.target(one) for one in workloads or (None,)]

    async def named(self, client: Client, settings: Settings, targets: list[Target]) -> list[Target]:
        """Return `targets` by name: one without a name is all split workloads there. Raises as `chosen`."""
        if [target.name for target in targets] != [None]:
            return targets
        sources = await self.sources(client, targets[0].namespaces or settings.watch_namespaces)
        return [Target(key.namespace, key.name, key.kind) for key in sources]

    def connected(self, *, at_once: bool = True) -> AbstractAsyncContextManager[tuple[Client, Settings]]:
        """Connect as kubectl would (`splitter.connection`)."""
        return connected(self.settings_file, self.kubeconfig, self.context, at_once=at_once)

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
