"""Reads names out of a kubeconfig: its contexts, and the namespace of one; and the proxy on the way there.

The command line asks, for the default of `-n` and for shell completion, before it connects and whether it
connects or not. Credentials are not looked at: `connect` leaves those to the library, which takes
half a second to import.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from splitter.core.errors import UNREADABLE

DEFAULT_NAMESPACE = "default"
# Where a pod finds its own namespace.
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def kubeconfig_path() -> Path | None:
    """Return where kubectl would look: KUBECONFIG, which may name several files, or ~/.kube/config."""
    if named := os.environ.get("KUBECONFIG"):
        # Like kubectl: of several files some may be missing; with none there, `connect` says so.
        there = [file for file in named.split(os.pathsep) if Path(file).exists()]
        return Path(os.pathsep.join(there) or named)
    usual = Path.home() / ".kube" / "config"
    return usual if usual.exists() else None


def contexts_of(path: Path | None) -> list[str]:
    """Return the names of all contexts, empty when nothing can be read."""
    return [str(context.get("name")) for part in _parts(path) for context in _dicts(part.get("contexts"))]


def namespace_of(path: Path | None, context: str | None) -> str:
    """Return the namespace of a context, or of the current one; `default` where none is written.

    Of several files the first that says something counts, as for kubectl. What cannot be read is skipped:
    whoever connects says what is wrong with it. Without a kubeconfig it is the pod's own namespace.
    """
    if path is None:
        return (
            _POD_NAMESPACE.read_text(encoding="utf-8").strip()
            if _POD_NAMESPACE.exists()
            else DEFAULT_NAMESPACE
        )
    parts = list(_parts(path))
    wanted = context or next((part["current-context"] for part in parts if part.get("current-context")), None)
    for part in parts:
        for entry in _dicts(part.get("contexts")):
            details = entry.get("context")
            if entry.get("name") == wanted and isinstance(details, dict):
                return str(details.get("namespace") or DEFAULT_NAMESPACE)
    return DEFAULT_NAMESPACE


def environment_proxy(server: str) -> str | None:
    """Return the proxy that the environment names for a server (HTTPS_PROXY, NO_PROXY), None without one."""
    address = urlsplit(server)
    if address.hostname is None or proxy_bypass(address.hostname):
        return None
    return getproxies().get(address.scheme)


def _parts(path: Path | None) -> Iterator[dict[str, object]]:
    for file in str(path).split(os.pathsep) if path else ():
        try:
            part = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        except (OSError, yaml.YAMLError, *UNREADABLE):
            continue
        if isinstance(part, dict):
            yield part


def _dicts(value: object) -> Iterator[dict[str, object]]:
    yield from (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))
