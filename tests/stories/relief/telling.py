"""Tells what relief does to workloads of the world, under the real process, and keeps it as text.

A golden file is read by people: a changed line is a changed behaviour. `SPLITTER_REGENERATE=1 pytest
tests/stories/relief` writes them.
"""

import asyncio
import copy
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from leaping import passing
from splitter.kube.client import ApiError, Permit
from splitter.kube.paths import ResourcePath
from world.api import Api
from world.cluster import POOL, Cluster
from world.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITIES,
    SPLITS,
    Raw,
    Ref,
    path_of,
)
from world.objects import Event
from world.pods import is_active, is_ready
from world.process import splitting
from world.workloads import changed, deployment, moments, until

_FOLDER: Final = Path(__file__).parent
_POD = re.compile(r"\b([a-z0-9-]+)-[a-z0-9]{8,10}-[a-z0-9]{5}\b")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d\d:\d\d:\d\dZ")
_PLACEHOLDER: Final = "splitter.io/placeholder"
ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_CPU: Final = "8"  # of a node
MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE


def labelled(name: str, replicas: int, relief: str = "cpu=85", **spec: Any) -> Raw:  # noqa: ANN401
    """Return a Deployment that is split and asks for relief; `pod`: what its pods' spec says besides."""
    of_pod, annotations = spec.pop("pod", {}), spec.pop("of_pods", {})
    wishes = {"relief": relief, **spec.pop("wishes", {})}
    raw = deployment(replicas, **spec)
    raw["metadata"] = {
        "name": name,
        "labels": {"splitter.io/split": "enabled"},
        "annotations": {f"splitter.io/{key}": value for key, value in wishes.items() if value},
    }
    template = raw["spec"]["template"]
    template["metadata"] = {"labels": {"app": name}, "annotations": annotations}
    raw["spec"]["selector"] = {"matchLabels": {"app": name}}
    template["spec"] |= of_pod
    return raw


def spread(by: str = "kubernetes.io/hostname", unless: str = "DoNotSchedule", skew: int = 1) -> Raw:
    """Return a constraint of the pods of web."""
    selector = {"matchLabels": {"app": "web"}}
    return {"topologyKey": by, "maxSkew": skew, "whenUnsatisfiable": unless, "labelSelector": selector}


class Mortal(Api):
    """Asked by a process that dies before one of its writes."""

    writes_left: int | None = None
    on_the_way: Callable[[], Awaitable[Raw]] | None = None  # the write at which it died

    def under(self, permit: Permit) -> "Mortal":
        """Write without a permit."""
        del permit
        return self

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Raw | None = None,
        **asked: Any,  # noqa: ANN401
    ) -> Raw:
        """Answer, or never."""
        if method != "GET" and path.plural not in {"events", "selfsubjectaccessreviews"}:
            if self.writes_left == 0:
                self.on_the_way = partial(super().send, method, path, body, **asked)
                await asyncio.Event().wait()
            self.writes_left = None if self.writes_left is None else self.writes_left - 1
        return await super().send(method, path, body, **asked)


class Story:
    """What happens, line by line, and what was never to happen: see `check`."""

    def __init__(self, title: str, seed: int) -> None:
        """Begin with machines that have room for eight replicas of 1 CPU each."""
        self.cluster = Cluster(seed)
        self.api = Mortal(self.cluster.objects)
        self.api.missing |= self.cluster.api.missing
        self.cluster.api = self.api
        self.cluster.serve_metrics()
        self.cluster.objects.put(path_of(NAMESPACES, "", "system"), {"metadata": {}})
        placeholders = path_of(PRIORITIES, "", "splitter-placeholder")
        self.cluster.objects.put(placeholders, {"metadata": {}, "value": -10, "preemptionPolicy": "Never"})
        self.metrics = self.cluster.metrics
        self.lines = [title, ""]
        self.wanted: dict[str, int] = {}  # replicas by the name of the workload
        self.fewest: Counter[str] = Counter()  # the worst there was: those that served, less those wanted
        self.most: Counter[str] = Counter()
        self.moves: dict[tuple[str, str], str] = {}  # by workload and beginning: what it was for
        self._began_s = 0.0
        self._said: dict[str, str] = {}
        self._pods: dict[str, Raw] = {}
        self._process = AsyncExitStack()

    # --- what a story does ------------------------------------------------------------------------

    def add_nodes(self, *names: str) -> None:
        """Have machines join: those of spot are called so, and `spot-b-0` is in the zone b, not in a."""
        for name in names:
            pool = "spot" if name.startswith("spot") else "on-demand"
            self.cluster.add_node(name, {POOL: pool, ZONE: "b" if "-b-" in name else "a"}, cpu=_CPU)

    def cordon(self, *names: str, closed: bool = True) -> None:
        """Have machines take no pods, or take them again; what is on a cordoned one counts as doomed."""
        for name in names:
            changed(self.cluster, Ref(NODES, "", name), lambda raw: raw["spec"].update(unschedulable=closed))
            self.say(f"{name} is {'cordoned' if closed else 'open'}")

    def fill(self, *names: str, full: bool = True) -> None:
        """Have machines take no more pods, as those of others stand there; or as many as ever again."""
        for name in names:
            raw = copy.deepcopy(self.cluster.objects.get(Ref(NODES, "", name)))
            here = sum(pod["spec"].get("nodeName") == name for pod in self.cluster.pods())
            raw["status"]["allocatable"]["pods"] = str(here if full else 110)
            self.cluster.objects.update(Ref(NODES, "", name), raw, part="status")
            self.say(f"{name} is {'full' if full else 'empty but for these'}")

    def say(self, what: str) -> None:
        """Add a line, at the minute that it is."""
        minutes = int((moments() - self._began_s) // MINUTE)
        line = f"{minutes // 60}:{minutes % 60:02}  {what}"
        if not ("placeholder" in what and line in self.lines):  # one for each workload that moves
            self.lines.append(line)

    def uses(self, **cpu_m: int) -> None:
        """Have each pod of a workload use so many thousandths of a CPU."""
        self.metrics.uses |= {name.replace("_", "-"): amount for name, amount in cpu_m.items()}
        self.say("each pod uses: " + ", ".join(f"{name} {amount}m" for name, amount in cpu_m.items()))

    def scale(self, name: str, replicas: int) -> None:
        """Have another number of replicas."""
        changed(
            self.cluster, Ref(DEPLOYMENTS, "shop", name), lambda raw: raw["spec"].update(replicas=replicas)
        )
        self.wanted[name] = replicas
        self.say(f"{name} is scaled to {replicas}")

    def annotate(self, name: str, **wishes: str) -> None:
        """Have a workload ask for something, or not any more."""

        def change(raw: Raw) -> None:
            for wish, value in wishes.items():
                key = f"splitter.io/{wish.replace('_', '-')}"
                raw["metadata"]["annotations"].pop(key, None)
                raw["metadata"]["annotations"] |= {key: value} if value else {}

        changed(self.cluster, Ref(DEPLOYMENTS, "shop", name), change)
        self.say(f"{name} asks: {wishes}")

    def hog(self, node: str, cpu_m: int) -> None:
        """Have a DaemonSet's pod on a machine use so much, which no one may move."""
        name = f"agent-{node}"
        spec = {"nodeSelector": {_HOST: node}, "containers": [{"name": "c", "image": "agent:1"}]}
        template = {"metadata": {"labels": {"app": name}}, "spec": spec}
        made = {"selector": {"matchLabels": {"app": name}}, "template": template}
        ref = Ref(DAEMON_SETS, "system", name)
        if self.cluster.objects.find(ref) is None:
            self.cluster.objects.put(ref.path, {"metadata": {}, "spec": made})
        self.metrics.uses[name] = cpu_m
        self.say(f"an agent on {node} uses {cpu_m}m")

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await passing(seconds)

    async def until(self, holds: Callable[[], bool], within_s: float = HOUR) -> None:
        """Let time pass until something holds."""
        await until(holds, within_s)

    async def says(self, words: str, within_s: float = 2 * HOUR) -> None:
        """Let time pass until a line says that."""
        begin = len(self.lines)
        await until(lambda: any(words in line for line in self.lines[begin:]), within_s)

    async def dies_before(self, write: int, *, late: bool = False) -> None:
        """Have the process end after so many more writes of its own, and another one begin a minute later.

        `late`: the next write was on its way, and comes to pass after the other one has begun.
        """
        self.api.writes_left = write
        await self.until(lambda: self.api.writes_left == 0, 3 * HOUR)
        await self.until(lambda: self.api.on_the_way is not None, 3 * HOUR)
        await self.restart()
        if late and self.api.on_the_way is not None:
            await self.wait(2.0)
            with suppress(ApiError):
                await self.api.on_the_way()
        self.api.on_the_way = None

    async def restart(self) -> None:
        """Have another process begin."""
        await self._process.aclose()
        self.api.writes_left = None
        await self.wait(MINUTE)
        await self.start()

    async def start(self) -> None:
        """Have a process begin."""
        await self._process.enter_async_context(splitting(self.cluster))

    async def stop(self) -> None:
        """Have it end."""
        await self._process.aclose()

    # --- what is there ----------------------------------------------------------------------------

    def pods(self, name: str = "") -> list[Raw]:
        """Return the pods of a workload, or of all, that are not ending."""
        there = self.cluster.pods()
        return [pod for pod in there if _app(pod) == name or (not name and _app(pod) in self.wanted)]

    def on(self, name: str = "") -> dict[str, int]:
        """Return how many pods each machine holds."""
        return dict(sorted(Counter(pod["spec"].get("nodeName", "") for pod in self.pods(name)).items()))

    def violated(self, name: str, constraints: Sequence[Raw]) -> list[int]:
        """Return by how much each constraint of a workload is violated on spot."""
        spot = [raw for raw in self.cluster.objects.all(NODES) if raw["metadata"]["labels"][POOL] == "spot"]
        excesses = []
        for one in constraints:
            domains = {raw["metadata"]["name"]: raw["metadata"]["labels"][one["topologyKey"]] for raw in spot}
            held = dict.fromkeys(domains.values(), 0)
            for node, count in self.on(name).items():
                held[domains[node]] += count
            excesses.append(max(0, max(held.values()) - min(held.values()) - one["maxSkew"]))
        return excesses

    def use(self) -> dict[str, float]:
        """Return how much of its CPU each machine uses, in percent."""
        nodes = self.metrics.nodes()
        return {raw["metadata"]["name"]: float(raw["usage"]["cpu"][:-1]) / 8e7 for raw in nodes}

    def status(self, name: str) -> Raw:
        """Return what the Split of a workload says."""
        raw = self.cluster.objects.find(Ref(SPLITS, "shop", name)) or {}
        return raw.get("status") or {}

    def relief(self, name: str = "web") -> Raw:
        """Return what it says of relief."""
        return self.status(name).get("relief") or {}

    def is_calm(self) -> bool:
        """Whether nothing is left of a move: counts, deletion costs, placeholders."""
        pods = self.cluster.objects.all(PODS, "shop")
        costs = [key for pod in pods for key in pod["metadata"].get("annotations") or {} if "cost" in key]
        hints = [pod for pod in pods if _PLACEHOLDER in (pod["metadata"].get("labels") or {})]
        counts = {name: len(self.pods(name)) for name in self.wanted}
        steady = all(self.status(name).get("state") == "Steady" for name in self.wanted)
        return steady and not costs and not hints and counts == self.wanted

    def check(self, more: int = 1) -> None:
        """Fail if a replica was ever missing, or there were ever more than so many above those wanted."""
        assert all(missing == 0 for missing in self.fewest.values()), self.fewest
        assert all(above <= more for above in self.most.values()), self.most

    def keep(self, name: str) -> None:
        """Compare with the golden file, or write it."""
        path = _FOLDER / f"{name}.golden"
        text = "\n".join(self.lines) + "\n"
        if os.environ.get("SPLITTER_REGENERATE"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    # --- following --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Tell from here on."""
        self._began_s = moments()
        del self.lines[2:]
        where = "; ".join(f"{name}: {_counted(self.on(name))}" for name in self.wanted)
        self.say(f"split since long: {where}")
        self._said = {name: self.relief(name).get("message", "") for name in self.wanted}
        for name, said in self._said.items():
            self.say(f"{name} says: {_readable(said)}")
        self._pods = {pod["metadata"]["uid"]: pod for pod in self.pods()}
        for kind, follower in ((EVENTS, self._event), (SPLITS, self._split), (PODS, self._pod)):
            self.cluster.objects.follow(kind, follower)

    def _event(self, event: Event) -> None:
        if event.new.get("note") and not event.deleted:
            again = " (again)" if event.old is not None else ""
            about, note = event.new["regarding"]["name"], _readable(event.new["note"])
            self.say(f"{about}: {event.new['reason']}{again}: {note}")

    def _split(self, event: Event) -> None:
        status = event.new.get("status") or {}
        relief = status.get("relief") or {}
        said = relief.get("message", "")
        self.moves |= {
            (event.ref.name, one["time"]): one.get("aim", "cool") for one in relief.get("moves", ())
        }
        at_rest = status.get("state") == "Steady" and not event.deleted
        if said and at_rest and said != self._said.get(event.ref.name) and not said.startswith("scale "):
            self._said[event.ref.name] = said
            self.say(f"{event.ref.name} says: {_readable(said)}")

    def _pod(self, event: Event) -> None:
        pod, uid = event.new, event.new["metadata"]["uid"]
        name = _app(pod)
        if name not in self.wanted:
            labels = pod["metadata"].get("labels") or {}
            if _PLACEHOLDER in labels and (event.old is None or event.deleted):
                what = "goes from" if event.deleted else "for"
                [node] = _hosts(pod)
                self.say(f"a placeholder {what} {node}")
            return
        before = self._pods.pop(uid, None)
        if not event.deleted and is_active(pod):
            self._pods[uid] = pod
            node = pod["spec"].get("nodeName")
            if node and (before is None or not before["spec"].get("nodeName")):
                self.say(f"a replica of {name} comes to {node}")
        elif before is not None:
            self.say(f"a replica of {name} leaves {before['spec'].get('nodeName')}")
        of_it = [one for one in self._pods.values() if _app(one) == name]
        silent = self.cluster.machines.silent
        serving = sum(is_ready(one) and one["spec"].get("nodeName") not in silent for one in of_it)
        self.fewest[name] = min(self.fewest[name], serving - self.wanted[name])
        self.most[name] = max(self.most[name], len(of_it) - self.wanted[name])


def _app(pod: Raw) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app", ""))


def _hosts(pod: Raw) -> list[str]:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [one["matchFields"][0]["values"][0] for one in required["nodeSelectorTerms"]]


def _counted(on: Mapping[str, int]) -> str:
    return ", ".join(f"{count} on {node}" for node, count in on.items())


def _readable(text: str) -> str:
    """Return words without what a seed or a lag decides: names of pods, instants."""
    return _CLOCK.sub("(then)", _POD.sub(r"a pod of \1", text))


@asynccontextmanager
async def playing(
    title: str,
    *workloads: Raw,
    on: tuple[str, ...] = ("spot-0",),
    closed: tuple[str, ...] = (),
    spare: int = 2,
    seed: int = 1,
) -> AsyncIterator[Story]:
    """Have workloads be split for half an hour, with all their replicas on these machines, and begin.

    `closed` machines are cordoned; `spare`: so many of on-demand are there besides.
    """
    story = Story(title, seed)
    story.add_nodes(*closed)
    story.cordon(*closed)
    story.add_nodes(*(f"on-demand-{number}" for number in range(spare)), *on)
    story.wanted = {raw["metadata"]["name"]: raw["spec"]["replicas"] for raw in workloads}
    async with story.cluster.running():
        for raw in workloads:
            story.cluster.objects.create(DEPLOYMENTS, "shop", raw, "user")
        await story.start()
        try:
            await story.until(lambda: set(story.on()) <= set(on) and story.is_calm(), 2 * HOUR)
            await passing(HOUR / 2)
            story.begin()
            yield story
        except BaseException:
            print("\n".join(story.lines))  # noqa: T201 (what led there)
            raise
        finally:
            await story.stop()
