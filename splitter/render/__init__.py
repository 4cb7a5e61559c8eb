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

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from jinja2 import Template

from splitter.core import desired
from splitter.core.desired import Manifest, NodePresets, mapping_at
from splitter.core.errors import SplitterError
from splitter.core.model import Policy, Pool, Rendered
from splitter.core.names import STATEFUL_SET
from splitter.core.reasons import Reason
from splitter.core.surface import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH, quoted, twin_name
from splitter.core.template_sets import SUFFIX, TemplateSet, path_of
from splitter.render.document import json_kind, parse, with_values
from splitter.render.errors import TemplateError, no_such_set, not_allowed
from splitter.render.sandbox import MAX_BYTES, Environment, plain, run

__all__ = ["Renderer", "TemplateError", "TemplateSet", "read_template_sets"]


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
    found = {name: template_set for name, template_set in sets.items() if template_set.files}
    if not found:
        message = f"{folder} holds no templates (<set>/<kind>/<pool>{SUFFIX})"
        raise SplitterError(Reason.TEMPLATE_INVALID, f"{message}; set templates_dir to a folder that does")
    return found


class Renderer:
    """Renders twins from template sets; compiled templates are kept, results are not.

    `template_sets` may change between two calls, as ConfigMaps do: what is there at the time counts.
    `presets` come from the settings and stay: changing them changes every twin, which is a rollout.
    """

    def __init__(self, template_sets: Mapping[str, TemplateSet], presets: NodePresets) -> None:
        self._sets = template_sets
        self._presets = plain({name: list(getattr(presets, name)) for name in presets.__slots__})
        self._environment = Environment()
        self._compiled: dict[tuple[str, str], tuple[str, Template]] = {}

    def template_set(self, name: str) -> TemplateSet | None:
        """Return the set of this name as it is now: equal to the one before, it renders the same twins."""
        return self._sets.get(name)

    def render(self, source: Manifest, pool: Pool, policy: Policy) -> Rendered:
        """Return one twin of a source, whole but for `replicas`, with its hash.

        `source` is the workload as the API server has it; nothing in it is changed. Raises
        `SplitterError`, a `TemplateError` whatever goes wrong in the template.
        """
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
        fault = partial(TemplateError, template_set.name, template_set.where(path))
        template = self._template(template_set, path)
        text, values = run(template, self._variables(source, pool, policy), fault)
        document = parse(text, template_set.files[path], fault)
        try:
            manifest = _checked(with_values(document, values), kind)
            return _finished(desired.enforce(manifest, source, pool), source, policy)
        except (TypeError, ValueError, RecursionError) as problem:
            raise fault(None, str(problem)) from problem

    def faults(self, template_set: TemplateSet) -> tuple[str, ...]:
        """Return what is wrong with a set as far as that can be told without a workload to render."""
        there = self._sets.get(template_set.name)
        if there is not None and there.config_map != template_set.config_map:
            what = "a set of this name travels with splitter and is used instead; rename the ConfigMap"
            return (f"ConfigMap {template_set.config_map}: {what}.",)
        if template_set.faults:
            return (_unusable(template_set).message,)
        found = []
        for path in template_set.files:
            try:
                self._template(template_set, path)
            except TemplateError as error:
                found.append(error.message)
        return tuple(found)

    def _template(self, template_set: TemplateSet, path: str) -> Template:
        """Return a template, compiled once for each text that it has had last."""
        name = template_set.name
        fault = partial(TemplateError, name, template_set.where(path))
        text = template_set.files.get(path)
        if text is None:
            raise fault(
                None, f"the template set {quoted(name)} has no such file; write it, or use another set"
            )
        compiled = self._compiled.get((name, path))
        if compiled is None or compiled[0] != text:
            compiled = (text, self._environment.template(text, template_set.where(path), fault))
            self._compiled[name, path] = compiled
        return compiled[1]

    def _variables(self, source: Manifest, pool: Pool, policy: Policy) -> dict[str, object]:
        """Return what a template sees; a number of replicas is not among it, or scaling were a roll."""
        seen = desired.rendered_from(source)
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
                            **desired.without(pods, "creationTimestamp"),
                            "labels": mapping_at(pods, "labels"),
                            "annotations": mapping_at(pods, "annotations"),
                        },
                        "spec": mapping_at(template, "spec"),
                    },
                },
            },
            "twin": {
                "name": twin_name(name, pool),
                "labels": desired.twin_labels(name, pool),
                "pod_labels": desired.pod_labels(name, pool),
                **({"first_ordinal": desired.first_ordinal(source, pool)} if is_stateful else {}),
            },
            "peers": desired.peers(source) if is_stateful else [],
            "pool": pool.value,
            "policy": plain(asdict(policy)),
            "presets": self._presets,
        }


def _unusable(template_set: TemplateSet) -> TemplateError:
    what = "; ".join(template_set.faults)
    return TemplateError(template_set.name, f"ConfigMap {template_set.config_map}", None, what)


def _made_of(source: Manifest, policy: Policy) -> str:
    """Return a hash of what rolls a twin out by its user's wish: another hash of these is a rollout."""
    asked = (policy.spot_affinity.value, policy.template_set, policy.restarted_at, policy.rollout_at)
    spec = desired.without(
        mapping_at(source, "spec"), "replicas", "paused", "strategy", "updateStrategy", "ordinals"
    )
    return desired.rendered_hash({"spec": spec, "asked": list(asked)})


def _finished(manifest: dict[str, object], source: Manifest, policy: Policy) -> Rendered:
    """Return the manifest as JSON, with its hash, and that of what it was made of, among its annotations."""
    found, made_of = desired.rendered_hash(manifest), _made_of(source, policy)
    metadata = mapping_at(manifest, "metadata")
    ours = {ANNOTATION_RENDERED_HASH: found, ANNOTATION_MADE_OF: made_of}
    annotations = {**mapping_at(metadata, "annotations"), **ours}
    text = desired.canonical_json({**manifest, "metadata": {**metadata, "annotations": annotations}})
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ValueError(f"the twin has {size} bytes; at most {MAX_BYTES} are allowed")
    return Rendered(text, found, made_of, policy.template_set)


def _checked(manifest: object, kind: str) -> Manifest:
    """Return the manifest if it is one of the wanted kind."""
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
