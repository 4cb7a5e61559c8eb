"""What `splitter dashboard` costs where a cluster has a thousand split workloads, seen in a real browser.

The API server is a Python process on loopback, the command and the browser are processes of their own. The
time of an update is from the write of a Split in the cluster until the browser has it on the screen.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium.webdriver import Chrome

from lab.bench.figures import machine, show
from plugin.dashboard.browser import DESK, MISSING, chromium, looks_like, programs
from plugin.dashboard.paper_cluster import PaperCluster, node, placed, split
from splitter.core.names import DEPLOYMENT, Key
from splitter.plugin.dashboard.fleet import element_id
from world.server import served

pytestmark = [pytest.mark.bench, pytest.mark.skipif(programs() is None, reason=MISSING)]

WORKLOADS, REPLICAS, UPDATES, VIEWS = 1000, 10, 100, 5
_SEEN = """
const [id, words, done] = arguments;
const look = () => document.getElementById(id)?.textContent.includes(words)
  ? requestAnimationFrame(() => done(Date.now())) : setTimeout(look, 1);
look();
"""
_PAINTED = """
const [one] = performance.getEntriesByType('navigation');
const paints = performance.getEntriesByName('first-contentful-paint').map((it) => it.startTime);
return [one.domContentLoadedEventEnd, Math.max(...paints), document.querySelectorAll('#rows tr').length];
"""


def cluster() -> PaperCluster:
    """Return 1,000 workloads of 10 replicas, each with a history of 20 decisions."""
    result, now, dice = PaperCluster(), datetime.now(UTC), random.Random(1)
    for number in range(80):
        result.put("nodes", node(f"on-demand-{number}", "on-demand", "abc"[number % 3]))
        result.put("nodes", node(f"spot-{number}", "spot", "abc"[number % 3]))
    for number in range(WORKLOADS):
        name, namespace = f"app-{number}", f"team-{number % 20}"
        begin = dice.uniform(60, 300)
        decisions = [
            (
                now - timedelta(minutes=begin - minute),
                "Returning",
                f"scale spot {minute % 8} -> {minute % 8 + 1} (+1): x",
            )
            for minute in range(20)
        ]
        result.put("splits", split(name, namespace=namespace, decisions=decisions))
        placed(result, name, 2, 8, namespace)
    return result


def kubeconfig(file: Path, address: str) -> Path:
    """Write a kubeconfig of an address."""
    named = {"name": "paper"}
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "paper",
                "clusters": [named | {"cluster": {"server": address}}],
                "users": [named | {"user": {"token": "x"}}],
                "contexts": [named | {"context": {"cluster": "paper", "user": "paper"}}],
            }
        )
    )
    return file


@asynccontextmanager
async def command(address: str, home: Path) -> AsyncIterator[tuple[str, int, float]]:
    """Yield the page's address, the process' id, and after how many seconds the page was there."""
    arguments = [sys.executable, "-m", "splitter", "dashboard", "-A"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig(home / "kubeconfig", address))}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        yield line.split()[-1], process.pid, time.monotonic() - began
    finally:
        process.terminate()
        await process.wait()


def resident(pid: int) -> tuple[float, float]:
    """Return the memory that a process has, and the most that it had, in MiB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    return tuple(int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percent(result: list[float], share: float) -> str:
    """Return a quantile in milliseconds."""
    return f"{sorted(result)[min(len(result) - 1, int(share * len(result)))]:.0f} ms"


async def test_of_a_thousand(tmp_path: Path) -> None:
    """First views, updates one by one, all at once, and what the process takes."""
    paper = cluster()
    with chromium(tmp_path / "chromium") as driver:
        driver.set_script_timeout(30)
        async with served(paper.api) as address, command(address, tmp_path) as (page, pid, took_s):
            await _measure(paper, driver, page, pid, took_s)


async def _measure(paper: PaperCluster, driver: Chrome, page: str, pid: int, took_s: float) -> None:
    async def off(look: Any, *given: object) -> Any:  # noqa: ANN401 (whatever the browser says)
        return await asyncio.to_thread(look, *given)

    looks_like(driver, DESK)
    loaded, painted = [], []
    begin_s = cpu_s(pid)
    for _ in range(VIEWS):
        await off(driver.get, "about:blank")
        await off(driver.get, page)
        content_ms, paint_ms, rows = await off(driver.execute_script, _PAINTED)
        assert rows == WORKLOADS
        loaded.append(content_ms)
        painted.append(paint_ms)
    view_s, begin_s = (cpu_s(pid) - begin_s) / VIEWS, cpu_s(pid)
    updates = []
    for number in range(UPDATES):
        name, namespace = f"app-{number * 7}", f"team-{number * 7 % 20}"
        words = f"Reason{number}x"
        row = element_id(Key(DEPLOYMENT, namespace, name))
        seen = asyncio.create_task(off(driver.execute_async_script, _SEEN, row, words))
        await asyncio.wait([seen], timeout=0.05)  # the browser looks already
        written_ms = time.time() * 1000
        paper.put("splits", split(name, namespace=namespace, state="Moving", reason=words))
        updates.append(await seen - written_ms)
    update_s = (cpu_s(pid) - begin_s) / UPDATES
    last = element_id(Key(DEPLOYMENT, f"team-{(WORKLOADS - 1) % 20}", f"app-{WORKLOADS - 1}"))
    seen = asyncio.create_task(off(driver.execute_async_script, _SEEN, last, "AllAtOnce"))
    await asyncio.wait([seen], timeout=0.05)
    written_ms = time.time() * 1000
    for number in range(WORKLOADS):
        paper.put("splits", split(f"app-{number}", namespace=f"team-{number % 20}", reason="AllAtOnce"))
    wrote_ms = time.time() * 1000 - written_ms
    all_ms = await seen - written_ms
    now_mib, most_mib = resident(pid)
    show(
        f"splitter dashboard -A, {WORKLOADS} workloads of {REPLICAS} replicas",
        [
            ("from the command to the page", f"{took_s:.1f} s", "the first lists included"),
            ("first view, all rows in the document", f"{statistics.median(loaded):.0f} ms", "under 1 s"),
            ("first view, painted", f"{statistics.median(painted):.0f} ms", ""),
            ("first view, slowest of 5", f"{max(loaded):.0f} ms", ""),
            ("an update, median of 100", percent(updates, 0.5), "under 300 ms"),
            ("an update, 90 of 100", percent(updates, 0.9), ""),
            ("an update, slowest of 100", percent(updates, 1.0), ""),
            ("1,000 updates at once, the last", f"{all_ms:.0f} ms", f"written within {wrote_ms:.0f} ms"),
            ("CPU of the command, a view", f"{view_s * 1000:.0f} ms", ""),
            ("CPU of the command, an update", f"{update_s * 1000:.0f} ms", "its share of ticks included"),
            ("memory afterwards", f"{now_mib:.0f} MiB", "under 150"),
            ("memory at most", f"{most_mib:.0f} MiB", ""),
            ("machine", str(machine()), ""),
        ],
    )
