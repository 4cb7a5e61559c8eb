"""What a real control plane did, script by script: written by the end-to-end test, compared on both sides."""

import json
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".json")


@cache
def recorded() -> dict[str, list[str]]:
    """Return what was seen in each script."""
    there: dict[str, list[str]] = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    return there


def record(seen: dict[str, list[str]]) -> None:
    """Write what was seen in scripts; what others did stays."""
    whole = {**recorded(), **seen}
    _FILE.write_text(json.dumps(dict(sorted(whole.items())), indent=1, ensure_ascii=False) + "\n")
    recorded.cache_clear()
