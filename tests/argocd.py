"""Argo CD's judgement of an object, by the scripts of manifests/argocd/argocd-cm.yaml.

Argo CD embeds a Lua 5.1 and opens of its libraries the base and the table functions only; so does this.
"""

from typing import Any

import yaml

from lua import Scripts
from splitter.bundled import bundled_path

_KEY = "resource.customizations.health."
_STATUSES = {"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}


def health(manifest: dict[str, Any]) -> tuple[str, str]:
    """Return health status and message of an object, as Argo CD would show them."""
    config = yaml.safe_load(bundled_path("manifests/argocd/argocd-cm.yaml").read_text(encoding="utf-8"))
    group = manifest["apiVersion"].rpartition("/")[0]
    script = config["data"][f"{_KEY}{group}_{manifest['kind']}"]
    result = Scripts({"table"}, raw=True).execute(script, obj=manifest)
    assert result["status"] in _STATUSES
    return result["status"], result["message"]
