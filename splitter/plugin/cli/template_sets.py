"""Reads `--templates`: a folder of template sets, or a file with ConfigMaps that hold some.

`render` uses it, so that a set can be tried before anybody else sees it. What is wrong with one is found
here, in the controller's own words.
"""

from pathlib import Path

import typer

from splitter.core.desired.manifest import mapping_at
from splitter.core.labels_annotations import LABEL_TEMPLATE_SET
from splitter.core.template_sets import SUFFIX, TemplateSet, from_config_map
from splitter.plugin.cli.manifests import Document, read_documents
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

TemplatesOption = typer.Option(
    None, "--templates", help="A file of ConfigMaps with template sets, or a folder of sets."
)


def read_templates(path: Path | None, settings: Settings) -> tuple[Settings, dict[str, TemplateSet]]:
    """Return the settings with the folder, and the sets of the file: one of both is as it was.

    Raises ValueError when the file holds no template set, OSError when it cannot be read.
    """
    if path is None:
        return settings, {}
    if path.is_dir():
        return settings.model_copy(update={"templates_dir": path}), {}
    documents = read_documents(path.read_text(encoding="utf-8-sig"), str(path))
    sets = [_set_of(document) for document in documents if _holds_a_set(document)]
    if not sets:
        raise ValueError(
            f"{path} holds no template set; one is a ConfigMap with the label {LABEL_TEMPLATE_SET}: enabled"
        )
    return settings, {template_set.name: template_set for template_set in sets}


async def check(renderer: BoundedRenderer, template_sets: dict[str, TemplateSet]) -> None:
    """Raise ValueError with what is wrong with the sets of a file, used or not."""
    faults = [fault for one in template_sets.values() for fault in await renderer.faults(one)]
    if faults:
        raise ValueError("\n".join(faults))


def _holds_a_set(document: Document) -> bool:
    """Whether a ConfigMap holds a template set, even if it is not labelled yet."""
    manifest = document.manifest
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "ConfigMap"):
        return False
    keys = (*mapping_at(manifest, "data"), *mapping_at(manifest, "binaryData"))
    labelled = LABEL_TEMPLATE_SET in mapping_at(mapping_at(manifest, "metadata"), "labels")
    return labelled or any(key.endswith(SUFFIX) for key in keys)


def _set_of(document: Document) -> TemplateSet:
    metadata = mapping_at(document.manifest, "metadata")
    return from_config_map(
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        labels=_texts(metadata, "labels"),
        annotations=_texts(metadata, "annotations"),
        texts=_texts(document.manifest, "data"),
        binary_keys=tuple(mapping_at(document.manifest, "binaryData")),
    )


def _texts(manifest: dict[str, object], key: str) -> dict[str, str]:
    return {str(name): str(text) for name, text in mapping_at(manifest, key).items()}
