"""Objects in any shape, through parsers, cache, planner and templates: nothing raises, nobody else is harmed.

A run of the unit tests plays few examples of each; FUZZ_EXAMPLES=1000 more.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import objects
from kube.raw import Raw
from splitter.assembly import renderer_of, rules_of
from splitter.core.actions import Action
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations import OWN_ANNOTATIONS
from splitter.core.labels_annotations.label import parse_ownership_mark
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS, Policy, parse_policy
from splitter.core.labels_annotations.saved import parse_saved
from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.core.template_sets import TemplateSet
from splitter.kube.cache import Cache
from splitter.kube.client import ApiError
from splitter.kube.observe import Observer
from splitter.kube.paths import ResourcePath
from splitter.kube.store import Indexer
from splitter.reconciler.rendering import Rendering
from splitter.render.bounded import BoundedRenderer
from splitter.report.status import build
from splitter.settings import Settings

pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "12")), suppress_health_check=[HealthCheck.too_slow]
)
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
SETTINGS = Settings(own_namespace="splitter-system")
BROUGHT: dict[str, TemplateSet] = {}
RENDERER = renderer_of(SETTINGS, BROUGHT)
BOUNDED = BoundedRenderer(RENDERER)
RULES = rules_of(SETTINGS)
WEB = {kind: Key(kind, "shop", "web") for kind in ("Deployment", "StatefulSet")}
OTHER = Key("Deployment", "shop", "other")
SHARED = {"namespace", "template-set"}
"""Whose policy and templates are the other workload's too."""

SHELVES: dict[str, tuple[Callable[[], Raw], Callable[[Cache], Indexer[Any]]]] = {
    "deployment": (objects.deployment, lambda cache: cache.sources),
    "statefulset": (objects.stateful_set, lambda cache: cache.sources),
    "twin": (objects.twin, lambda cache: cache.twins),
    "statefulset-twin": (lambda: objects.twin("StatefulSet"), lambda cache: cache.twins),
    "replicaset": (objects.replica_set, lambda cache: cache.replica_sets),
    "pod": (objects.pod, lambda cache: cache.pods),
    "node": (objects.node, lambda cache: cache.nodes),
    "split": (objects.split, lambda cache: cache.splits),
    "statefulset-split": (lambda: objects.split("StatefulSet"), lambda cache: cache.splits),
    "namespace": (objects.namespace, lambda cache: cache.namespaces),
    "template-set": (objects.template_set, lambda cache: cache.template_sets.store),
    "event": (objects.node_event, lambda cache: cache.external_signals.events),
    "refusal": (objects.node_event, lambda cache: cache.external_signals.refusals),
    "claim": (objects.claim, lambda cache: cache.external_signals.claims),
    "autoscaler": (objects.autoscaler, lambda cache: cache.external_signals.autoscaler),
}


class Nobody:
    """An API server that knows of nothing but what is watched."""

    async def find(self, path: ResourcePath, **query: str) -> Mapping[str, Any] | None:
        """Return an empty list, or no object."""
        del query
        lists = not path.name
        return {"items": [], "metadata": {"resourceVersion": "1"}} if lists else None

    async def get(self, path: ResourcePath, **query: str) -> Mapping[str, Any]:
        """Return an empty list, or say that there is no such object."""
        if (result := await self.find(path, **query)) is None:
            raise ApiError(404, "NotFound", str(path))
        return result

    async def pages(self, path: ResourcePath, *_: object, **__: object) -> AsyncIterator[Mapping[str, Any]]:
        """Answer a GET of a collection."""
        yield await self.get(path)


def filled() -> Cache:
    """Return what splitter knows of a cluster with two workloads, one of which is left alone here."""

    def enqueue(key: Key, *, urgent: bool) -> None:
        del key, urgent

    cache = Cache(assess, enqueue, "kube-system/ca", "splitter-system")
    for make, indexer in SHELVES.values():
        indexer(cache).upsert(make())
    other = objects.deployment("other")
    other["metadata"]["annotations"] = {}
    cache.sources.upsert(other)
    return cache


def passed(cache: Cache, key: Key) -> tuple[Action, ...]:
    """Do what a reconcile does but for its writes: observe, render, plan, report."""
    observed = asyncio.run(Observer(Nobody(), cache).observe(key, NOW))  # type: ignore[arg-type]
    in_force = policy_in_force(observed, RULES.defaults)
    BROUGHT.clear()
    BROUGHT.update(cache.template_sets.by_name)
    twins = asyncio.run(Rendering(BOUNDED).twins_of(observed, in_force.policy))
    planned = plan(observed, in_force, twins, RULES)
    build(observed, planned, in_force, written=True)
    return planned.actions


BEFORE = passed(filled(), OTHER)


@pytest.fixture(scope="module", autouse=True)
def _child() -> Iterator[None]:
    """End the process that renders what was brought."""
    yield
    BOUNDED.close()


@pytest.mark.parametrize("kind", SHELVES)
@FEW
@given(data=st.data())
def test_a_spoiled_object(kind: str, data: st.DataObject) -> None:
    """It is read as far as it makes sense, or left out; reconciles go on, and others' are the same."""
    make, indexer = SHELVES[kind]
    raw = data.draw(objects.spoiled(make()))
    raw["metadata"]["resourceVersion"] = "2"
    cache = filled()
    indexer(cache).upsert(raw)
    for key in WEB.values():
        passed(cache, key)
    actions = passed(cache, OTHER)
    assert kind in SHARED or actions == BEFORE
    indexer(cache).remove(raw)
    passed(cache, OTHER)


@FEW
@given(objects.spoiled(objects.deployment()), st.sampled_from(Pool))
def test_templates(raw: Raw, pool: Pool) -> None:
    """Of anything as its source a template makes a twin, or says what is wrong with it."""
    result = rendered(raw, pool)
    assert result is Reason.TEMPLATE_INVALID or result == raw.get("kind", "Deployment")


def rendered(raw: Raw, pool: Pool) -> object:
    """Return the kind of the twin, or the reason why there is none."""
    try:
        return json.loads(RENDERER.render(raw, pool, Policy()).manifest_json)["kind"]
    except SplitterError as refusal:
        return refusal.reason


ANNOTATIONS = st.dictionaries(
    st.sampled_from((*USER_ANNOTATIONS, *OWN_ANNOTATIONS, "splitter.io/unknown", "note")),
    st.sampled_from(objects.WORDS) | st.text(max_size=30),
)


@given(ANNOTATIONS, ANNOTATIONS)
def test_annotations(source: dict[str, str], namespace: dict[str, str]) -> None:
    """Any texts are a policy, or sentences that say what to write, each short enough for an Event."""
    parsed = parse_policy(source, Policy(), namespace)
    assert parsed.policy is not None or parsed.problems
    assert all(problem.message and len(problem.message) <= 1024 for problem in parsed.problems)


@given(st.sampled_from(objects.WORDS) | st.text())
def test_marks(text: str) -> None:
    """What splitter has written on a source is read again, and anything else is nothing."""
    mark, saved = parse_ownership_mark(text), parse_saved(text)
    assert mark is None or mark.time.tzinfo is not None
    assert saved is None or min(saved.replicas, saved.left) >= 0
