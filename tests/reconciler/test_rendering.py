"""The twins of a source from reconcile to reconcile: what a broken template leaves standing."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import free_source, observation, pods, source, split, twin
from splitter.assembly import node_presets_of, renderer_of
from splitter.core.desired.manifest import Manifest, mapping_at
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, Rendered
from splitter.core.names import Key  # noqa: TC001
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.template_sets import TemplateSet
from splitter.reconciler.rendering import Rendering
from splitter.render import Renderer, TemplateError
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

DEADLINE_S = 30.0
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
        self.rendering = Rendering(BoundedRenderer(renderer_of(Settings(), self._sets)))
        self.write(text)

    def write(self, text: str) -> None:
        """Have both templates of the set read so."""
        files = {f"deployment/{pool.value}.yaml.j2": text for pool in Pool}
        self._sets["own"] = TemplateSet("own", files)

    async def hashes(self, observed: Observation) -> set[str] | None:
        """Return the hashes of both twins in a reconcile, None when the set is broken."""
        result = await self.rendering.twins_of(observed, POLICY)
        if isinstance(result, Note):
            assert result.reason is Reason.TEMPLATE_INVALID
            return None
        return {rendered.hash for rendered in result.values()}


class TestLastGood:
    """While its set is broken, a twin comes back as it was rendered last."""

    async def test_only_for_a_deleted_twin(self) -> None:
        """Both there: what is wrong is said. One gone: both as before. Mended: what the set says now."""
        life = Life()
        good = await life.hashes(BOTH)
        life.write(BROKEN)
        assert await life.hashes(BOTH) is None
        assert await life.hashes(ONE) == good
        assert await life.hashes(BOTH) is None
        life.write(GOOD + "metadata: {annotations: {new: 'yes'}}\n")
        assert await life.hashes(observation(SOURCE)) not in (good, None)

    async def test_not_before_the_split(self) -> None:
        """What was rendered while the workload was looked at does not split it with a set that is broken."""
        life = Life()
        looked_at = free_source(manifest_json=SOURCE.manifest_json)
        assert await life.hashes(observation(looked_at, split=None))
        life.write(BROKEN)
        assert await life.hashes(observation(looked_at, split=None)) is None
        assert await life.hashes(observation(looked_at, split=split(takes_over=False))) is None

    async def test_nothing_known(self) -> None:
        """A process that has just started has nothing to go back to."""
        assert await Life(BROKEN).hashes(observation(SOURCE)) is None

    async def test_forgotten_with_the_source(self) -> None:
        """A source that is gone takes its rendering with it."""
        life = Life()
        assert await life.hashes(observation(SOURCE))
        life.write(BROKEN)
        gone = await life.rendering.twins_of(observation(SOURCE, source=None), POLICY)
        assert isinstance(gone, Note)
        assert await life.hashes(observation(SOURCE)) is None


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
        self.rendering = Rendering(BoundedRenderer(self.renderer))

    async def hashes(
        self, metadata: dict[str, object], spec: dict[str, object], policy: Policy = POLICY
    ) -> object:
        """Return the hashes of both twins of the source with this metadata and spec added."""
        manifest = {
            **MANIFEST,
            "metadata": {**mapping_at(MANIFEST, "metadata"), **metadata},
            "spec": {**mapping_at(MANIFEST, "spec"), **spec},
        }
        result = await self.rendering.twins_of(
            observation(source(manifest_json=json.dumps(manifest))), policy
        )
        assert not isinstance(result, Note)
        return {pool: (result[pool].hash, result[pool].made_of) for pool in Pool}

    async def test_a_take_over_renders_once(self) -> None:
        """The mark, the pause, another count and a tool's marks come and go, and nothing is rendered anew."""
        first = await self.hashes({}, {"replicas": 3})
        mark = {"splitter.io/taken-over": "x", "deployment.kubernetes.io/revision": "2"}
        for annotations in ({}, mark):
            for spec in ({"replicas": 3}, {"replicas": 4, "paused": True}, {}):
                assert await self.hashes({"annotations": annotations}, dict(spec)) == first
        assert self.renderer.rendered == len(Pool)

    async def test_what_a_template_sees(self) -> None:
        """An annotation or a label of the user's, the spec, the policy, the set: each is rendered, once."""
        seen = [await self.hashes({}, {})]
        seen.append(await self.hashes({"annotations": {"team": "a"}}, {}))
        seen.append(await self.hashes({}, {"minReadySeconds": 5}))
        seen.append(await self.hashes({}, {}, replace(POLICY, restarted_at="2026-01-05")))
        files = {path: text + "# new\n" for path, text in self.sets["own"].files.items()}
        self.sets["own"] = TemplateSet("own", files)
        seen.append(await self.hashes({}, {}))
        assert self.renderer.rendered == len(Pool) * len(seen)
        assert seen[0] == seen[-1]
        assert seen[0] != seen[1]
        assert seen[0] != seen[2]
        assert seen[0] != seen[3]

    async def test_as_rendered_by_itself(self) -> None:
        """A rendering that was kept is the one that a new process would make."""
        metadata: dict[str, object] = {"annotations": {"team": "a", "splitter.io/taken-over": "x"}}
        await self.hashes({"annotations": {"team": "a"}}, {"replicas": 3})
        kept = await self.hashes(metadata, {"replicas": 5, "paused": True})
        self.rendering = Rendering(BoundedRenderer(self.renderer))
        assert await self.hashes(metadata, {"replicas": 5, "paused": True}) == kept


class SlowRenderer(BoundedRenderer):
    """Renders when it is let, as a set that takes seconds."""

    def __init__(self) -> None:
        self.sets: dict[str, TemplateSet] = {}
        self.write(GOOD)
        super().__init__(Renderer(self.sets, node_presets_of(Settings())))
        self.ready = asyncio.Event()
        self.fault: Exception | None = None
        self.next: list[str] = []  # what the set is when the last twin is rendered, when the one before, ...

    def write(self, text: str) -> None:
        """Have both templates of the set read so."""
        self.sets["own"] = TemplateSet("own", {f"deployment/{pool.value}.yaml.j2": text for pool in Pool})

    async def render(self, source: Manifest, pool: Pool, policy: Policy, size: int) -> Rendered:
        """Render one twin, or fail."""
        if self.next:
            self.write(self.next.pop())
        await self.ready.wait()
        if self.fault is not None:
            raise self.fault
        return await super().render(source, pool, policy, size)


class TestInTime:
    """A pass waits for twins no longer than anybody notices."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have it wait for a moment only."""
        monkeypatch.setattr("splitter.reconciler.rendering._PATIENCE_S", 0.01)

    def setup_method(self) -> None:
        """Have a renderer that is slow."""
        self.renderer = SlowRenderer()
        self.done: asyncio.Queue[Key] = asyncio.Queue()
        self.rendering = Rendering(self.renderer, self.done.put_nowait)

    async def test_what_is_there_at_once(self) -> None:
        """Nothing is asked for again."""
        self.renderer.ready.set()
        twins = await self.rendering.twins_in_time(BOTH, POLICY)
        assert twins == await self.rendering.twins_of(BOTH, POLICY)
        assert isinstance(twins, Mapping)
        assert self.done.empty()

    async def test_what_takes_long(self) -> None:
        """The pass is told nothing; the key comes again with the twins, which are rendered once."""
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        self.renderer.ready.set()
        async with asyncio.timeout(DEADLINE_S):
            assert await self.done.get() == BOTH.key
        self.renderer.ready.clear()
        assert isinstance(await self.rendering.twins_in_time(BOTH, POLICY), Mapping)
        assert self.done.empty()

    async def test_a_set_that_changes_meanwhile(self) -> None:
        """Both twins are of one set, the last."""
        self.renderer.ready.set()
        changed = GOOD + "metadata: {annotations: {new: 'yes'}}\n"
        self.renderer.next = [changed, GOOD]
        result = await self.rendering.twins_of(BOTH, POLICY)
        assert isinstance(result, Mapping)
        assert all('"new":"yes"' in rendered.manifest_json for rendered in result.values())

    async def test_what_fails_late(self) -> None:
        """A fault comes with the next reconcile, and is kept as one that came at once."""
        self.renderer.fault = TemplateError("own", "own/x", 3, "it is wrong")
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        self.renderer.ready.set()
        async with asyncio.timeout(DEADLINE_S):
            await self.done.get()
        self.renderer.fault = None
        twins = await self.rendering.twins_in_time(BOTH, POLICY)
        assert isinstance(twins, Note)
        assert "own/x, line 3: it is wrong" in twins.message

    async def test_a_source_that_goes_meanwhile(self) -> None:
        """Nothing is kept of it."""
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        gone = await self.rendering.twins_in_time(replace(BOTH, source=None), POLICY)
        assert isinstance(gone, Note)
        self.renderer.ready.set()
        assert isinstance(await self.rendering.twins_in_time(BOTH, POLICY), Mapping)
        assert self.done.empty()

    async def test_the_end(self) -> None:
        """What is under way when a term ends is given up, and enqueues nobody."""
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        self.rendering.end()
        self.renderer.ready.set()
        await self.rendering.twins_of(BOTH, POLICY)
        assert self.done.empty()

    async def test_a_bug(self, caplog: pytest.LogCaptureFixture) -> None:
        """What nobody waits for any more is said, and the next reconcile finds it out again."""
        self.renderer.fault = RuntimeError("a bug")
        assert await self.rendering.twins_in_time(BOTH, POLICY) is None
        self.renderer.ready.set()
        async with asyncio.timeout(DEADLINE_S):
            await self.done.get()
        assert "no twins are rendered of" in caplog.text
        with pytest.raises(RuntimeError, match="a bug"):
            await self.rendering.twins_in_time(BOTH, POLICY)

    @pytest.mark.parametrize(("again_s", "kept"), [(60.0, True), (-1.0, False)])
    async def test_what_may_pass(self, monkeypatch: pytest.MonkeyPatch, again_s: float, kept: bool) -> None:
        """A failure that is not the template's is told for a minute, and then tried again."""
        monkeypatch.setattr("splitter.reconciler.rendering._AGAIN_S", again_s)
        self.renderer.ready.set()
        self.renderer.fault = TemplateError("own", "own/x", None, "no process", lasting=False)
        assert isinstance(await self.rendering.twins_of(BOTH, POLICY), Note)
        self.renderer.fault = None
        assert isinstance(await self.rendering.twins_of(BOTH, POLICY), Note) is kept
