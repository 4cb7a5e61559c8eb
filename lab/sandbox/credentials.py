"""Tokens and kubeconfig files of one sandbox.

`controlplane` calls it while starting. All files lie in the sandbox's own directory, readable by their
owner only; ~/.kube is never read or written. The tokens are made anew for each sandbox, are worth something
only on loopback, and die with it.
"""

import base64
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import yaml

CONTEXT = "splitter-sandbox"

_END_OF_CERTIFICATE = "-----END CERTIFICATE-----\n"

# user -> groups. The names are the ones that Kubernetes' own RBAC rules expect.
_USERS: Mapping[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "kwok": ("system:masters",),
    "karpenter": ("system:masters",),
    "metrics-server": ("system:masters",),
    "real-nodes": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}


def write_private(path: Path, text: str) -> Path:
    """Write `text` to a file that only its owner can read, and return the path.

    The file is always a new one: another user may have opened one of that name, or put a link there.
    """
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    return path


def is_whole(certificate: Path) -> bool:
    """Return whether a server has written its certificate to the end.

    It creates the file and then fills it; whoever reads in between trusts nobody.
    """
    try:
        return certificate.read_text().endswith(_END_OF_CERTIFICATE)
    except FileNotFoundError:
        return False


def kubelet(node: str) -> tuple[str, str]:
    """Return the user and the group as which the API server knows the kubelet of a node."""
    return f"system:node:{node}", "system:nodes"


def make_tokens(token_file: Path) -> dict[str, str]:
    """Write the API server's --token-auth-file and return the token of each user."""
    tokens = {user: secrets.token_urlsafe(24) for user in _USERS}
    lines = [f'{tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in _USERS.items()]
    write_private(token_file, "".join(lines))
    return tokens


def write_kubeconfig(
    path: Path,
    *,
    url: str,
    ca_file: Path,
    user: str,
    token: str,
    namespace: str = "default",
    called: str = "",
    kubelet_of: str = "",
) -> Path:
    """Write a kubeconfig that carries all it needs in itself, and return its path.

    `called`: the name in the server's certificate, where `url` has another. `kubelet_of`: a node, as whose
    kubelet the user acts, by the right to impersonate that the token has.
    """
    certificate = base64.b64encode(ca_file.read_bytes()).decode()
    cluster = {"server": url, "certificate-authority-data": certificate}
    if called:
        cluster["tls-server-name"] = called
    credential: dict[str, object] = {"token": token}
    if kubelet_of:
        credential["as"], group = kubelet(kubelet_of)
        credential["as-groups"] = [group]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": credential}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user, "namespace": namespace}}
        ],
    }
    return write_private(path, yaml.safe_dump(content, sort_keys=False))
