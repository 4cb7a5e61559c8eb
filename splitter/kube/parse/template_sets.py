"""Template sets: the ConfigMaps of splitter's own namespace that carry the label."""

from splitter.core.template_sets import from_config_map
from splitter.kube.parse.fields import Raw, identity
from splitter.kube.records import TemplateSetRecord


def template_set(raw: Raw) -> TemplateSetRecord:
    """Parse a ConfigMap; what is wrong with it stands in the set."""
    metadata = raw["metadata"]
    return TemplateSetRecord(
        *identity(metadata),
        template_set=from_config_map(
            metadata["namespace"],
            metadata["name"],
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            texts=raw.get("data") or {},
            binary_keys=raw.get("binaryData") or (),
        ),
    )
