"""Renders both twins of a source, only when something that they are made of has changed.

The reconciler asks in each reconcile, a preview once. A template that fails becomes a Note: nothing rolls,
and the workload stays as it is. A twin that is deleted meanwhile comes back as it was rendered last. A set
that takes long holds nobody: the reconcile ends without its twins, and is asked for again when they are
there.
"""

import asyncio
import hashlib
import logging
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import orjson

from splitter.core.desired.manifest import Manifest
from splitter.core.desired.twin import rendered_from
from splitter.core.drift import changed_fields
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.policy import Policy
from splitter.core.limits import too_large
from splitter.core.model import Note, Observation, Rendered
from splitter.core.names import Key
from splitter.core.placement.table import is_in_place
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.render import TemplateError
from splitter.render.bounded import BoundedRenderer
from splitter.render.limits import SMALL_BYTES

logger = logging.getLogger("splitter.reconciler")

Twins = Mapping[Pool, Rendered] | Note

# A reconcile waits so long for its twins: 100 times what a rendering takes, and less than anybody notices.
_PATIENCE_S = 0.2
# A failure that may pass by itself is told for so long before the template is tried again.
_AGAIN_S = 60.0

# A quarter of the length, for what is kept of each workload as long as it is split; 20 us to read.
_Packed = Mapping[Pool, tuple[Rendered, bytes]]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last result of a source, and what it was made of."""

    manifest_json: str  # as the source was then; to be compared in a moment
    seen: bytes  # a digest of as much of it as may enter a twin
    asked: object  # the policy and the template set
    twins: _Packed | Note
    until: float  # of the monotonic clock: a failure that may pass is not kept for ever


class Rendering:
    """Renders, and keeps the last result of each source.

    `done` is called with the key of a workload whose twins nobody has waited for, when they are rendered.
    """

    def __init__(self, renderer: BoundedRenderer, done: Callable[[Key], None] | None = None) -> None:
        self._renderer = renderer
        self._done = done
        self._kept: dict[Key, _Kept] = {}
        # Lost by a restart: a twin deleted meanwhile then waits for a template that works.
        self._last_good: dict[Key, _Packed] = {}
        self._under_way: dict[Key, asyncio.Task[Twins]] = {}

    async def twins_of(self, observed: Observation, policy: Policy) -> Twins:
        """Return both twins as the templates make them now, or why they cannot."""
        known = self._known(observed, policy)
        return await self._anew(observed, policy) if known is None else known

    async def twins_in_time(self, observed: Observation, policy: Policy) -> Twins | None:
        """Return what `twins_of` does, or None when that takes long: `done` is called when it is there.

        So no worker, and no answer to a loss, waits for a template that takes seconds.
        """
        known, key = self._known(observed, policy), observed.key
        if known is not None or key in self._under_way:
            return known
        task = self._under_way[key] = asyncio.create_task(self._anew(observed, policy), name=str(key))
        await asyncio.wait((task,), timeout=_PATIENCE_S)
        if task.done():
            del self._under_way[key]
            return task.result()
        task.add_done_callback(partial(self._is_there, key))
        return None

    def end(self) -> None:
        """Wait for nothing any more."""
        for task in self._under_way.values():
            task.cancel()

    def _is_there(self, key: Key, task: asyncio.Task[Twins]) -> None:
        if task.cancelled():
            return
        self._under_way.pop(key, None)
        if (error := task.exception()) is not None:
            logger.error("a bug of splitter's: no twins are rendered of %s", key, exc_info=error)
        if self._done is not None:
            self._done(key)

    def _known(self, observed: Observation, policy: Policy) -> Twins | None:
        """Return what needs no rendering: None when the twins have to be rendered anew."""
        source, key = observed.source, observed.key
        if source is None:
            self._kept.pop(key, None)
            self._last_good.pop(key, None)
            if key in self._under_way:
                self._under_way.pop(key).cancel()
            return Note(Reason.GIVEN_BACK, "the source is gone")
        if why := too_large(source):
            return Note(Reason.TOO_LARGE, why, warning=True)
        if is_in_place(observed, source, policy):
            return Note(Reason.BALANCED, "it is placed, and has no twins")
        before, asked = self._kept.get(key), self._asked(policy)
        if before is None or before.asked != asked or time.monotonic() > before.until:
            return None
        if before.manifest_json != source.manifest_json:
            # Another count, pause or mark, several of which come with each take-over, is no other twin.
            if before.seen != _digest(_seen(source.manifest_json)):
                return None
            self._kept[key] = replace(before, manifest_json=source.manifest_json)
        return self._settled(observed, before.twins)

    async def _anew(self, observed: Observation, policy: Policy) -> Twins:
        manifest_json = observed.source.manifest_json if observed.source is not None else "{}"
        before, asked = self._kept.get(observed.key), self._asked(policy)
        manifest = rendered_from(orjson.loads(manifest_json))
        text = orjson.dumps(manifest)
        rendered, lasting = await self._render(manifest, policy, len(text))
        while (now := self._asked(policy)) != asked:  # of two sets, one twin each
            asked = now
            rendered, lasting = await self._render(manifest, policy, len(text))
        until = inf if lasting else time.monotonic() + _AGAIN_S
        self._kept[observed.key] = _Kept(manifest_json, _digest(text), asked, rendered, until)
        if before is not None and len(text) <= SMALL_BYTES:  # to compare more takes seconds
            _log_changes(observed.key, _unpacked(before.twins), _unpacked(rendered))
        return self._settled(observed, rendered)

    async def _render(self, manifest: Manifest, policy: Policy, size: int) -> tuple[_Packed | Note, bool]:
        """Return the twins, or why there are none, and whether another try would end so too."""
        try:
            render = self._renderer.render
            return {pool: _packed(await render(manifest, pool, policy, size)) for pool in Pool}, True
        except SplitterError as error:
            lasting = not isinstance(error, TemplateError) or error.lasting
            return Note(error.reason, error.message, warning=True), lasting

    def _asked(self, policy: Policy) -> object:
        return policy, self._renderer.template_set(policy.template_set)

    def _settled(self, observed: Observation, rendered: _Packed | Note) -> Twins:
        """Return the twins, or those that rendered last where one has to be made again."""
        if not isinstance(rendered, Note):
            self._last_good[observed.key] = rendered
        elif _lacks_a_twin(observed):
            rendered = self._last_good.get(observed.key, rendered)
        return _unpacked(rendered)


def _seen(manifest_json: str) -> bytes:
    """Return as much of a source as may enter a twin."""
    return orjson.dumps(rendered_from(orjson.loads(manifest_json)))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _packed(made: Rendered) -> tuple[Rendered, bytes]:
    return replace(made, manifest_json=""), zlib.compress(made.manifest_json.encode())


def _unpacked(rendered: _Packed | Note) -> Twins:
    if isinstance(rendered, Note):
        return rendered
    return {
        pool: replace(made, manifest_json=zlib.decompress(text).decode())
        for pool, (made, text) in rendered.items()
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
