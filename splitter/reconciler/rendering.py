"""Both twins of a source, rendered when something they are made of has changed, and only then.

The reconciler asks in each pass, a preview once. A template that fails becomes a Note: nothing rolls,
and the workload stays as it is.
"""

import logging
from collections.abc import Mapping

import orjson

from splitter.core.drift import changed_fields
from splitter.core.errors import SplitterError
from splitter.core.model import Key, Note, Observation, Policy, Pool, Rendered
from splitter.core.reasons import Reason
from splitter.render import Renderer

logger = logging.getLogger("splitter.reconciler")

Twins = Mapping[Pool, Rendered] | Note


class Rendering:
    """Renders, and keeps the last result of each source."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._kept: dict[Key, tuple[object, Twins]] = {}

    def twins_of(self, observed: Observation, policy: Policy) -> Twins:
        """Return both twins as the templates make them now, or why they cannot."""
        source = observed.source
        if source is None:
            self._kept.pop(observed.key, None)
            return Note(Reason.GIVEN_BACK, "the source is gone")
        made_of = (source.manifest_json, policy, self._renderer.template_set(policy.template_set))
        before = self._kept.get(observed.key)
        if before is not None and before[0] == made_of:
            return before[1]
        found = self._render(source.manifest_json, policy)
        self._kept[observed.key] = (made_of, found)
        if before is not None:
            _log_changes(observed.key, before[1], found)
        return found

    def _render(self, manifest_json: str, policy: Policy) -> Twins:
        manifest = orjson.loads(manifest_json)
        try:
            return {pool: self._renderer.render(manifest, pool, policy) for pool in Pool}
        except SplitterError as error:
            return Note(error.reason, error.message, warning=True)


def _log_changes(key: Key, before: Twins, after: Twins) -> None:
    """Say which fields of the twins are new: a roll replaces pods, and somebody will ask why."""
    if isinstance(before, Note) or isinstance(after, Note):
        return
    for pool in Pool:
        if fields := changed_fields(before[pool], after[pool]):
            logger.info("rendered anew workload=%s pool=%s changes=%s", key, pool, "; ".join(fields))
