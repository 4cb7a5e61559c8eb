"""What splitter's share of the API server is worth: notices while others flood it with lists.

Measured in one run, in turn: quiet, under the flood without manifests/flowcontrol.yaml, and with it. The API
server serves fewer requests at once than usual, so that a few connections fill it as thousands fill a large
one.
"""

import json
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.bench.bare import raises_after
from lab.bench.crowd import ACCOUNT, NAMESPACE, SETTINGS, Crowd, Size, crowd
from lab.bench.figures import Percentiles, machine, show_percentiles, write
from lab.checkout import ROOT
from lab.demo.controller import Controller
from splitter.bundled import bundled_path

pytestmark = pytest.mark.bench

RESULTS = ROOT / "benchmarks" / "flood.json"
FLOWCONTROL = bundled_path("manifests/flowcontrol.yaml")
SIZE = Size(workloads=20, spot_nodes=5)
ACCOUNTS = 4
_FILLED_S, _QUIET_S = 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Flooders:
    """Who floods: accounts by their tokens, and whom they trust."""

    authority: str  # a certificate
    tokens: list[str]
    connections: int


@pytest.mark.parametrize(("at_once", "connections", "rounds"), [(30, 64, 2), (100, 160, 1)])
def test_notices_under_a_flood(tmp_path: Path, at_once: int, connections: int, rounds: int) -> None:
    """Measure the time from a taint to the on-demand writes; show how much of it the share takes away."""
    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, int] = defaultdict(int)
    took_s: dict[str, float] = defaultdict(float)
    with crowd(replace(SIZE, requests_at_once=at_once)) as here:
        flooders = _flooders(here, connections)
        kubeconfig = here.sandbox.service_account_kubeconfig(*ACCOUNT)
        with Controller(kubeconfig, SETTINGS, here.sandbox.logs / "splitter.log") as controller:
            here.wait_until_split(controller)
            for _ in range(rounds):
                for arm in ("quiet", "without", "with"):
                    if arm == "with":
                        here.sandbox.kubectl("apply", "-f", str(FLOWCONTROL))
                    for node in here.spot_nodes:
                        began = time.monotonic()
                        with _flood(here, flooders if arm != "quiet" else None, tmp_path) as answered:
                            seconds[arm] += _notice(here, node)
                        took_s[arm] += time.monotonic() - began
                        answers[arm] += answered.get("200", 0)
                        here.sandbox.fleet.withdraw(node)
                        here.wait_until_split(controller)
                        _let_pass(_QUIET_S)
                    if arm == "with":
                        here.sandbox.kubectl("delete", "-f", str(FLOWCONTROL))
    spread = {arm: Percentiles.of(samples) for arm, samples in seconds.items()}
    figures: dict[str, Any] = {
        "machine": machine(),
        "workloads": SIZE.workloads,
        "flooding_accounts": ACCOUNTS,
        "flooding_connections": connections,
        "lists_a_second": {arm: round(answers[arm] / took_s[arm]) for arm in ("without", "with")},
        **{arm: asdict(samples) for arm, samples in spread.items()},
        "p99_without_to_with": round(spread["without"].p99_ms / spread["with"].p99_ms, 2),
    }
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    write(RESULTS, {**kept, f"{at_once} requests at once": figures})
    show_percentiles([(f"taint -> on-demand write, {arm}", samples, "") for arm, samples in spread.items()])
    assert min(answers["without"], answers["with"]) > connections  # else nobody flooded
    assert len({len(samples) for samples in seconds.values()}) == 1


def _notice(here: Crowd, node: str) -> list[float]:
    names = [f"{name}-on-demand" for name in here.workloads_on(node)]
    noticed = here.sandbox.fleet.notice((node,))
    return raises_after(here, noticed, names, expected=len(names), deadline_s=90)


def _flooders(here: Crowd, connections: int) -> Flooders:
    """Make accounts that may list pods."""
    kubeconfigs = []
    here.sandbox.kubectl("create", "clusterrole", "lists-pods", "--verb=list", "--resource=pods")
    for number in range(ACCOUNTS):
        name = f"flood-{number}"
        here.sandbox.kubectl("-n", NAMESPACE, "create", "serviceaccount", name)
        account = f"--serviceaccount={NAMESPACE}:{name}"
        here.sandbox.kubectl("create", "clusterrolebinding", name, "--clusterrole=lists-pods", account)
        kubeconfig = here.sandbox.service_account_kubeconfig(NAMESPACE, name)
        kubeconfigs.append(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")))
    authority = b64decode(kubeconfigs[0]["clusters"][0]["cluster"]["certificate-authority-data"])
    return Flooders(
        authority.decode(), [one["users"][0]["user"]["token"] for one in kubeconfigs], connections
    )


@contextmanager
def _flood(here: Crowd, flooders: Flooders | None, folder: Path) -> Iterator[dict[str, int]]:
    """Flood the API server meanwhile; afterwards there is in it what was answered, by status."""
    answers: dict[str, int] = {}
    if flooders is None:
        yield answers
        return
    asked = {
        "url": here.sandbox.url,
        "authority": flooders.authority,
        "tokens": flooders.tokens,
        "connections": flooders.connections,
    }
    with (folder / "flood.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.bench.flood"],
            cwd=ROOT / "tests",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        try:
            assert process.stdout.readline() == "begun\n"
            _let_pass(_FILLED_S)
            yield answers
        finally:
            said, _ = process.communicate("\n", timeout=60)
            answers |= json.loads(said)


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)
