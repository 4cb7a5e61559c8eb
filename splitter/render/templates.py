"""Compiles templates and renders manifests from them.

`Renderer` has it done in splitter's own process, `child` does it in one of its own for what others have
written. Nothing here knows template sets, pools or a cluster, and nothing that comes out is ours yet:
`Renderer` puts that right. How much time and memory it takes is up to the text.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from jinja2 import Template

from splitter.core.desired.manifest import Manifest
from splitter.core.labels_annotations.words import quoted
from splitter.render.document import json_kind, parse, with_values
from splitter.render.errors import Fault
from splitter.render.sandbox import Environment, run

# 16 sets with templates for both kinds and pools; what is compiled anew takes 14 ms a KiB.
_COMPILED: Final = 64


class Templates:
    """Makes manifests; compiled templates are kept, the last text of each file, of the 64 files used last."""

    def __init__(self) -> None:
        self._environment = Environment()
        self._compiled: OrderedDict[str, tuple[str, Template]] = OrderedDict()

    def compiled(self, text: str, where: str, fault: Fault) -> Template:
        """Return the template that a file holds. Raises what `fault` makes, and MemoryError."""
        kept = self._compiled.get(where)
        if kept is None or kept[0] != text:
            kept = self._compiled[where] = (text, self._environment.template(text, where, fault))
        self._compiled.move_to_end(where)
        if len(self._compiled) > _COMPILED:
            self._compiled.popitem(last=False)
        return kept[1]

    def manifest(
        self, text: str, where: str, kind: str, variables: Mapping[str, object], fault: Fault
    ) -> Manifest:
        """Return the manifest that a template makes, of this kind. Raises as `compiled`."""
        output, values = run(self.compiled(text, where, fault), variables, fault)
        document = parse(output, text, fault)
        try:
            return checked(with_values(document, values), kind)
        except (TypeError, ValueError, RecursionError) as problem:
            raise fault(None, str(problem)) from problem


def checked(manifest: object, kind: str) -> Manifest:
    """Return the manifest if it is one of the wanted kind. Raises TypeError or ValueError."""
    if not isinstance(manifest, dict):
        raise TypeError(
            f"the output is {json_kind(manifest)}; it must be one mapping, the manifest of a {kind}"
        )
    if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") != kind:
        rendered = f"{manifest.get('apiVersion')}/{manifest.get('kind')}"
        raise ValueError(
            f"the output is of kind {quoted(rendered)}; it must be apps/v1/{kind}, as its source"
        )
    return manifest
