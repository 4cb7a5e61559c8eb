"""Reads manifests as people write them: several documents, Lists, and the line where each thing stands.

`render` uses it, offline. What comes out is plain JSON data, as the API server would have stored it but
for its defaults; nothing here knows what a twin is.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from splitter.core.desired.manifest import mapping_at, mappings
from splitter.core.errors import UNREADABLE
from splitter.plugin.cli.dialect import Loader


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file; `manifest` is plain data, `lines` says where annotations stand."""

    manifest: dict[str, object]
    line: int
    lines: dict[str, int]

    @property
    def title(self) -> str:
        """Return `Service web`, for messages."""
        metadata = self.manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return " ".join(str(part) for part in (self.manifest.get("kind"), name) if part) or "no kind"


def read_documents(text: str, file: str) -> list[Document]:
    """Return the objects of a file, the items of Lists one by one; empty documents are left out.

    Raises ValueError with file, line and reason.
    """
    loader = Loader(text)
    try:
        documents: list[Document] = []
        while loader.check_node():
            if (node := loader.get_node()) is not None:
                documents.extend(_objects(loader, node, file))
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        why = ", ".join(part for part in (fault.context, fault.problem) if part)
        raise ValueError(f"{file}{where}: this is no YAML: {why}") from fault
    except (yaml.YAMLError, *UNREADABLE) as fault:
        why = " ".join(str(fault).split()) or type(fault).__name__
        raise ValueError(why if why.startswith(file) else f"{file}: this is no YAML: {why}") from fault
    else:
        return documents
    finally:
        loader.dispose()


def assert_complete(document: Document, file: str) -> None:
    """Raise ValueError, with file, line and field, for a workload that the API server would not take.

    A patch (of kustomize, for instance) has a part of the fields only.
    """
    if (fault := _missing(document.manifest)) is None:
        return
    hint = (
        ". Is it a patch? Then render what comes of it: `kubectl kustomize FOLDER | splitter render -f -`"
        if fault.startswith("has no ")
        else ""
    )
    raise ValueError(f"{file}, line {document.line}: {document.title} {fault}{hint}")


def _missing(manifest: dict[str, object]) -> str | None:
    """Return what the API server would miss of a Deployment or StatefulSet first."""
    metadata, spec = (mapping_at(manifest, key) for key in ("metadata", "spec"))
    selector, template = (mapping_at(spec, key) for key in ("selector", "template"))
    selected, pods = mapping_at(selector, "matchLabels"), mapping_at(template, "metadata")
    containers = mappings(mapping_at(template, "spec").get("containers"))
    no_text = (
        f"says {json.dumps(value, default=str)} at {where}.{key}, which is no text; put the value in quotes"
        for where, texts in (
            ("metadata.labels", mapping_at(metadata, "labels")),
            ("spec.selector.matchLabels", selected),
            ("spec.template.metadata.labels", mapping_at(pods, "labels")),
            ("spec.template.metadata.annotations", mapping_at(pods, "annotations")),
        )
        for key, value in texts.items()
        if value is not None and not isinstance(value, str)
    )
    if (fault := next(no_text, None)) is not None:
        return fault
    required = (
        ("spec.selector", selector),
        ("spec.template", template),
        ("spec.template.spec.containers", containers),
        *(
            (f"spec.template.spec.containers[{number}].{field}", one.get(field))
            for number, one in enumerate(containers)
            for field in ("name", "image")
        ),
    )
    for field, value in required:
        if not value:
            return f"has no {field}, which the API server requires"
    labels = mapping_at(pods, "labels")
    unlike = next((key for key, text in selected.items() if labels.get(key) != text), None)
    if unlike is None:
        return None
    return (
        f"selects pods by {unlike}={selected[unlike]}, which spec.template.metadata.labels do not have; the"
        " API server requires that they match"
    )


def _objects(loader: Loader, node: yaml.Node, file: str) -> Iterator[Document]:
    line = node.start_mark.line + 1
    manifest: object = loader.construct_document(node)
    if manifest is None:
        return
    if not isinstance(manifest, dict) or not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{file}, line {line}: this is no manifest; it must be one mapping")  # noqa: TRY004
    items = _value(node, "items")
    if isinstance(items, yaml.SequenceNode) and str(manifest.get("kind", "")).endswith("List"):
        for item in items.value:
            yield from _objects(loader, item, file)
        return
    yield Document(manifest, line, _lines(_value(_value(node, "metadata"), "annotations")))


def _lines(node: yaml.Node | None) -> dict[str, int]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return {str(key.value): key.start_mark.line + 1 for key, _ in pairs}


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)
