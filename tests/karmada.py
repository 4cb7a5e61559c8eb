"""How Karmada reads and writes an object of a member, by the scripts of manifests/karmada/interpreters.yaml.

Karmada 1.18 embeds a Lua 5.1, opens the base, table, string, math and time functions of it, and calls one
function of each script (pkg/resourceinterpreter/customized/declarative/luavm).
"""

from functools import cache
from typing import Any, Final

import yaml

from lua import Scripts
from splitter.bundled import bundled_path

Json = dict[str, Any]

MANAGED: Final = {"karmada.io/managed": "true"}
_LIBRARIES: Final = {"table", "string", "math"}


@cache
def _scripts(kind: str, operation: str) -> Scripts:
    text = bundled_path("manifests/karmada/interpreters.yaml").read_text(encoding="utf-8")
    [spec] = [one["spec"] for one in yaml.safe_load_all(text) if one["spec"]["target"]["kind"] == kind]
    assert spec["target"]["apiVersion"] == "apps/v1"
    scripts = Scripts(_LIBRARIES)
    scripts.execute(spec["customizations"][operation]["luaScript"])
    return scripts


def retained(desired: Json, observed: Json) -> Json:
    """Return what Karmada writes into a member, of what the hub wants and what is there."""
    result = _scripts(observed["kind"], "retention").call("Retain", desired, observed)
    assert isinstance(result, dict)
    return result


def is_healthy(observed: Json) -> bool:
    """Whether an object of a member is healthy."""
    result = _scripts(observed["kind"], "healthInterpretation").call("InterpretHealth", observed)
    assert isinstance(result, bool)
    return result


def reflected(observed: Json) -> Json:
    """Return the status that the hub hears of."""
    result = _scripts(observed["kind"], "statusReflection").call("ReflectStatus", observed)
    assert isinstance(result, dict)
    return result
