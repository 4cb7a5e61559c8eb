"""Parses which workloads a command is about, as kubectl does: `-n`, `-A`, `deploy/web`, `sts/db` or `web`.

Every verb that looks at a cluster uses this, through `Cluster.target`, so that they read alike.
"""

from dataclasses import dataclass, replace

import typer

from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name

_KINDS = {
    **dict.fromkeys(("deploy", "deployment", "deployments"), DEPLOYMENT),
    **dict.fromkeys(("sts", "statefulset", "statefulsets"), STATEFUL_SET),
}
_SHORT = {DEPLOYMENT: "deploy", STATEFUL_SET: "sts"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a verb was asked about; no namespace means all, no name every workload, no kind any."""

    namespace: str | None
    name: str | None
    kind: str | None = None

    def includes(self, key: Key) -> bool:
        """Whether a workload was asked about."""
        asked = (self.namespace, self.name, self.kind)
        return all(
            one in {None, its} for one, its in zip(asked, (key.namespace, key.name, key.kind), strict=True)
        )

    @property
    def key(self) -> Key:
        """The one workload that was asked about; without its kind a Deployment."""
        return Key(self.kind or DEPLOYMENT, self.namespace or "default", self.name or "")

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys that a named workload can have: of the given kind, else of either kind."""
        if self.name is None:
            return ()
        return tuple(replace(self.key, kind=kind) for kind in _SHORT if self.kind in {None, kind})

    @property
    def words(self) -> str:
        """That workload as it is said in a sentence: `deployment shop/web`."""
        return f"{self.key.kind.lower()} {self.key.namespace}/{self.key.name}"

    @property
    def short(self) -> str:
        """That workload as it is typed: `deploy/web`."""
        return f"{_SHORT[self.key.kind]}/{self.key.name}"

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces to read; none means all."""
        return (self.namespace,) if self.namespace else ()


def target_of(workload: str | None, namespace: str | None, *, everywhere: bool) -> Target:
    """Read `deploy/web`, `deployment/web`, `sts/db` or `web`.

    Raises typer.BadParameter for another kind, for one workload in all namespaces, or for a namespace of a
    name that there cannot be.

    >>> target_of("deploy/web", "shop", everywhere=False)
    Target(namespace='shop', name='web', kind='Deployment')
    """
    if namespace:
        as_namespace(namespace)
    if workload is None:
        return Target(None if everywhere else namespace or "default", None)
    if everywhere:
        raise typer.BadParameter("one workload is in one namespace: leave out -A, or the name")
    written, _, name = workload.rpartition("/")
    kind = _KINDS.get(written.lower().removesuffix(".apps"))
    if written and kind is None:
        raise typer.BadParameter(
            f"{workload}: splitter splits Deployments and StatefulSets; write deploy/NAME or sts/NAME"
        )
    return Target(namespace or "default", name, kind)


def as_namespace(name: str) -> str:
    """Return the name of a namespace. Raises typer.BadParameter for one that no namespace can have."""
    if not is_name(name):
        raise typer.BadParameter(f"{name[:80]!r} is no name of a namespace: a-z, 0-9 and - in between")
    return name
