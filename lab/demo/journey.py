"""The steps of the demo, one after another, and the verdict about them.

`run_demo` opens the `stage` and walks: take over, scale, change an image, lose all spot nodes, get them
back, give one back, give all back. Each step records when it began and ended; at the end `promises` judges
them from the recorded pods. A step that does not settle in time ends the journey, and is a broken promise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console

from lab.demo.money import has_saved, saves
from lab.demo.options import DemoOptions
from lab.demo.promises import Expected, Judged, Step, judge
from lab.demo.recording import Recording, draw
from lab.demo.restored import Portrait, differences, traces, uncollected
from lab.demo.screen import Screen, requests_line
from lab.demo.stage import NAMESPACE, Stage
from lab.demo.workload import NEW_IMAGE
from lab.sandbox import Instant, Notice, SandboxError

# Several times what the steps take on 2 busy cores; a step that needs longer hangs.
_STEP_S = 180.0
# After the loss, so that a second thought of splitter's would be seen.
_AFTERMATH_S = 3.0
_SCALED, _SCALED_TO = "cart", 9
_CHANGED, _NEW_IMAGE = "catalog", "registry.example/shop/catalog:1.1"
_FIRST_BACK = "cart"
_FAILURES_SHOWN = 5
_LABEL = "splitter.io/split"


def run_demo(options: DemoOptions, console: Console) -> bool:
    """Run the whole demo and return whether every promise was kept.

    Raises SandboxError when it cannot run.
    """
    recording = Recording() if options.recording is not None else None
    with Screen(console, recording) as screen, Stage(screen, options) as stage:
        journey = Journey(stage)
        journey.walk()
        judged = journey.judged()
        kept = _conclude(stage, judged)
        if recording is not None and options.recording is not None:
            screen.end_recording()
            options.recording.write_text(draw(recording.frames), encoding="utf-8")
        if not kept:
            stage.sandbox.keep_logs()
        if options.keep:
            _wait_for_ctrl_c(stage)
        return kept


@dataclass(slots=True)
class _Draft:
    """A step that is being walked."""

    expected: dict[str, Expected]
    noticed: Instant | None = None
    floor_is_promised: bool = True
    capacity_probe: bool = False
    restored: dict[str, bool] | None = None
    stopped: bool = False


class _StoppedError(Exception):
    """A step did not settle; there is no sense in going on."""


class Journey:
    """Walks through the steps on one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._steps: list[Step] = []
        self._expected: dict[str, Portrait] = {}

    def walk(self) -> None:
        """Take all steps, or stop at the first that does not settle."""
        steps = (
            self._take_over,
            self._scale,
            self._change_image,
            self._lose_spot,
            self._return_spot,
            self._give_one_back,
            self._give_all_back,
        )
        try:
            for step in steps:
                step()
        except _StoppedError:
            return

    def judged(self) -> list[Judged]:
        """Return the verdict about each step taken."""
        stage = self._stage
        timelines = {workload.name: stage.timeline(workload.name) for workload in stage.workloads}
        writes = stage.scales.writes()
        return [judge(step, stage.workloads, timelines, writes, stage.asked) for step in self._steps]

    # --- the steps --------------------------------------------------------------------------------

    def _take_over(self) -> None:
        stage = self._stage
        with self._step("take over", "Take over: one label each, and annotations for some") as draft:
            draft.capacity_probe = True
            for name, policy in stage.policies.items():
                if policy:
                    written = [f"{key}={value}" for key, value in policy.items()]
                    stage.kubectl("annotate", "deployment", name, *written, "-n", NAMESPACE)
            self._expected = {name: stage.portrait(name) for name in stage.replicas}
            stage.kubectl("label", "deployment", "--all", f"{_LABEL}=enabled", "-n", NAMESPACE)
            self._settle()
            stage.screen.tell(saves(stage.statuses()))

    def _scale(self) -> None:
        stage = self._stage
        title = f"Scale {_SCALED} from {stage.replicas[_SCALED]} to {_SCALED_TO}"
        with self._step("scale", title) as draft:
            draft.expected[_SCALED] = Expected(stage.replicas[_SCALED], _SCALED_TO)
            stage.replicas[_SCALED] = _SCALED_TO
            self._expected[_SCALED] = self._expected[_SCALED].scaled(_SCALED_TO)
            stage.kubectl("scale", "deployment", _SCALED, f"--replicas={_SCALED_TO}", "-n", NAMESPACE)
            self._settle()

    def _change_image(self) -> None:
        stage = self._stage
        with self._step("image", f"Change the image of {_CHANGED}"):
            image = NEW_IMAGE if stage.options.traffic else _NEW_IMAGE
            self._expected[_CHANGED] = self._expected[_CHANGED].with_image(image)
            stage.kubectl("set", "image", f"deployment/{_CHANGED}", f"{_CHANGED}={image}", "-n", NAMESPACE)
            self._until(lambda: _rolled_out(stage, _CHANGED, image), "both twins to run the new image")
            self._settle()

    def _lose_spot(self) -> None:
        stage, fleet = self._stage, self._stage.fleet
        notice_s = stage.options.notice_s
        title = f"Outage: notice on all {len(stage.spot_nodes)} spot nodes, gone {notice_s:g} s later"
        with self._step("outage", title) as draft:
            draft.floor_is_promised = stage.options.notice_is_useful
            draft.capacity_probe = True
            noticed = fleet.notice(stage.spot_nodes, Notice.TAINT) if notice_s > 0 else Instant.now()
            draft.noticed = noticed
            for name, expected in draft.expected.items():
                doomed = stage.on_spot(name, noticed)
                draft.expected[name] = Expected(expected.before, expected.after, doomed)
            stage.screen.tell("the spot nodes are tainted karpenter.sh/disrupted:NoSchedule")
            stage.pause(notice_s - (Instant.now().monotonic_s - noticed.monotonic_s))
            fleet.kill(stage.spot_nodes)
            stage.screen.tell("the spot nodes are gone")
            self._until(self._survived, "the application to be whole without spot")
            stage.pause(_AFTERMATH_S)

    def _return_spot(self) -> None:
        stage = self._stage
        with self._step("return", "The spot nodes are back") as draft:
            draft.capacity_probe = True
            stage.fleet.restore(stage.spot_nodes)
            stage.screen.tell("the spot nodes are Ready; splitter lets them prove themselves first")
            self._settle()

    def _give_one_back(self) -> None:
        with self._step("give back", f"Give {_FIRST_BACK} back: its label is removed") as draft:
            # What was counted goes with the Splits.
            self._stage.screen.good(has_saved(self._stage.statuses(), datetime.now(UTC)))
            self._give_back([_FIRST_BACK], draft)

    def _give_all_back(self) -> None:
        with self._step("all back", "Give all others back") as draft:
            self._give_back([name for name in self._stage.replicas if name != _FIRST_BACK], draft)

    # --- what the steps are made of ---------------------------------------------------------------

    @contextmanager
    def _step(self, name: str, title: str) -> Iterator[_Draft]:
        stage = self._stage
        stage.screen.heading(title)
        began = Instant.now()
        draft = _Draft({name: Expected(count, count) for name, count in stage.replicas.items()})
        try:
            yield draft
        except SandboxError as fault:
            stage.screen.bad(str(fault))
            draft.stopped = True
        self._steps.append(
            Step(
                name,
                began,
                Instant.now(),
                draft.expected,
                draft.noticed,
                draft.floor_is_promised,
                draft.capacity_probe,
                draft.restored,
                draft.stopped,
            )
        )
        stage.screen.print_table()
        if draft.stopped:
            raise _StoppedError

    def _until(self, look: Callable[[], bool], what: str) -> None:
        self._stage.until(look, what, _STEP_S)

    def _settle(self) -> None:
        """Wait until every workload is at rest: exactly N pods, spot used as wanted, nothing in cover."""

        def settled() -> bool:
            return all(map(self._stage.steady, self._stage.replicas)) and all(
                self._stage.on_spot(name, available=True) == self._stage.status(name)["spot"]["wanted"]
                for name in self._stage.replicas
            )

        self._until(settled, "every workload to be at rest")

    def _survived(self) -> bool:
        stage = self._stage
        return all(
            stage.available(name) >= count and not stage.on_spot(name)
            for name, count in stage.replicas.items()
        )

    def _give_back(self, names: Sequence[str], draft: _Draft) -> None:
        stage = self._stage
        stage.kubectl("label", "deployment", *names, f"{_LABEL}-", "-n", NAMESPACE)
        self._until(
            lambda: all(
                _runs_itself(stage, name) and not uncollected(name, stage.left_of(name)) for name in names
            ),
            f"{', '.join(names)} to run by themselves again",
        )
        draft.restored = {}
        for name in names:
            differing = differences(self._expected[name], stage.portrait(name))
            differing += traces(name, stage.left_of(name))
            for fault in differing:
                stage.screen.bad(fault)
            if not differing:
                stage.screen.good(f"{name} is restored as found: spec, labels and annotations are the user's")
            draft.restored[name] = not differing


def _rolled_out(stage: Stage, name: str, image: str) -> bool:
    """Say whether both twins run an image, all of their replicas."""
    twins = [stage.deployments.objects.get(f"{name}-{pool}") for pool in ("on-demand", "spot")]
    for twin in twins:
        if twin is None:
            return False
        spec, status = twin["spec"], twin.get("status", {})
        if spec["template"]["spec"]["containers"][0]["image"] != image:
            return False
        counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")}
        if status.get("observedGeneration") != twin["metadata"]["generation"] or counts != {spec["replicas"]}:
            return False
    return True


def _runs_itself(stage: Stage, name: str) -> bool:
    """Say whether a Deployment runs all of its replicas by itself, and nothing of splitter's is beside it."""
    objects = stage.deployments.objects
    source = objects.get(name)
    if source is None or name in stage.splits.objects or source["spec"].get("paused"):
        return False
    if any(f"{name}-{pool}" in objects for pool in ("on-demand", "spot")):
        return False
    status = source.get("status", {})
    counts = {status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")}
    seen = status.get("observedGeneration") == source["metadata"]["generation"]
    return seen and counts == {source["spec"]["replicas"]} and stage.at_rest(name)


def _conclude(stage: Stage, judged: Sequence[Judged]) -> bool:
    screen = stage.screen
    screen.heading("Verdict, counted from the recorded pods")
    screen.verdict(judged, [workload.name for workload in stage.workloads])
    screen.tell("available: the fewest at any moment / the promised floor")
    screen.tell("pods: the most at any moment, terminating ones left out / the most that may be asked for")
    screen.tell("write ms: from the first node's taint to splitter's first raise of the on-demand twin")
    screen.tell("cover ms: from the first node's taint until on-demand was asked for all replicas")
    for step in judged:
        for fault in step.faults():
            screen.bad(fault)
    kept = all(step.kept for step in judged) and _answered(stage)
    if kept:
        screen.good(f"every promise was kept, in {len(judged)} steps")
    else:
        broken = ", ".join(step.name for step in judged if not step.kept) or "requests"
        screen.bad(f"a promise was BROKEN in: {broken}. splitter's log: {stage.controller.log}")
    return kept


def _answered(stage: Stage) -> bool:
    """Report the requests, if any were sent; return whether every promised answer came."""
    if stage.traffic is None:
        return True
    requests = stage.traffic.stop()
    line = requests_line(requests)
    (stage.screen.bad if requests.failures else stage.screen.good)(line)
    for failure in requests.failures[:_FAILURES_SHOWN]:
        stage.screen.bad(str(failure))
    return not requests.failures or not stage.options.notice_is_useful


def _wait_for_ctrl_c(stage: Stage) -> None:
    """Leave everything running for a person to play with."""
    screen = stage.screen
    screen.tell(f"everything keeps running: export KUBECONFIG={stage.sandbox.kubeconfig}")
    screen.tell(f"splitter's log is {stage.controller.log}; Ctrl-C ends everything")
    while True:
        stage.pause(1.0)
