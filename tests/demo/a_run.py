"""A run of the demo, on paper."""

from collections.abc import Mapping
from typing import Any

from lab.demo.promises import Cell, Expected, Judged, ReplicasWritten, Step, judge
from lab.demo.workload import Workload
from lab.sandbox import Between, Instant, Steps, Timeline
from lab.sandbox.asked import Asked

JsonObject = dict[str, Any]


def at(second: float) -> Instant:
    """Return a moment, in seconds since the beginning."""
    return Instant(second, second)


def workload(*, replicas: int = 4, surge: str = "1", unavailable: str = "0") -> Workload:
    """Build a workload called web."""
    return Workload("web", replicas, surge, unavailable, {"app": "web"})


def timeline(available: Mapping[float, int], total: Mapping[float, int] | None = None) -> Timeline:
    """Build a timeline from the counts that hold from a second on."""

    def steps(counts: Mapping[float, int]) -> Steps:
        return Steps(tuple(counts), tuple(counts.values()))

    counted = steps(total or available)
    return Timeline(Between(at(0), at(100)), steps(available), counted, counted)


def step(expected: Expected, **changed: Any) -> Step:  # noqa: ANN401 - fields of Step
    """Build a step from second 10 to second 20."""
    return Step("a step", at(10), at(20), {"web": expected}, **changed)


def asked(counts: Mapping[float, int]) -> Asked:
    """Make what the ReplicaSets are asked for from the counts that hold from a second on."""
    result = Asked()
    for second, replicas in counts.items():
        result.see(
            at(second), {"metadata": {"name": "web-spot-1"}, "spec": {"replicas": replicas}}, deleted=False
        )
    return result


def judged(
    of: Step,
    counts: Timeline,
    *writes: ReplicasWritten,
    web: Workload | None = None,
    replicas: Mapping[float, int] | None = None,
) -> Judged:
    """Judge a step of `web` by its counts; 4 replicas are asked for all the time, unless said."""
    return judge(of, [web or workload()], {"web": counts}, writes, asked(replicas or {0: 4}))


def cell(result: Judged) -> Cell:
    """Return the only cell of a verdict."""
    return result.cells["web"]


def deployment(**metadata: JsonObject) -> JsonObject:
    """Build a raw Deployment called web."""
    containers = [{"name": "web", "image": "web:1"}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}, **metadata},
        "spec": {"replicas": 4, "template": {"spec": {"containers": containers}}},
    }
