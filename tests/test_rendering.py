"""The twins of a source from pass to pass: what a broken template leaves standing."""

import json
from dataclasses import replace

from builders import free_source, observation, pods, source, split, twin
from splitter.assembly import renderer_of
from splitter.core.model import Note, Observation, Policy, Pool
from splitter.core.reasons import Reason
from splitter.core.template_sets import TemplateSet
from splitter.reconciler.rendering import Rendering
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
