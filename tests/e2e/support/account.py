"""What an account may do is asked with its own token: one request is 2 ms of CPU, one kubectl 100."""

from base64 import b64decode
from pathlib import Path

import yaml

from lab.sandbox import Api


def api_of(kubeconfig: Path) -> Api:
    """Return a connection as whom a kubeconfig of the sandbox is for."""
    content = yaml.safe_load(kubeconfig.read_text())
    [cluster], [user] = content["clusters"], content["users"]
    authority = kubeconfig.with_suffix(".ca")
    authority.write_bytes(b64decode(cluster["cluster"]["certificate-authority-data"]))
    return Api(cluster["cluster"]["server"], authority, user["user"]["token"])
