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
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from jinja2 import Template

from splitter.core import desired
from splitter.core.desired import Manifest, NodePresets, mapping_at
from splitter.core.errors import SplitterError
from splitter.core.model import Policy, Pool, Rendered
from splitter.core.reasons import Reason
from splitter.core.surface import ANNOTATION_MADE_OF, ANNOTATION_RENDERED_HASH, nearest, quoted, twin_name
from splitter.render.document import json_kind, parse, with_values
from splitter.render.errors import Fault, TemplateError
from splitter.render.sandbox import MAX_BYTES, Environment, plain, run

__all__ = ["Renderer", "TemplateError", "TemplateSet", "read_template_sets"]

SUFFIX: Final = ".yaml.j2"


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """Templates under one name; `files` maps `deployment/spot.yaml.j2` to its text."""

    name: str
    files: Mapping[str, str]


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

    `presets` come from the settings and stay: changing them changes every twin, which is a rollout.
    """

    def __init__(self, template_sets: Mapping[str, TemplateSet], presets: NodePresets) -> None:
        self._sets = dict(template_sets)
        self._presets = plain({name: list(getattr(presets, name)) for name in presets.__slots__})
        self._environment = Environment()
        self._compiled: dict[tuple[str, str], Template] = {}

    def render(self, source: Manifest, pool: Pool, policy: Policy) -> Rendered:
        """Return one twin of a source, whole but for `replicas`, with its hash.

        `source` is the workload as the API server has it; nothing in it is changed. Raises
        `TemplateError`, whatever goes wrong in the template.
        """
        kind = str(source.get("kind", "Deployment"))
        name = policy.template_set
        path = f"{kind.lower()}/{pool.value}{SUFFIX}"
        fault = partial(TemplateError, name, f"{name}/{path}")
        template = self._template(name, path, fault)
        text, values = run(template, self._variables(source, pool, policy), fault)
        document = parse(text, self._sets[name].files[path], fault)
        try:
            manifest = _checked(with_values(document, values), kind)
            return _finished(desired.enforce(manifest, source, pool), _made_of(source, policy))
        except (TypeError, ValueError, RecursionError) as problem:
            raise fault(None, str(problem)) from problem

    def _template(self, name: str, path: str, fault: Fault) -> Template:
        compiled = self._compiled.get((name, path))
        if compiled is None:
            compiled = self._environment.template(
                self._source_text(name, path, fault), f"{name}/{path}", fault
            )
            self._compiled[name, path] = compiled
        return compiled

    def _source_text(self, name: str, path: str, fault: Fault) -> str:
        if name not in self._sets:
            near = nearest(name, tuple(self._sets))
            advice = f'did you mean "{near}"?' if near else f"there are {', '.join(sorted(self._sets))}"
            raise fault(None, f"there is no template set {quoted(name)}; {advice}")
        if path not in self._sets[name].files:
            raise fault(
                None, f"the template set {quoted(name)} has no such file; write it, or use another set"
            )
        return self._sets[name].files[path]

    def _variables(self, source: Manifest, pool: Pool, policy: Policy) -> dict[str, object]:
        """Return what a template sees; a number of replicas is not among it, or scaling were a roll."""
        metadata, spec = mapping_at(source, "metadata"), mapping_at(source, "spec")
        template = mapping_at(spec, "template")
        pods = mapping_at(template, "metadata")
        name = str(metadata.get("name", ""))
        annotations = mapping_at(metadata, "annotations")
        return {
            "source": {
                "metadata": {
                    "name": name,
                    "namespace": metadata.get("namespace"),
                    "labels": mapping_at(metadata, "labels"),
                    "annotations": {k: v for k, v in annotations.items() if not desired.is_tracking(k)},
                },
                "spec": {
                    **desired.without(spec, "replicas", "paused"),
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
            },
            "pool": pool.value,
            "policy": plain(asdict(policy)),
            "presets": self._presets,
        }


def _made_of(source: Manifest, policy: Policy) -> str:
    """Return a hash of what rolls a twin out by its user's wish: another hash of these is a rollout."""
    asked = (policy.spot_affinity.value, policy.template_set, policy.restarted_at, policy.rollout_at)
    spec = desired.without(mapping_at(source, "spec"), "replicas", "paused", "strategy")
    return desired.rendered_hash({"spec": spec, "asked": list(asked)})


def _finished(manifest: dict[str, object], made_of: str) -> Rendered:
    """Return the manifest as JSON, with its hash, and that of what it was made of, among its annotations."""
    found = desired.rendered_hash(manifest)
    metadata = mapping_at(manifest, "metadata")
    ours = {ANNOTATION_RENDERED_HASH: found, ANNOTATION_MADE_OF: made_of}
    annotations = {**mapping_at(metadata, "annotations"), **ours}
    text = desired.canonical_json({**manifest, "metadata": {**metadata, "annotations": annotations}})
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ValueError(f"the twin has {size} bytes; at most {MAX_BYTES} are allowed")
    return Rendered(text, found, made_of)


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
