"""What only a real kubelet shows: pods that end or start slowly, flap, crash, or are evicted from a disk.

Each test takes half a minute or more, so they are a campaign (`make test-campaigns`); `test_traffic` plays
the one life that every change has to pass.
"""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from lab.fixtures import web
from lab.fixtures.shop import DEADLINE_S, JsonObject, Shop
from lab.fixtures.stage import Stage
from lab.sandbox import SandboxError
from lab.sandbox.nodes import NODES
from lab.sandbox.real import world

REFUSED = world.refusal()
pytestmark = [pytest.mark.campaign, pytest.mark.skipif(REFUSED is not None, reason=REFUSED or "")]

N, BASE = 6, 2
ASKED = {"splitter.io/on-demand-base": str(BASE)}
# Of Google Cloud and Azure, the shortest that there are.
NOTICE_S = 30
PATIENCE_S = 10
NOWHERE = "sandbox.splitter.io/nowhere:1"


def template(*, env: Mapping[str, str] | None = None, grace_s: int = 10, pre_stop_s: int = 2) -> JsonObject:
    """Return the pod template of an application that behaves otherwise."""
    result = web.template()
    result["spec"]["terminationGracePeriodSeconds"] = grace_s
    (container,) = result["spec"]["containers"]
    container["env"] += [{"name": name, "value": value} for name, value in (env or {}).items()]
    container["lifecycle"]["preStop"]["sleep"]["seconds"] = pre_stop_s
    return result


def split(stage: Stage, **reported: Any) -> Shop:  # noqa: ANN401 (what `template` takes)
    """Have such an application split, and wait for its guard."""
    shop = stage.shop
    shop.deploy(replicas=N, annotations=ASKED, template=template(**reported))
    shop.label()
    shop.wait_split(BASE, N - BASE)
    shop.until(lambda: "web-guard keeps" in shop.status().get("guard", ""), "the guard")
    return shop


def set_env(shop: Shop, text: str) -> None:
    """Have the user change a variable of the application, which is a new template."""
    shop.kubectl("set", "env", "deployment/web", text)


def has_env(pod: JsonObject, name: str) -> bool:
    """Whether a pod was made with a variable."""
    return any(each["name"] == name for each in pod["spec"]["containers"][0]["env"])


@pytest.mark.parametrize(
    "reported",
    [
        {"env": {"STUBBORN": "yes"}, "grace_s": 12},
        {"env": {"STUBBORN": "yes"}, "grace_s": 2 * NOTICE_S},
        {"pre_stop_s": 8, "grace_s": 20},
        {"env": {"DELAY": "15s"}},
    ],
    ids=["takes-its-whole-grace", "outlives-its-machine", "long-pre-stop", "starts-slowly"],
)
def test_no_request_fails_at_a_notice(stage: Stage, reported: dict[str, Any]) -> None:
    """All spot machines are announced, drained, and gone 30 s later: nobody is asked who is not there."""
    shop, machines = split(stage, **reported), stage.machines
    doomed = machines.names("spot")
    with (
        machines.traffic(shop.namespace, "web", rate=60, timeout_s=PATIENCE_S) as traffic,
        shop.watch() as seen,
        ThreadPoolExecutor() as drainers,
    ):
        machines.notice(doomed)
        gone_s = time.monotonic() + NOTICE_S
        drain = drainers.submit(stage.drain, doomed, NOTICE_S)
        shop.until(lambda: time.monotonic() >= gone_s, "the end of the notice")
        machines.kill(doomed)
        with suppress(SandboxError):  # what has not ended by then ends with its machine
            drain.result()
        shop.until(lambda: shop.shape().on_demand == N, "all to stand on on-demand")
        lowest = seen.lowest()
    assert traffic.stop().failures == ()
    assert lowest >= N - 1


def test_flapping_moves_nobody(stage: Stage) -> None:
    """Pods that are ready and unready in turn stay where they are: no other machine would cure them."""
    shop = split(stage)
    where = "/spec/template/spec/containers/0/readinessProbe/failureThreshold"
    impatient = json.dumps([{"op": "replace", "path": where, "value": 1}])
    shop.kubectl("patch", "deployment", "web", "--type=json", f"--patch={impatient}")
    set_env(shop, "FLAP=3s")
    shop.until(
        lambda: [has_env(pod, "FLAP") for pod in shop.pods()] == [True] * N,
        "the new template",
        3 * DEADLINE_S,
    )
    flapping = shop.pod_uids()
    with shop.watch() as seen:
        shop.until(lambda: len(seen.timeline.available.times) > 4 * N, "all to flap")
        assert shop.pod_uids() == flapping
        assert shop.twins() == (BASE, N - BASE)
    set_env(shop, "FLAP-")
    shop.wait_split(BASE, N - BASE)
    shop.wait_steady()


@pytest.mark.parametrize(
    ("breaks", "mends", "reason"),
    [
        (
            ("set", "env", "deployment/web", "CRASH=100ms", "DELAY=1h"),
            ("set", "env", "deployment/web", "CRASH-", "DELAY-"),
            "CrashLooping",
        ),
        (
            ("set", "image", "deployment/web", f"web={NOWHERE}"),
            ("set", "image", "deployment/web", f"web={web.NEW}"),
            "ImagePullFailed",
        ),
    ],
    ids=["crash-loop", "image-that-is-not-there"],
)
def test_a_broken_template_and_the_loss_of_spot(
    stage: Stage, breaks: tuple[str, ...], mends: tuple[str, ...], reason: str
) -> None:
    """It replaces nobody, the status says why, and what is lost then runs the last template that was good.

    (One that is ready for a moment before it crashes does replace: to Kubernetes that is enough.)
    """
    shop, machines = split(stage), stage.machines
    with shop.watch() as seen:
        shop.kubectl(*breaks)
        shop.reported(reason)
        assert seen.lowest() >= N, stage.controller.last_said()
    machines.kill(machines.names("spot"))
    shop.until(lambda: shop.shape().on_demand == N, "on-demand to run the last good template")
    shop.kubectl(*mends)
    machines.restore(machines.names("spot"))
    shop.wait_split(BASE, N - BASE)
    shop.wait_steady()


def test_a_full_disk(stage: Stage) -> None:
    """A kubelet asks no budget when it evicts: all are replaced on spot, and spot is not blamed."""
    shop, machines = split(stage), stage.machines
    node = next(name for name in shop.nodes() if name in machines.names("spot"))
    machines.fill(node)

    def presses() -> bool:
        conditions = shop.sandbox.api.get(f"{NODES}/{node}")["status"]["conditions"]
        return any(one["type"] == "DiskPressure" and one["status"] == "True" for one in conditions)

    shop.until(presses, "the Node to say so")
    shop.until(lambda: shop.available_off(node) == N, "all to stand elsewhere")
    shop.wait_steady()
    assert shop.twins() == (BASE, N - BASE)
    assert "lastLoss" not in shop.status()["memory"]["rebalance"]
    machines.fill(node, full=False)
    shop.until(lambda: not presses(), "the pressure to end")


def test_a_graceful_shutdown(stage: Stage) -> None:
    """As on GKE, kubelets end all pods at once and ask nobody: what stays goes on, and all is covered."""
    shop, machines = split(stage), stage.machines
    doomed = machines.names("spot")
    with shop.watch() as seen:
        machines.shut_down(doomed)
        shop.until(lambda: shop.shape().on_demand == N, "all to stand on on-demand")
        assert seen.lowest() >= BASE
    shop.reported("SpotInterrupted")
    machines.kill(doomed)
    shop.until(lambda: shop.shape().on_demand == N, "all to stay there")
    machines.restore(doomed)
    shop.wait_split(BASE, N - BASE)
    shop.wait_steady()
