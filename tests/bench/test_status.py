"""How long `splitter status` takes with 1,000 Splits: plain API objects, no controller.

It measures; what it asserts is only that every Split is shown.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lab.bench.figures import machine, show
from lab.fixtures.controller import install
from lab.sandbox import Sandbox

pytestmark = pytest.mark.bench

SPLITS = 1_000
NAMESPACES = 20
RUNS = 7
_API = "/apis/splitter.io/v1alpha1"
# As long as real ones: 20 decisions and 7 conditions are 7 kB a Split.
_SENTENCE = "scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes"
_TIME = "2026-11-21T14:10:00Z"
_KINDS = ("Eligible", "PolicyValid", "Ready", "PodsHealthy", "Progressing", "SpotAvailable", "Conflict")
_COUNTS = {"wanted": 5, "spec": 5, "ready": 5, "doomed": 0, "pending": 0}
_STATUS: dict[str, Any] = {
    "state": "Moving",
    "reason": "SpotInterrupted",
    "message": _SENTENCE,
    "desired": 10,
    "ready": 10,
    "cover": 0,
    "onDemand": _COUNTS,
    "spot": _COUNTS,
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "Balanced",
            "message": _SENTENCE,
            "lastTransitionTime": _TIME,
        }
        for kind in _KINDS
    ],
    "decisions": [{"time": _TIME, "reason": "SpotInterrupted", "message": _SENTENCE} for _ in range(20)],
}


class TestStatus:
    """One list, one table."""

    def test_of_a_thousand(self, sandbox: Sandbox) -> None:
        """Every Split is one line; the seconds are printed."""
        install(sandbox)
        for number in range(NAMESPACES):
            sandbox.kubectl("create", "namespace", f"team-{number}")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: _create(sandbox, number), range(SPLITS)))
        command = [sys.executable, "-m", "splitter", "status", "-A"]
        environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
        took, before = [], _children_cpu_s()
        for _ in range(RUNS):
            began = time.monotonic()
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            took.append(time.monotonic() - began)
            assert len(ran.stdout.splitlines()) == SPLITS + 1
        cpu_s = (_children_cpu_s() - before) / RUNS
        show(
            f"splitter status -A, {SPLITS} Splits, {RUNS} runs",
            [
                ("median", f"{statistics.median(took):.2f} s", "under 2 s"),
                ("slowest", f"{max(took):.2f} s", ""),
                ("CPU of one run", f"{cpu_s:.2f} s", ""),
                ("machine", json.dumps(machine()), ""),
            ],
        )


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _create(sandbox: Sandbox, number: int) -> None:
    namespace, name = f"team-{number % NAMESPACES}", f"web-{number}"
    source = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    split = {
        "apiVersion": "splitter.io/v1alpha1",
        "kind": "Split",
        "metadata": {"name": name},
        "spec": {"source": source},
    }
    path = f"{_API}/namespaces/{namespace}/splits"
    sandbox.api.create(path, split)
    sandbox.api.patch(f"{path}/{name}/status", {"status": _STATUS})
