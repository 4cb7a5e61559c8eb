"""The twins of a source from pass to pass: what a broken template leaves standing."""

import json
from dataclasses import replace

from builders import free_source, observation, pods, source, split, twin
from splitter.assembly import node_presets_of, renderer_of
from splitter.core.desired import Manifest, mapping_at
from splitter.core.model import Note, Observation, Policy, Pool, Rendered
from splitter.core.reasons import Reason
from splitter.core.template_sets import TemplateSet
from splitter.reconciler.rendering import Rendering
from splitter.render import Renderer
from splitter.settings import Settings

POLICY = Policy(template_set="own")
MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
    },
}
GOOD = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {{ source.spec.template }}}\n"
BROKEN = "{% if %}"
SOURCE = source(manifest_json=json.dumps(MANIFEST))
ONE = observation(SOURCE, on_demand=twin(Pool.ON_DEMAND, pods(1)))
BOTH = replace(ONE, spot=twin(Pool.SPOT, pods(3)))


class Life:
    """One rendering that lives through several passes, and the set that its workload names."""

    def __init__(self, text: str = GOOD) -> None:
        self._sets: dict[str, TemplateSet] = {}
        self.rendering = Rendering(renderer_of(Settings(), self._sets))
        self.write(text)

    def write(self, text: str) -> None:
        """Have both templates of the set read so."""
        files = {f"deployment/{pool.value}.yaml.j2": text for pool in Pool}
        self._sets["own"] = TemplateSet("own", files)

    def hashes(self, observed: Observation) -> set[str] | None:
        """Return the hashes of both twins in a pass, None when the set is broken."""
        found = self.rendering.twins_of(observed, POLICY)
        if isinstance(found, Note):
            assert found.reason is Reason.TEMPLATE_INVALID
            return None
        return {rendered.hash for rendered in found.values()}


class TestLastGood:
    """While its set is broken, a twin comes back as it was rendered last."""

    def test_only_for_a_deleted_twin(self) -> None:
        """Both there: what is wrong is said. One gone: both as before. Mended: what the set says now."""
        life = Life()
        good = life.hashes(BOTH)
        life.write(BROKEN)
        assert life.hashes(BOTH) is None
        assert life.hashes(ONE) == good
        assert life.hashes(BOTH) is None
        life.write(GOOD + "metadata: {annotations: {new: 'yes'}}\n")
        assert life.hashes(observation(SOURCE)) not in (good, None)

    def test_not_before_the_split(self) -> None:
        """What was rendered while the workload was looked at does not split it with a set that is broken."""
        life = Life()
        looked_at = free_source(manifest_json=SOURCE.manifest_json)
        assert life.hashes(observation(looked_at, split=None))
        life.write(BROKEN)
        assert life.hashes(observation(looked_at, split=None)) is None
        assert life.hashes(observation(looked_at, split=split(takes_over=False))) is None

    def test_nothing_known(self) -> None:
        """A process that has just started has nothing to go back to."""
        assert Life(BROKEN).hashes(observation(SOURCE)) is None

    def test_forgotten_with_the_source(self) -> None:
        """A source that is gone takes its rendering with it."""
        life = Life()
        assert life.hashes(observation(SOURCE))
        life.write(BROKEN)
        gone = life.rendering.twins_of(observation(SOURCE, source=None), POLICY)
        assert isinstance(gone, Note)
        assert life.hashes(observation(SOURCE)) is None


class CountedRenderer(Renderer):
    """Renders, and counts how often."""

    rendered = 0

    def render(self, source: Manifest, pool: Pool, policy: Policy) -> Rendered:
        """Render one twin."""
        self.rendered += 1
        return super().render(source, pool, policy)


class TestOnlyWhenNeeded:
    """Twins are rendered when something that may enter them has changed, and only then."""

    def setup_method(self) -> None:
        """Have a renderer whose set copies all that a template sees."""
        text = GOOD + "metadata: {annotations: {{ source.metadata.annotations }}}\n"
        files = {f"deployment/{pool.value}.yaml.j2": text for pool in Pool}
        self.sets = {"own": TemplateSet("own", files)}
        self.renderer = CountedRenderer(self.sets, node_presets_of(Settings()))
        self.rendering = Rendering(self.renderer)

    def hashes(self, metadata: dict[str, object], spec: dict[str, object], policy: Policy = POLICY) -> object:
        """Return the hashes of both twins of the source with this metadata and spec added."""
        manifest = {
            **MANIFEST,
            "metadata": {**mapping_at(MANIFEST, "metadata"), **metadata},
            "spec": {**mapping_at(MANIFEST, "spec"), **spec},
        }
        found = self.rendering.twins_of(observation(source(manifest_json=json.dumps(manifest))), policy)
        assert not isinstance(found, Note)
        return {pool: (found[pool].hash, found[pool].made_of) for pool in Pool}

    def test_a_take_over_renders_once(self) -> None:
        """The mark, the pause, another count and a tool's marks come and go, and nothing is rendered anew."""
        first = self.hashes({}, {"replicas": 3})
        mark = {"splitter.io/taken-over": "x", "deployment.kubernetes.io/revision": "2"}
        for annotations in ({}, mark):
            for spec in ({"replicas": 3}, {"replicas": 4, "paused": True}, {}):
                assert self.hashes({"annotations": annotations}, dict(spec)) == first
        assert self.renderer.rendered == len(Pool)

    def test_what_a_template_sees(self) -> None:
        """An annotation or a label of the user's, the spec, the policy, the set: each is rendered, once."""
        seen = [self.hashes({}, {})]
        seen.append(self.hashes({"annotations": {"team": "a"}}, {}))
        seen.append(self.hashes({}, {"minReadySeconds": 5}))
        seen.append(self.hashes({}, {}, replace(POLICY, restarted_at="2026-01-05")))
        files = {path: text + "# new\n" for path, text in self.sets["own"].files.items()}
        self.sets["own"] = TemplateSet("own", files)
        seen.append(self.hashes({}, {}))
        assert self.renderer.rendered == len(Pool) * len(seen)
        assert seen[0] == seen[-1]
        assert seen[0] != seen[1]
        assert seen[0] != seen[2]
        assert seen[0] != seen[3]

    def test_as_rendered_by_itself(self) -> None:
        """A rendering that was kept is the one that a new process would make."""
        metadata: dict[str, object] = {"annotations": {"team": "a", "splitter.io/taken-over": "x"}}
        self.hashes({"annotations": {"team": "a"}}, {"replicas": 3})
        kept = self.hashes(metadata, {"replicas": 5, "paused": True})
        self.rendering = Rendering(self.renderer)
        assert self.hashes(metadata, {"replicas": 5, "paused": True}) == kept
