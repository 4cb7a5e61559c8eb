"""What commands are asked about: one Split, and Deployments beside it."""

from typing import Any

from plugin.cli.one_split import split
from world.api import Api
from world.kinds import DEPLOYMENTS, NAMESPACES, SPLITS, path_of

SIGNS = "calm\x1b[2J\nshop/web  Steady\u202e"
HOSTILE: dict[str, Any] = {"state": SIGNS, "reason": SIGNS, "message": SIGNS, "guard": SIGNS}


def api() -> Api:
    """Return an API server with Splits, one of them hostile, and `shop/api`, which is not split."""
    result = Api()
    for name in ("bank", "shop"):
        result.put(path_of(NAMESPACES, "", name), {"metadata": {}})
    for raw in (split(), split("api", "bank"), split("web", "evil", **HOSTILE)):
        result.put(path_of(SPLITS, raw["metadata"]["namespace"], raw["metadata"]["name"]), raw)
    base = {"annotations": {"splitter.io/on-demand-base": "2"}}
    of_a_team = {"labels": {"team": "b"}}
    for place, metadata in {
        "shop/web": base,
        "evil/web": base,
        "shop/api": {},
        "bank/api": of_a_team,
    }.items():
        result.put(path_of(DEPLOYMENTS, *place.split("/")), {"metadata": metadata})
    return result
