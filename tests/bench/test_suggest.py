"""What `splitter suggest -A` costs where a cluster has a thousand workloads without the label.

The API server is a Python process on loopback that lists them page by page: what is measured is the command.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.bench.figures import machine, show
from unlabelled import World
from world.kinds import PODS
from world.server import serving

pytestmark = pytest.mark.bench

WORKLOADS, NAMESPACES, RUNS = 1000, 20, 5


class TestSuggest:
    """Whole lists, few replays."""

    def test_of_a_thousand(self, tmp_path: Path) -> None:
        """Every workload is suggested; the seconds are printed."""
        world, dice = World(), random.Random(1)
        world.add_nodes(40, 40)
        world.add_policy()
        for number in range(NAMESPACES):
            world.add_namespace(f"team-{number}")
        for number in range(WORKLOADS):
            namespace = f"team-{number % NAMESPACES}"
            if number % 10:
                replicas = dice.choice([1, 2, 3, 4, 6, 8, 10, 12, 20, 40])
                start_s = dice.uniform(3, 200)
                world.add_deployment(f"web-{number}", replicas, namespace=namespace, start_s=start_s)
            else:
                world.add_stateful_set(f"db-{number}", namespace=namespace)
        took = []
        with serving(world.api, tmp_path / "kubeconfig"):
            command = [sys.executable, "-m", "splitter", "suggest", "-A", "-o", "json"]
            environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
            for _ in range(RUNS):
                began = time.monotonic()
                ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                took.append(time.monotonic() - began)
                assert len(json.loads(ran.stdout)["workloads"]) == WORKLOADS
        pods = len(world.api.objects.all(PODS))
        show(
            f"splitter suggest -A, {WORKLOADS} workloads, {pods} pods, {RUNS} runs",
            [
                ("median", f"{statistics.median(took):.2f} s", "under 10 s"),
                ("slowest", f"{max(took):.2f} s", ""),
                ("requests of one run", str(len(world.api.asked) // RUNS), ""),
                ("machine", json.dumps(machine()), ""),
            ],
        )
