"""Template sets: the ConfigMaps of splitter's own namespace that carry the label."""

from splitter.core.template_sets import from_config_map
from splitter.kube.parse.fields import Raw, identity
from splitter.kube.records import TemplateSetRecord

# Of one ConfigMap; a set has eight files, and each other key is a fault.
_MOST_KEYS = 50


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
            texts=dict(sorted((raw.get("data") or {}).items())[:_MOST_KEYS]),
            binary_keys=sorted(raw.get("binaryData") or ())[:_MOST_KEYS],
        ),
    )
