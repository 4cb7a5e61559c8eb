"""How much it writes: 50 split workloads, nothing changed for 10 minutes, then every image at once.

Unlike the other benchmarks this one asserts: both counts and the floor are promises. The most replicas are
shown beside N + S and not asserted: 6 of 5 were seen here when all 50 rolled at once, and it is not known yet
whether a plain Deployment does the same on a busy machine. `tests/e2e/test_writes.py` makes the
same counts in a minute, with fewer workloads and many more looks at each.
"""

import json
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from bench.crowd import ACCOUNT, DEPLOYMENTS, NAMESPACE, SETTINGS, WORKLOADS, Crowd, crowd
from bench.figures import cpu_seconds, machine, show, write
from e2e.gateway import Gateway
from splitter.demo.controller import Controller
from splitter.sandbox.instants import Instant
from splitter.sandbox.timeline import Between
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "writes.json"
# With the resync of 300 s that an installation has, each workload is looked at twice meanwhile.
QUIET_S = float(os.environ.get("QUIET_S", "600"))
_LAST_REPORTS_S = 15.0
_ROLLED_S = 300.0
_IMAGE = "registry.example/crowd/app:2"


class TestWrites:
    """One controller, all of whose requests go through a gateway that notes them."""

    def test_fifty_workloads(self) -> None:
        """Nothing is written while nothing changes; a new image is one write of each twin."""
        with (
            crowd() as here,
            Gateway(here.sandbox.service_account_kubeconfig(*ACCOUNT)) as gateway,
            Controller(
                gateway.kubeconfig(here.sandbox.home / "gateway.kubeconfig"),
                SETTINGS,
                here.sandbox.logs / "splitter.log",
            ) as controller,
        ):
            here.wait_until_split(controller)
            _let_pass(_LAST_REPORTS_S)
            quiet = _quiet(gateway, controller)
            rolled = _rolled(here, gateway, controller)
        figures = {"machine": machine(), "workloads": WORKLOADS, **quiet, **rolled}
        write(RESULTS, figures)
        show(
            f"{WORKLOADS} workloads split",
            [
                (f"writes in {QUIET_S:g} s without a change", str(quiet["writes_while_quiet"]), "0"),
                ("CPU meanwhile", f"{quiet['cpu_percent_while_quiet']:.2f} % of a core", ""),
                (
                    "writes of twins for a new image of each",
                    str(rolled["writes_of_twins"]),
                    str(2 * WORKLOADS),
                ),
                ("seconds until all run it", f"{rolled['rolled_after_s']:.0f}", ""),
                ("fewest available of one workload", str(rolled["fewest_available"]), "4"),
                ("most replicas of one workload", str(rolled["most_replicas"]), "5"),
            ],
        )
        assert quiet["writes_while_quiet"] == 0
        assert (rolled["writes_of_twins"], rolled["twins_written_once"]) == (2 * WORKLOADS, 2 * WORKLOADS)
        assert rolled["fewest_available"] >= 4


def _quiet(gateway: Gateway, controller: Controller) -> dict[str, float]:
    """Return what is asked for that is no read while nothing changes, and the CPU it takes to look."""
    writes, others = len(gateway.writes), len(gateway.others)
    cpu_s, began = cpu_seconds(controller.process_id), Instant.now()
    _let_pass(QUIET_S)
    controller.check()
    passed_s = Instant.now().monotonic_s - began.monotonic_s
    asked = [*map(str, gateway.writes[writes:]), *gateway.others[others:]]
    print("\n".join(asked))  # noqa: T201 - there is none, or somebody wants to know which
    return {
        "quiet_s": QUIET_S,
        "writes_while_quiet": len(asked),
        "cpu_percent_while_quiet": round((cpu_seconds(controller.process_id) - cpu_s) / passed_s * 100, 2),
    }


def _rolled(here: Crowd, gateway: Gateway, controller: Controller) -> dict[str, float]:
    """Set another image on every source; return what was written, and how many replicas there were."""
    first = len(gateway.writes)
    with here.sandbox.record(NAMESPACE) as recorder:
        began = Instant.now()  # every pod has been seen
        for name in here.names:
            _set_image(here, name)
        wait_until(
            lambda: all(_runs_new(here, name) for name in here.names),
            what="every workload to run the new image",
            deadline_s=_ROLLED_S,
            check=controller.check,
        )
        rolled_after_s = Instant.now().monotonic_s - began.monotonic_s
        here.wait_until_split(controller)
        between = Between(began, Instant.now())
        timelines = [recorder.timeline(labels={"app": name}) for name in here.names]
    written = Counter(
        write.rest
        for write in gateway.writes[first:]
        if write.kind == "deployments" and write.rest.endswith(("-on-demand", "-spot"))
    )
    return {
        "writes_of_twins": written.total(),
        "twins_written_once": sum(count == 1 for count in written.values()),
        "rolled_after_s": round(rolled_after_s, 1),
        "fewest_available": min(timeline.lowest_available(between) for timeline in timelines),
        "most_replicas": max(
            timeline.highest_total(between, with_terminating=False) for timeline in timelines
        ),
    }


def _set_image(here: Crowd, name: str) -> None:
    containers = here.deployments.objects[name]["spec"]["template"]["spec"]["containers"]
    changed = [{**container, "image": _IMAGE} for container in containers]
    patch = {"spec": {"template": {"spec": {"containers": changed}}}}
    here.sandbox.api.patch(f"{DEPLOYMENTS}/{name}", patch, field_manager="bench")


def _runs_new(here: Crowd, name: str) -> bool:
    return all(_is_rolled(here.deployments.objects[f"{name}-{pool}"]) for pool in ("on-demand", "spot"))


def _is_rolled(raw: dict[str, dict[str, object]]) -> bool:
    status, replicas = raw.get("status", {}), raw["spec"]["replicas"]
    counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")}
    return _IMAGE in json.dumps(raw["spec"]["template"]) and counts == {replicas}


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)
