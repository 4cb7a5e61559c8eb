"""Both twins of a source, rendered when something they are made of has changed, and only then.

The reconciler asks in each pass, a preview once. A template that fails becomes a Note: nothing rolls,
and the workload stays as it is. A twin that is deleted meanwhile comes back as it was rendered last.
"""

import hashlib
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from splitter.core.desired import Manifest, rendered_from
from splitter.core.drift import changed_fields
from splitter.core.errors import SplitterError
from splitter.core.in_place import is_in_place
from splitter.core.model import (
    Note,
    Observation,
    Policy,
    Pool,
    Rendered,
)
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.render import Renderer

logger = logging.getLogger("splitter.reconciler")

Twins = Mapping[Pool, Rendered] | Note

# A quarter of the length, for what is kept of each workload as long as it is split; 20 us to read.
_Packed = Mapping[Pool, tuple[Rendered, bytes]]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last result of a source, and what it was made of."""

    manifest_json: str  # as the source was then; to be compared in a moment
    seen: bytes  # a digest of as much of it as may enter a twin
    asked: object  # the policy and the template set
    twins: _Packed | Note


class Rendering:
    """Renders, and keeps the last result of each source."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._kept: dict[Key, _Kept] = {}
        # Lost by a restart: a twin deleted meanwhile then waits for a template that works.
        self._last_good: dict[Key, _Packed] = {}

    def twins_of(self, observed: Observation, policy: Policy) -> Twins:
        """Return both twins as the templates make them now, or why they cannot."""
        source = observed.source
        if source is None:
            self._kept.pop(observed.key, None)
            self._last_good.pop(observed.key, None)
            return Note(Reason.GIVEN_BACK, "the source is gone")
        if is_in_place(observed, source, policy):
            return Note(Reason.BALANCED, "it is placed, and has no twins")
        found = self._rendered(observed.key, source.manifest_json, policy)
        if not isinstance(found, Note):
            self._last_good[observed.key] = found
        elif _lacks_a_twin(observed):
            found = self._last_good.get(observed.key, found)
        return _unpacked(found)

    def _rendered(self, key: Key, manifest_json: str, policy: Policy) -> _Packed | Note:
        asked = (policy, self._renderer.template_set(policy.template_set))
        before = self._kept.get(key)
        if before is not None and (before.manifest_json, before.asked) == (manifest_json, asked):
            return before.twins
        # Another count, pause or mark, several of which come with each take-over, is no other twin.
        manifest = rendered_from(orjson.loads(manifest_json))
        seen = hashlib.sha256(orjson.dumps(manifest)).digest()
        if before is not None and (before.seen, before.asked) == (seen, asked):
            self._kept[key] = replace(before, manifest_json=manifest_json)
            return before.twins
        found = self._render(manifest, policy)
        self._kept[key] = _Kept(manifest_json, seen, asked, found)
        if before is not None:
            _log_changes(key, _unpacked(before.twins), _unpacked(found))
        return found

    def _render(self, manifest: Manifest, policy: Policy) -> _Packed | Note:
        try:
            return {pool: _packed(self._renderer.render(manifest, pool, policy)) for pool in Pool}
        except SplitterError as error:
            return Note(error.reason, error.message, warning=True)


def _packed(made: Rendered) -> tuple[Rendered, bytes]:
    return replace(made, manifest_json=""), zlib.compress(made.manifest_json.encode())


def _unpacked(found: _Packed | Note) -> Twins:
    if isinstance(found, Note):
        return found
    return {
        pool: replace(made, manifest_json=zlib.decompress(text).decode())
        for pool, (made, text) in found.items()
    }


def _lacks_a_twin(observed: Observation) -> bool:
    """Whether somebody has deleted a twin of a workload that is split: not one that nobody has made yet."""
    is_split = observed.split is not None and observed.split.takes_over
    return is_split and any(observed.twin(pool) is None for pool in Pool)


def _log_changes(key: Key, before: Twins, after: Twins) -> None:
    """Say which fields of the twins are new: a roll replaces pods, and somebody will ask why."""
    if isinstance(before, Note) or isinstance(after, Note):
        return
    for pool in Pool:
        if fields := changed_fields(before[pool], after[pool]):
            logger.info("rendered anew workload=%s pool=%s changes=%s", key, pool, "; ".join(fields))
