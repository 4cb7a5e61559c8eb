"""How much it writes: 50 split workloads, nothing changed for 10 minutes, then every image at once.

Unlike the other benchmarks this one asserts: both counts and the floor are promises. The most replicas are
shown beside those of the same 50 as plain Deployments, rolled in the same way before they are split: N + S is
what Kubernetes asks for, and for a moment a Deployment has a replica more, since one ReplicaSet grows before
the other has deleted its pod. `tests/lives/test_writes.py` makes the same counts in memory, with fewer
workloads and many more looks at each.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from lab.bench.crowd import (
    ACCOUNT,
    NAMESPACE,
    REPLICAS,
    SETTINGS,
    WORKLOADS,
    Crowd,
    crowd,
)
from lab.bench.figures import cpu_seconds, machine, show, write
from lab.demo.controller import Controller
from lab.fixtures.gateway import Gateway
from lab.sandbox.instants import Instant
from lab.sandbox.timeline import Between

pytestmark = pytest.mark.bench

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "writes.json"
# With the resync of 300 s that an installation has, each workload is looked at twice meanwhile.
QUIET_S = float(os.environ.get("QUIET_S", "600"))
_LAST_REPORTS_S = 15.0
SURGE = 1  # 25 % of 4
_PLAIN_IMAGE, _IMAGE = "registry.example/crowd/app:2", "registry.example/crowd/app:3"


class TestWrites:
    """One controller, all of whose requests go through a gateway that notes them."""

    def test_fifty_workloads(self) -> None:
        """Nothing is written while nothing changes; a new image is one write of each twin."""
        with crowd() as here, Gateway(here.sandbox.service_account_kubeconfig(*ACCOUNT)) as gateway:
            plain = _rolled(here, _PLAIN_IMAGE, [""], here.sandbox.check)
            kubeconfig = gateway.kubeconfig(here.sandbox.home / "gateway.kubeconfig")
            with Controller(kubeconfig, SETTINGS, here.sandbox.logs / "splitter.log") as controller:
                here.wait_until_split(controller)
                _let_pass(_LAST_REPORTS_S)
                quiet = _quiet(gateway, controller)
                first = len(gateway.writes)
                rolled = _rolled(here, _IMAGE, ["-on-demand", "-spot"], controller.check)
                here.wait_until_split(controller)
                written = _written(gateway, first)
        figures = {
            "machine": machine(),
            "workloads": WORKLOADS,
            **quiet,
            "writes_of_twins": written.total(),
            "twins_written_once": sum(count == 1 for count in written.values()),
            "split": asdict(rolled),
            "plain": asdict(plain),
        }
        write(RESULTS, figures)
        show(
            f"{WORKLOADS} workloads split",
            [
                (f"writes in {QUIET_S:g} s without a change", str(quiet["writes_while_quiet"]), "0"),
                ("CPU meanwhile", f"{quiet['cpu_percent_while_quiet']:.2f} % of a core", ""),
                ("writes of twins for a new image of each", str(written.total()), str(2 * WORKLOADS)),
                *_rows("split", rolled),
                *_rows("plain", plain),
            ],
        )
        assert quiet["writes_while_quiet"] == 0
        assert Counter(written.values()) == {1: 2 * WORKLOADS}
        assert rolled.fewest_available >= REPLICAS


def _rows(kind: str, rolled: "_Rolled") -> list[tuple[str, str, str]]:
    return [
        (f"{kind}: seconds until all run it", f"{rolled.took_s:.0f}", ""),
        (f"{kind}: fewest available of one workload", str(rolled.fewest_available), str(REPLICAS)),
        (f"{kind}: most replicas of one workload", str(rolled.most_replicas), str(REPLICAS + SURGE)),
        (f"{kind}: workloads with more than {REPLICAS + SURGE}", str(rolled.workloads_above), ""),
    ]


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


@dataclass(frozen=True, slots=True)
class _Rolled:
    """What a new image of every workload at once looked like; replicas, but for the seconds."""

    took_s: float
    fewest_available: int
    most_replicas: int
    workloads_above: int  # N + surge, for however short a moment


def _rolled(here: Crowd, image: str, holders: Sequence[str], check: Callable[[], None]) -> _Rolled:
    """Set another image on every source, and wait until those with these suffixes run it."""
    with here.sandbox.record(NAMESPACE) as recorder:
        began = Instant.now()  # every pod has been seen
        here.set_images(image)
        here.wait_until_run(image, holders, check)
        between = Between(began, Instant.now())
        timelines = [recorder.timeline(labels={"app": name}) for name in here.names]
    most = [timeline.highest_total(between, with_terminating=False) for timeline in timelines]
    return _Rolled(
        took_s=round(between.end.monotonic_s - began.monotonic_s, 1),
        fewest_available=min(timeline.lowest_available(between) for timeline in timelines),
        most_replicas=max(most),
        workloads_above=sum(count > REPLICAS + SURGE for count in most),
    )


def _written(gateway: Gateway, first: int) -> Counter[str]:
    """Return how often each twin was written, of all the writes since the `first`."""
    return Counter(
        write.rest
        for write in gateway.writes[first:]
        if write.kind == "deployments" and write.rest.endswith(("-on-demand", "-spot"))
    )


def _let_pass(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    threading.Event().wait(seconds)
