"""Validates each new template set before a workload uses it.

The cache calls `validate_template_set` when a set is new or another one; one task looks at them one after the
other, within the limits of `render.bounded`. What is wrong with one is said where its author looks: in the
log, and as an Event on the ConfigMap. Its workloads are told by their own reconciles; nothing is decided
here.
"""

import asyncio
import logging
from datetime import UTC, datetime

from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.kube.records import TemplateSetRecord
from splitter.reconciler.events import EventRecorder
from splitter.render.bounded import BoundedRenderer

logger = logging.getLogger("splitter.templates")


class TemplateValidation:
    """Says what is wrong with a set that has come or changed, once for each change."""

    def __init__(self, renderer: BoundedRenderer, recorder: EventRecorder) -> None:
        self._renderer = renderer
        self._recorder = recorder
        self._waiting: dict[str, TemplateSetRecord] = {}
        self._something = asyncio.Event()

    def validate_template_set(self, record: TemplateSetRecord) -> None:
        """Have a set looked at soon; of several changes of one, the last."""
        self._waiting[record.template_set.name] = record
        self._something.set()

    async def run(self) -> None:
        """Look at what waits, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._waiting:
                await self._look_at(self._waiting.pop(next(iter(self._waiting))))

    async def _look_at(self, record: TemplateSetRecord) -> None:
        """Compile a set, and say what came of it."""
        template_set = record.template_set
        faults = await self._renderer.faults(template_set)
        if not faults:
            users = (
                ", ".join(template_set.namespaces)
                or "no namespace: the annotation splitter.io/namespaces names none"
            )
            logger.info("template set %s is read; it may be used in %s", template_set.name, users)
        key = Key("ConfigMap", record.namespace, template_set.name)
        for fault in faults:
            logger.warning("template set %s cannot be used: %s", template_set.name, fault)
            note = Note(Reason.TEMPLATE_INVALID, fault, warning=True)
            self._recorder.tell_about(key, record.uid, note, datetime.now(UTC))
