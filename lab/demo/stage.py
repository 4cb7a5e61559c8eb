"""Where the demo plays: a sandbox with nodes, splitter's own installation, and the example application.

`journey` opens it and then only acts and waits. It installs as a user would, with kubectl and the bundled
manifests, and looks with watches of its own. It knows nothing of the order of the steps.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from lab.checkout import MANIFESTS, ROOT
from lab.demo.controller import Controller
from lab.demo.options import DemoOptions
from lab.demo.page import served_page
from lab.demo.restored import Portrait
from lab.demo.screen import Row, Screen, requests_line
from lab.demo.watching import ScaleLog, Watch
from lab.demo.workload import Workload, on_real_nodes, policy_of, read_workload
from lab.sandbox import Instant, Recorder, Sandbox, Timeline
from lab.sandbox.asked import Asked
from lab.sandbox.fleet import Fleet
from lab.sandbox.real.fleet import RealFleet
from lab.sandbox.real.traffic import Traffic
from lab.sandbox.waiting import wait_until

JsonObject = dict[str, Any]

_CRDS = ("crd/splits.splitter.io", "crd/placements.splitter.io")
NAMESPACE = "shop"
ON_DEMAND_NODES, SPOT_NODES = 4, 8
# Containers take the machine's own time: fewer nodes, and fewer workloads, one of them under requests.
_REAL_ON_DEMAND_NODES, _REAL_SPOT_NODES = 2, 3
_REAL_WORKLOADS = ("cart", "catalog")
_ASKED, _RATE, _PATIENCE_S = "catalog", 100, 5
_ACCOUNT = ("splitter-system", "splitter")
_SPEAKER = "splitter.io/splitter"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
_SPLITS = f"/apis/splitter.io/v1alpha1/namespaces/{NAMESPACE}/splits"
_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
_LOOK_EVERY_S = 0.3
_START_S = 60.0


class Stage:
    """A running sandbox with splitter and the application in it; use it in a `with`."""

    recorder: Recorder
    controller: Controller
    fleet: Fleet | RealFleet
    workloads: tuple[Workload, ...]
    traffic: Traffic | None = None
    policies: dict[str, dict[str, str]]

    def __init__(self, screen: Screen, options: DemoOptions) -> None:
        self.screen = screen
        self.options = options
        self.scales = ScaleLog()
        self.asked = Asked()
        self.replicas: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything, up to an application that is available and not yet labelled."""
        try:
            self.sandbox = self._stack.enter_context(
                Sandbox.start(progress=self.screen.tell, real=self.options.traffic)
            )
            self._set_up()
        except BaseException as fault:
            self._stack.__exit__(type(fault), fault, fault.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self._stack.__exit__(kind, fault, trace)

    # --- setting up -------------------------------------------------------------------------------

    def _set_up(self) -> None:
        tell = self.screen.tell
        real = self.options.traffic
        self.fleet = self.sandbox.real if real else self.sandbox.fleet
        on_demand, spot = (_REAL_ON_DEMAND_NODES, _REAL_SPOT_NODES) if real else (ON_DEMAND_NODES, SPOT_NODES)
        self.fleet.add("on-demand", on_demand)
        self.spot_nodes = self.fleet.add("spot", spot)
        tell(f"{on_demand} on-demand and {spot} spot nodes are Ready")
        self._install()
        self._deploy()
        self._start_controller()
        if self.options.dashboard:
            self._show_page()
        if real:
            self._send_requests()

    def _install(self) -> None:
        for name in ("crd.yaml", "rbac.yaml"):
            path = MANIFESTS / name
            self.kubectl("apply", "-f", str(path), shown=f"apply -f manifests/{name}")
        self.kubectl("wait", "--for=condition=Established", "--timeout=30s", *_CRDS)

    def _deploy(self) -> None:
        self.kubectl("create", "namespace", NAMESPACE)
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        self.until(lambda: self.sandbox.api.find(account) is not None, "the service account", _START_S)
        self._look_on()
        folder = ROOT / "examples" / "shop"
        if self.options.traffic:
            self._apply_for_real_nodes(folder)
        else:
            self.kubectl("apply", "-f", str(folder), "-n", NAMESPACE, shown="apply -f examples/shop -n shop")
        deployments = self.sandbox.api.list(_DEPLOYMENTS)
        self.workloads = tuple(map(read_workload, deployments))
        self.replicas = {workload.name: workload.replicas for workload in self.workloads}
        self.policies = {
            name: policy_of((folder / f"{name}.yaml").read_text("utf-8")) for name in self.replicas
        }
        self.until(self._all_available, "the application to be available", _START_S)
        self.screen.tell(
            f"{sum(self.replicas.values())} pods of {len(self.replicas)} Deployments are available"
        )

    def _apply_for_real_nodes(self, folder: Path) -> None:
        for name in _REAL_WORKLOADS:
            documents = yaml.safe_load_all((folder / f"{name}.yaml").read_text("utf-8"))
            manifests = json.dumps(
                {"kind": "List", "apiVersion": "v1", "items": list(map(on_real_nodes, documents))}
            )
            self.screen.command(f"kubectl apply -f examples/shop/{name}.yaml -n {NAMESPACE}")
            self.sandbox.kubectl("apply", "-f", "-", "-n", NAMESPACE, stdin=manifests)
        self.screen.tell("with images of the sandbox's own, which its nodes can run")

    def _send_requests(self) -> None:
        traffic = self._stack.enter_context(
            self.sandbox.real.traffic(NAMESPACE, _ASKED, rate=_RATE, timeout_s=_PATIENCE_S)
        )
        self.traffic = traffic
        self.screen.tell(f"{_RATE} requests a second go to {_ASKED}, through its Service and to its pods")
        self.screen.show_below(lambda: requests_line(traffic.so_far()))

    def _look_on(self) -> None:
        api = self.sandbox.api
        self.recorder = self._stack.enter_context(self.sandbox.record())
        self.deployments = self._stack.enter_context(Watch(api, _DEPLOYMENTS, self.scales.see))
        self._stack.enter_context(Watch(api, _REPLICA_SETS, self.asked.see))
        self.splits = self._stack.enter_context(Watch(api, _SPLITS))
        self._stack.enter_context(Watch(api, _EVENTS, self._event))
        self.screen.show_table(self.rows)
        self._stack.callback(self.screen.stop_table)

    def _start_controller(self) -> None:
        kubeconfig = self.sandbox.service_account_kubeconfig(*_ACCOUNT)
        settings = self.options.settings
        written = " ".join(f"{name}={value}" for name, value in settings.items())
        self.screen.command(f"{written} splitter run")
        self.screen.tell("as its service account; these settings shorten its waiting times for the demo")
        log = self.sandbox.logs / "splitter.log"
        self.controller = self._stack.enter_context(Controller(kubeconfig, settings, log))

    def _show_page(self) -> None:
        self.screen.command("splitter dashboard -A")
        page = served_page(self.sandbox.kubeconfig, self.sandbox.logs / "dashboard.log")
        self.screen.good(f"open {self._stack.enter_context(page)}")

    def _all_available(self) -> bool:
        return all(self.available(name) == count for name, count in self.replicas.items())

    # --- acting and waiting -----------------------------------------------------------------------

    def kubectl(self, *arguments: str, shown: str = "") -> str:
        """Run kubectl, and show the command."""
        self.screen.command(f"kubectl {shown or ' '.join(arguments)}")
        return self.sandbox.kubectl(*arguments)

    def until(self, look: Callable[[], bool], what: str, deadline_s: float) -> None:
        """Wait for a condition. Raises SandboxError when it does not come, or when a process has ended."""
        wait_until(look, what=what, deadline_s=deadline_s, check=self._check)

    def pause(self, seconds: float) -> None:
        """Let time pass, noticing when a process ends."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._check()
            time.sleep(min(left_s, _LOOK_EVERY_S))

    def _check(self) -> None:
        self.sandbox.check()
        if hasattr(self, "controller"):
            self.controller.check()

    # --- looking ----------------------------------------------------------------------------------

    def timeline(self, name: str) -> Timeline:
        """Return the recorded counts of a workload's pods, whoever owns them."""
        selector = next(workload.selector for workload in self.workloads if workload.name == name)
        return self.recorder.timeline(NAMESPACE, selector)

    def available(self, name: str) -> int:
        """Return the workload's available pods now."""
        timeline = self.timeline(name)
        return timeline.available.at(timeline.whole.end)

    def at_rest(self, name: str) -> bool:
        """Say whether a workload has exactly its N pods, all available."""
        timeline = self.timeline(name)
        now = timeline.whole.end
        counts = (timeline.available.at(now), timeline.total_without_terminating.at(now))
        return counts == (self.replicas[name], self.replicas[name])

    def on_spot(self, name: str, at: Instant | None = None, *, available: bool = False) -> int:
        """Return the workload's pods on spot nodes, by default now: all, or those available."""
        nodes = frozenset(self.spot_nodes)
        selector = next(workload.selector for workload in self.workloads if workload.name == name)
        timeline = self.recorder.timeline(NAMESPACE, selector, where=lambda pod: pod.node in nodes)
        counted = timeline.available if available else timeline.total_without_terminating
        return counted.at(at or timeline.whole.end)

    def status(self, name: str) -> JsonObject:
        """Return the status of a workload's Split; empty when there is none."""
        status: JsonObject = self.splits.objects.get(name, {}).get("status", {})
        return status

    def statuses(self) -> list[JsonObject]:
        """Return the status of each Split that has one."""
        return [raw["status"] for raw in self.splits.objects.values() if "status" in raw]

    def steady(self, name: str) -> bool:
        """Say whether splitter calls a workload at rest, for its present spec, and its pods agree."""
        status = self.status(name)
        source = self.deployments.objects.get(name, {}).get("metadata", {})
        return (
            status.get("state") == "Steady"
            and status["sourceGeneration"] == source.get("generation")
            and status["cover"] == 0
            and status["ready"] == self.replicas[name]
            and self.at_rest(name)
        )

    def portrait(self, name: str) -> Portrait:
        """Return what belongs to the user of a Deployment, as it is now."""
        return Portrait.of(self.sandbox.api.get(f"{_DEPLOYMENTS}/{name}"))

    def left_of(self, name: str) -> list[JsonObject]:
        """Return what exists in the namespace that belongs to a workload, without what is terminating."""
        workload = next(workload for workload in self.workloads if workload.name == name)
        labels = ",".join(f"{key}={value}" for key, value in workload.selector.items())
        left = [
            {"kind": kind, **raw}
            for kind, path in (
                ("Deployment", _DEPLOYMENTS),
                ("ReplicaSet", f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"),
                ("Pod", f"/api/v1/namespaces/{NAMESPACE}/pods"),
            )
            for raw in self.sandbox.api.list(path, labels=labels)
        ]
        left += [
            {"kind": "Split", **raw}
            for raw in self.sandbox.api.list(_SPLITS)
            if raw["metadata"]["name"] == name
        ]
        return [raw for raw in left if "deletionTimestamp" not in raw["metadata"]]

    def rows(self) -> list[Row]:
        """Return the live table: one row a Deployment of the user's, read from its Split."""
        return [self._row(name, count) for name, count in sorted(self.replicas.items())]

    def _row(self, name: str, count: int) -> Row:
        status = self.status(name)
        if not status:
            deployment = self.deployments.objects.get(name, {})
            ready = deployment.get("status", {}).get("availableReplicas", 0)
            return (name, str(count), "", "", str(ready), "not split", "")
        pools = (f"{pool['ready']}/{pool['spec']}" for pool in (status["onDemand"], status["spot"]))
        ready, state = str(status["ready"]), status["state"]
        return (name, str(status["desired"]), *pools, ready, state, status["reason"])

    def _event(self, _at: Instant, raw: JsonObject, deleted: bool) -> None:
        if deleted or raw.get("reportingController") != _SPEAKER:
            return
        self.screen.decision(raw["regarding"]["name"], raw.get("reason", ""), raw.get("note", ""))
