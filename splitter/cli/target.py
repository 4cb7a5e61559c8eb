"""Which workloads a verb is about, with kubectl's habits: `-n`, `-A`, and `deploy/web` or `web`.

Every verb that looks at a cluster uses this, through `Cluster.target`, so that they read alike.
"""

from dataclasses import dataclass

import typer

from splitter.core.model import Key

_KINDS = {"deploy": "Deployment", "deployment": "Deployment", "deployments": "Deployment"}


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
