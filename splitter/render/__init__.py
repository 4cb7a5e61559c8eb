"""Renders twins: a template set, a source and a pool in, one whole manifest out.

The reconciler (and `splitter render`, offline) makes one `Renderer` and asks it for both twins of
each source; the planner compares the result's hash. The authors of templates are trusted, the
values they get are not. So the sandbox knows no calls and no imports, and an expression never
writes text that YAML reads: `finalize` keeps its value aside, as JSON, and leaves a token in its
place; the text is parsed as YAML; only then the token becomes the value again. JSON written into
the text would be safe where an expression stands alone, but not between quotes or brackets:
`{name: '{{ v }}'}` with the value `', paused: 'x` is a second key. With tokens it is a name, and
`{{ name }}-spot` means what it seems to (templates/README.md).

Rendering never reads the cluster, has no side effect, and gives equal output for equal input.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from splitter.core.desired.compare import canonical_json, pod_hash, rendered_hash
from splitter.core.desired.manifest import Manifest, mapping_at, without
from splitter.core.desired.scheduling import NodePresets, required_terms
from splitter.core.desired.twin import enforce, first_ordinal, peers, pod_labels, rendered_from, twin_labels
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH, twin_name
from splitter.core.labels_annotations.policy import Policy
from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Rendered
from splitter.core.names import STATEFUL_SET
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.template_sets import SUFFIX, TemplateSet, path_of
from splitter.render.errors import Fault, TemplateError, no_such_set, not_allowed
from splitter.render.sandbox import MAX_BYTES, line_of, plain
from splitter.render.templates import Templates

__all__ = ["Order", "Renderer", "TemplateError", "TemplateSet", "read_template_sets"]


def read_template_sets(folder: Path) -> dict[str, TemplateSet]:
    """Return the template sets in a folder: each subfolder is one, named after it.

    Raises SplitterError when the folder holds none: nothing could ever be rendered.
    """
    sets = {
        entry.name: TemplateSet(
            entry.name,
            {
                path.relative_to(entry).as_posix(): path.read_text(encoding="utf-8")
                for path in sorted(entry.glob(f"*/*{SUFFIX}"))
            },
        )
        for entry in sorted(folder.glob("*/"))
    }
    chosen = {name: template_set for name, template_set in sets.items() if template_set.files}
    if not chosen:
        message = f"{folder} holds no templates (<set>/<kind>/<pool>{SUFFIX})"
        raise SplitterError(Reason.TEMPLATE_INVALID, f"{message}; set templates_dir to a folder that does")
    return chosen


@dataclass(frozen=True, slots=True)
class Order:
    """One twin to be made: of which template, of what kind; `fault` makes the errors that name the file."""

    template_set: TemplateSet
    text: str
    where: str
    kind: str
    fault: Fault


class Renderer:
    """Renders twins from template sets, at once and without limits; `bounded` is for sets that others write.

    `template_sets` may change between two calls, as ConfigMaps do: what is there at the time counts.
    `presets` come from the settings and stay: changing them changes every twin, which is a rollout. Compiled
    templates are kept, results are not.
    """

    def __init__(self, template_sets: Mapping[str, TemplateSet], presets: NodePresets) -> None:
        self._sets = template_sets
        self._presets = plain({name: list(getattr(presets, name)) for name in presets.__slots__})
        self._most_terms = max(len(presets.spot_terms), len(presets.on_demand_terms))
        self._templates = Templates()

    def template_set(self, name: str) -> TemplateSet | None:
        """Return the set of this name as it is now: equal to the one before, it renders the same twins."""
        return self._sets.get(name)

    def render(self, source: Manifest, pool: Pool, policy: Policy) -> Rendered:
        """Return one twin of a source, whole but for `replicas`, with its hash.

        `source` is the workload as the API server has it; nothing in it is changed. Raises
        `SplitterError`, a `TemplateError` whatever goes wrong in the template.
        """
        order = self.order(source, pool, policy)
        variables = self.variables(source, pool, policy)
        try:
            manifest = self._templates.manifest(order.text, order.where, order.kind, variables, order.fault)
        except MemoryError as problem:
            raise order.fault(line_of(problem), "it takes more memory than there is") from problem
        return self.finished(order, manifest, source, pool, policy)

    def order(self, source: Manifest, pool: Pool, policy: Policy) -> Order:
        """Return what makes this twin. Raises SplitterError when there is none, or it may not be used."""
        template_set = self._sets.get(policy.template_set)
        if template_set is None:
            raise no_such_set(policy.template_set, self._sets)
        if template_set.faults:
            raise _unusable(template_set)
        namespace = mapping_at(source, "metadata").get("namespace")
        if isinstance(namespace, str) and not template_set.serves(namespace):
            raise not_allowed(template_set, namespace)
        kind = str(source.get("kind", "Deployment"))
        path = path_of(kind, pool)
        text = template_set.files.get(path)
        if text is not None:
            return _order(template_set, path, text, kind)
        name = quoted(template_set.name)
        what = f"the template set {name} has no such file; write it, or use another set"
        raise TemplateError(template_set.name, template_set.where(path), None, what)

    def orders(self, template_set: TemplateSet) -> list[Order]:
        """Return what a set could make, for a first look. Raises TemplateError when its form is wrong."""
        there = self._sets.get(template_set.name)
        if there is not None and there.config_map != template_set.config_map:
            what = "a set of this name travels with splitter and is used instead; rename the ConfigMap"
            raise TemplateError(template_set.name, f"ConfigMap {template_set.config_map}", None, what)
        if template_set.faults:
            raise _unusable(template_set)
        return [_order(template_set, path, text, "") for path, text in template_set.files.items()]

    def weight(self, source: Manifest, size: int) -> int:
        """Return how many bytes a rendering of a source is about: its size, the node affinity multiplied."""
        template = mapping_at(mapping_at(source, "spec"), "template")
        own = required_terms(mapping_at(template, "spec"))
        return size + len(json.dumps(own, default=str)) * self._most_terms if own else size

    def finished(
        self, order: Order, manifest: Manifest, source: Manifest, pool: Pool, policy: Policy
    ) -> Rendered:
        """Return a twin of what a template made, with all that is ours put right. Raises TemplateError."""
        try:
            return _finished(enforce(manifest, source, pool), source, policy)
        except (TypeError, ValueError, RecursionError) as problem:
            raise order.fault(None, str(problem)) from problem

    def variables(self, source: Manifest, pool: Pool, policy: Policy) -> dict[str, object]:
        """Return what a template sees; a number of replicas is not among it, or scaling were a roll."""
        seen = rendered_from(source)
        metadata, spec = mapping_at(seen, "metadata"), mapping_at(seen, "spec")
        template = mapping_at(spec, "template")
        pods = mapping_at(template, "metadata")
        name = str(metadata.get("name", ""))
        is_stateful = source.get("kind") == STATEFUL_SET
        return {
            "source": {
                "metadata": {
                    "name": name,
                    "namespace": metadata.get("namespace"),
                    "labels": mapping_at(metadata, "labels"),
                    "annotations": mapping_at(metadata, "annotations"),
                },
                "spec": {
                    **spec,
                    "template": {
                        **template,
                        "metadata": {
                            **without(pods, "creationTimestamp"),
                            "labels": mapping_at(pods, "labels"),
                            "annotations": mapping_at(pods, "annotations"),
                        },
                        "spec": mapping_at(template, "spec"),
                    },
                },
            },
            "twin": {
                "name": twin_name(name, pool),
                "labels": twin_labels(name, pool),
                "pod_labels": pod_labels(name, pool),
                **({"first_ordinal": first_ordinal(source, pool)} if is_stateful else {}),
            },
            "peers": peers(source) if is_stateful else [],
            "pool": pool.value,
            "policy": plain(asdict(policy)),
            "presets": self._presets,
        }


def _order(template_set: TemplateSet, path: str, text: str, kind: str) -> Order:
    where = template_set.where(path)
    return Order(template_set, text, where, kind, partial(TemplateError, template_set.name, where))


def _unusable(template_set: TemplateSet) -> TemplateError:
    what = "; ".join(template_set.faults)
    return TemplateError(template_set.name, f"ConfigMap {template_set.config_map}", None, what)


def _made_of(source: Manifest, policy: Policy) -> str:
    """Return a hash of what rolls a twin out by its user's wish: another hash of these is a rollout."""
    asked = (policy.spot_affinity.value, policy.template_set, policy.restarted_at, policy.rollout_at)
    spec = without(mapping_at(source, "spec"), "replicas", "paused", "strategy", "updateStrategy", "ordinals")
    return rendered_hash({"spec": spec, "asked": list(asked)})


def _finished(manifest: dict[str, object], source: Manifest, policy: Policy) -> Rendered:
    """Return the manifest as JSON, with its hash, and that of what it was made of, among its annotations."""
    hashes, made_of = rendered_hash(manifest), _made_of(source, policy)
    metadata = mapping_at(manifest, "metadata")
    ours = {ANNOTATION_RENDERED_HASH: hashes, ANNOTATION_MADE_OF: made_of}
    annotations = {**mapping_at(metadata, "annotations"), **ours}
    text = canonical_json({**manifest, "metadata": {**metadata, "annotations": annotations}})
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ValueError(f"the twin has {size} bytes; at most {MAX_BYTES} are allowed")
    pods = {pod_hash(mapping_at(mapping_at(one, "spec"), "template")) for one in (source, manifest)}
    return Rendered(text, hashes, made_of, policy.template_set, len(pods) == 1)
