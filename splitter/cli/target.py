"""Which workloads a verb is about, with kubectl's habits: `-n`, `-A`, and `deploy/web` or `web`.

Every verb that looks at the cluster uses this and `connected`, so that they read alike.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from splitter.core.model import Key
from splitter.kube.client import Client, connect, probe
from splitter.settings import Settings, load_settings

_KINDS = {"deploy": "Deployment", "deployment": "Deployment", "deployments": "Deployment"}

NamespaceOption = typer.Option(None, "--namespace", "-n", help="The namespace; without it, default.")
AllOption = typer.Option(False, "--all-namespaces", "-A", help="All namespaces.")
ContextOption = typer.Option(None, "--context", help="The kubeconfig's context.")
SettingsOption = typer.Option(None, "--settings", help="The controller's settings file, to look as it looks.")


@dataclass(frozen=True, slots=True)
class Target:
    """What a verb was asked about; no namespace means all, no name every workload."""

    namespace: str | None
    name: str | None

    def includes(self, key: Key) -> bool:
        """Whether a workload was asked about."""
        return self.namespace in {None, key.namespace} and self.name in {None, key.name}

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces to read; none means all."""
        return (self.namespace,) if self.namespace else ()


def target_of(workload: str | None, namespace: str | None, *, everywhere: bool) -> Target:
    """Read `deploy/web`, `deployment/web` or `web`.

    Raises typer.BadParameter for another kind, or for one workload in all namespaces.

    >>> target_of("deploy/web", "shop", everywhere=False)
    Target(namespace='shop', name='web')
    """
    if workload is None:
        return Target(None if everywhere else namespace or "default", None)
    if everywhere:
        raise typer.BadParameter("one workload is in one namespace: leave out -A, or the name")
    kind, _, name = workload.rpartition("/")
    if kind and kind.lower().removesuffix(".apps") not in _KINDS:
        raise typer.BadParameter(f"{workload}: splitter splits Deployments; write deploy/NAME")
    return Target(namespace or "default", name)


@asynccontextmanager
async def connected(
    settings_file: Path | None, context: str | None
) -> AsyncIterator[tuple[Client, Settings]]:
    """Connect as kubectl would: KUBECONFIG, else ~/.kube/config, else the pod's service account."""
    settings = load_settings(settings_file)
    named = settings.kubeconfig or os.environ.get("KUBECONFIG")
    usual = Path.home() / ".kube" / "config"
    kubeconfig = Path(named) if named else usual if usual.exists() else None
    client = await connect(kubeconfig, context or settings.context, settings.api_timeout_s, connections=32)
    try:
        await probe(client)
        yield client, settings
    finally:
        await client.close()
