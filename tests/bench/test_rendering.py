"""What it costs to render in the child process: its start, one rendering here and there, its memory."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from splitter.assembly import renderer_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.replica import Pool
from splitter.core.template_sets import TemplateSet
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

pytestmark = pytest.mark.bench

TIMES = 200
Note = Any  # pytest's record_property


def source(env: int) -> dict[str, object]:
    """Return a Deployment with so many environment variables."""
    variables = [{"name": f"E{number}", "value": "v" * 20} for number in range(env)]
    pods = {"containers": [{"name": "web", "image": "web:1", "env": variables}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pods}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "labels": {"app": "web"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def memory_mib(pid: int | None, field: str) -> float:
    """Return a figure of a process from the kernel, such as VmRSS or VmPeak."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split(f"{field}:")[1].split()[0]) / 1024


@pytest.fixture
def bounded() -> Iterator[BoundedRenderer]:
    """Yield a renderer with the default set, and the same as a ConfigMap brings it."""
    sets: dict[str, TemplateSet] = {}
    renderer = renderer_of(Settings(), sets)
    default = renderer.template_set("default")
    assert default is not None
    sets["own"] = TemplateSet("own", default.files, config_map="home/own")
    with closing(BoundedRenderer(renderer)) as result:
        yield result


async def test_a_usual_source(bounded: BoundedRenderer, record_property: Note) -> None:
    """One of 1.5 KB, by the same templates, in both processes."""
    web, size = source(20), len(json.dumps(source(20)))
    began = time.perf_counter()
    await bounded.render(web, Pool.SPOT, Policy(template_set="own"), size)
    record_property(
        "render: start of the child and first rendering, ms", (time.perf_counter() - began) * 1000
    )
    for name in ("default", "own"):
        for _ in range(TIMES):
            began = time.perf_counter()
            await bounded.render(web, Pool.SPOT, Policy(template_set=name), size)
            took_ms = (time.perf_counter() - began) * 1000
            record_property(f"render: {'in the child' if name == 'own' else 'in this process'}, ms", took_ms)
    record_property("render: memory of the child, MiB", memory_mib(bounded.child_pid, "VmRSS"))


@pytest.mark.parametrize("env", [10_000, 20_000])
async def test_a_large_source(bounded: BoundedRenderer, record_property: Note, env: int) -> None:
    """Of half a MiB and of a whole one, by the default set; and how long the event loop is held."""
    web, size = source(env), len(json.dumps(source(env)))
    await bounded.render(source(1_000), Pool.SPOT, Policy(), 64 * 1024)
    task = asyncio.create_task(bounded.render(web, Pool.SPOT, Policy(), size))
    began = last = time.perf_counter()
    longest_s = 0.0
    while not task.done():
        await asyncio.wait((task,), timeout=0.001)
        longest_s, last = max(longest_s, time.perf_counter() - last), time.perf_counter()
    await task
    record_property(f"render: {size // 1024} KiB, ms", (last - began) * 1000)
    record_property(f"render: {size // 1024} KiB, event loop held, ms", longest_s * 1000)
    record_property(
        f"render: {size // 1024} KiB, address space, MiB", memory_mib(bounded.child_pid, "VmPeak")
    )


async def test_a_large_template(bounded: BoundedRenderer, record_property: Note) -> None:
    """One of 32 KiB, the most there may be, is read."""
    text = "{{1}}" * (32 * 1024 // 5)
    began = time.perf_counter()
    await bounded.faults(TemplateSet("large", {"deployment/spot.yaml.j2": text}, config_map="home/large"))
    record_property("render: a template of 32 KiB read, ms", (time.perf_counter() - began) * 1000)
    peak = memory_mib(bounded.child_pid, "VmPeak")
    record_property("render: a template of 32 KiB read, address space, MiB", peak)
