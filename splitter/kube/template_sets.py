"""Follows users' template sets: labelled ConfigMaps in splitter's own namespace.

`cache` owns the one `TemplateSets`; the renderer looks names up in `by_name` at each rendering, so a
change needs no restart. Nothing here compiles a template or knows who uses one.
"""

from collections.abc import Callable

from splitter.core.labels_annotations import LABEL_TEMPLATE_SET
from splitter.core.template_sets import TemplateSet
from splitter.kube import parse
from splitter.kube.client import Client
from splitter.kube.paths import config_maps
from splitter.kube.records import TemplateSetRecord
from splitter.kube.store import Indexer
from splitter.kube.watch import Reflector

Listener = Callable[[TemplateSetRecord], None]


class TemplateSets:
    """The sets by name; `changed(name)` is called after each change."""

    def __init__(self, namespace: str, changed: Callable[[str], None]) -> None:
        self._namespace = namespace
        self._changed = changed
        self._listeners: list[Listener] = []
        self.store = Indexer(parse.template_set, {}, self._set_changed)
        self._reflectors: list[Reflector] = []
        self.by_name = dict[str, TemplateSet]()

    def announce_to(self, listener: Listener) -> None:
        """Register a listener for each new or changed set."""
        self._listeners.append(listener)

    def reflectors(self, client: Client) -> list[Reflector]:
        """Return the reflectors to run: one, or none when no namespace is splitter's own."""
        if self._namespace:
            self._reflectors = [self._reflector(client)]
        return self._reflectors

    @property
    def unread(self) -> str:
        """Why the sets cannot be listed; empty when they are known."""
        errors = (reflector.error for reflector in self._reflectors)
        return next((f"{error}" for error in errors if error is not None), "")

    def _reflector(self, client: Client) -> Reflector:
        return Reflector(
            client,
            config_maps(self._namespace),
            self.store,
            LABEL_TEMPLATE_SET,
            without="there are no template sets but those that travel with splitter",
            awaited=True,  # a set that is not listed yet looks like one that was deleted
        )

    def _set_changed(self, old: TemplateSetRecord | None, new: TemplateSetRecord | None) -> None:
        if old is not None and new is not None and old.template_set == new.template_set:
            return
        if new is not None:
            self.by_name[new.template_set.name] = new.template_set
            for listener in self._listeners:
                listener(new)
        elif old is not None and self.by_name.get(old.template_set.name) is old.template_set:
            del self.by_name[old.template_set.name]
        if (record := new or old) is not None:
            self._changed(record.template_set.name)
