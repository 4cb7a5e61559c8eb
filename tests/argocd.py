"""Argo CD's judgement of an object, by the scripts of manifests/argocd/argocd-cm.yaml.

Argo CD embeds a Lua 5.1 and opens of its libraries the base and the table functions only; so does this.
"""

from typing import Any

import yaml
from lupa.lua51 import LuaRuntime  # type: ignore[import-untyped]

from splitter.bundled import bundled_path

_KEY = "resource.customizations.health."
_OPEN = {"table", "_G", "obj", "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring"}
_OPEN |= {"type", "unpack", "rawget", "rawset", "rawequal", "setmetatable", "getmetatable", "pcall", "xpcall"}
_STATUSES = {"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}


def health(manifest: dict[str, Any]) -> tuple[str, str]:
    """Return health status and message of an object, as Argo CD would show them."""
    config = yaml.safe_load(bundled_path("manifests/argocd/argocd-cm.yaml").read_text(encoding="utf-8"))
    group = manifest["apiVersion"].rpartition("/")[0]
    script = config["data"][f"{_KEY}{group}_{manifest['kind']}"]
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    names = lua.globals()
    names.obj = lua.table_from(manifest, recursive=True)
    for name in [str(name) for name in names]:
        if name not in _OPEN:
            names[name] = None
    result = lua.execute(script)
    status, message = str(result["status"]), str(result["message"])
    assert status in _STATUSES
    return status, message
