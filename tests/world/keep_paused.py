"""What the optional policy that keeps split workloads paused does to a write, as a rule of the world.

Source: manifests/admission/keep-paused.yaml, which tests/e2e/test_keep_paused.py tries on a real API server.
"""

import copy
import json
from typing import Final

from world.admission import Request
from world.kinds import DEPLOYMENTS, STATEFUL_SETS, Raw

SPLITTER: Final = "splitter"
_LABEL: Final = "splitter.io/split"
_MARK: Final = "splitter.io/taken-over"
_SAVED: Final = "splitter.io/replicas"


def keep_paused(request: Request, exempt: str = SPLITTER) -> Raw | None:
    """Return the write with what splitter has left on the workload, if it was split; else None."""
    old, new = request.old, request.new
    if old is None or new is None or request.part or request.user == exempt:
        return None
    if request.ref.kind not in {DEPLOYMENTS, STATEFUL_SETS} or not _is_split(request.ref.kind, old):
        return None
    kept = copy.deepcopy(new)
    annotations = kept["metadata"].setdefault("annotations", {})
    there = old["metadata"]["annotations"]
    annotations.setdefault(_MARK, there[_MARK])
    if request.ref.kind == DEPLOYMENTS:
        kept["spec"]["paused"] = True
        return kept
    annotations.setdefault(_SAVED, there[_SAVED])
    saved = json.loads(there[_SAVED])
    if new["spec"]["replicas"] == saved["replicas"] and old["spec"]["replicas"] in {0, saved["left"]}:
        kept["spec"]["replicas"] = old["spec"]["replicas"]
    return kept


def _is_split(kind: str, old: Raw) -> bool:
    """Whether the workload was split before the write."""
    labelled = (old["metadata"].get("labels") or {}).get(_LABEL) == "enabled"
    annotations = old["metadata"].get("annotations") or {}
    stands = old["spec"].get("paused") if kind == DEPLOYMENTS else _SAVED in annotations
    return bool(labelled and stands and old["metadata"]["uid"] in annotations.get(_MARK, ""))
