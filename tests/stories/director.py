"""Plays a story: a workload in a world, a process of splitter's, a judge, and what has happened so far.

`Story` is what a test writes; its lines become the golden file. Between two words of it no time passes, but
for a moment in which everything answers; `wait` lets time pass.
"""

import asyncio
import copy
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import ClassVar, Final, TypeVar

from leaping import LeapingLoop, passing
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from stories.judge import Judge
from stories.reported import BrokenPromiseError
from stories.scene import Scene
from stories.words import Written, said
from world.admission import Request
from world.api import Api
from world.apply import merge_patched
from world.cluster import POOL, Cluster
from world.controllers.kubelet import Timing
from world.eviction import evict
from world.kinds import CLAIMS, DEPLOYMENTS, EVENTS, LEASES, NODES, PODS, Raw, Ref, path_of
from world.process import splitting
from world.workloads import changed, deployment

Answer = TypeVar("Answer")
Thing = TypeVar("Thing")

LABEL, PREFIX = "splitter.io/split", "splitter.io/"
NOTICE: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
STARTS: Final = Timing(start_s=1.0, ready_s=4.0, end_s=2.0)
_BEGINS_S: Final = 60.0
_EXCUSED_S: Final = 0.2
_EVICTS_EVERY_S: Final = 5.0
_ANSWERS_S: Final = 0.9  # so long everything has to answer what a story says, within its second
_CLAIM: Final[Raw] = {"metadata": {"name": "data"}, "spec": {}}
_VOLUME: Final[Raw] = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
_VERBS: Final = {"DELETE": "delete", "POST": "create"}
_LOGGER: Final = logging.getLogger("splitter.reconciler")
_WHO: Final = "splitter"


class Published(Api):
    """The world's API server, which tells of each write of splitter's that is no report."""

    def __init__(
        self,
        api: Api,
        tell: Callable[[Written], None],
        refused: Callable[[Written, ApiError], None],
        counts: Callable[[], None],
    ) -> None:
        super().__init__(api.objects, _WHO)
        self.missing |= api.missing
        self.watch_s = 3600.0  # to begin a watch again is half of what an hour without an event costs
        self._tell, self._refused, self._counts = tell, refused, counts
        self.loses: Callable[[], bool] = lambda: False  # the answer to a write that is done

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Raw | None = None,
        *,
        patch: str = "",
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Raw:
        """Answer one request."""
        ref = Ref(f"{path.api}/{path.plural}", path.namespace, path.name or _name(body))
        is_report = path.part == "status" or ref.kind in {EVENTS, LEASES} or "reviews" in path.plural
        if method == "GET" or is_report or "dryRun" in (query or {}):
            return await super().send(method, path, body, patch=patch, query=query, timeout_s=timeout_s)
        self._counts()
        old = self.objects.find(ref)
        verb = "evict" if path.part == "eviction" else _VERBS.get(method, "" if old else "create")
        try:
            answer = await super().send(method, path, body, patch=patch, query=query, timeout_s=timeout_s)
        except ApiError as error:
            meant = merge_patched(old, body or {}) if old and patch == "merge" else body
            self._refused(Written(verb, ref, old, meant), error)
            raise
        is_bound = "resourceVersion" in ((body or {}).get("metadata") or {})
        self._tell(Written(verb, ref, old, answer, is_bound))
        if self.loses():
            raise ApiError(0, "NoAnswer", "the answer was lost")
        return answer


def _name(body: Raw | None) -> str:
    return str(((body or {}).get("metadata") or {}).get("name", ""))


class Story:
    """A cluster with one workload, splitter, the promises, and what has happened so far."""

    judged_by: ClassVar[type[Judge]] = Judge
    on_demand_nodes: ClassVar[int] = 2
    open: ClassVar[list["Story"]] = []  # what a test has begun, and its end closes

    def __init__(
        self,
        title: str,
        replicas: int = 10,
        surge: int = 3,
        unavailable: int = 2,
        *,
        workload: Raw | None = None,
        kind: str = DEPLOYMENTS,
        spot_nodes: int = 3,
        header: str = "",
        timing: Timing = STARTS,
        provider: str = "aws",
        volume: bool = False,
        seed: int = 0,
        lag_s: float = 0.02,
        **settings: object,
    ) -> None:
        """`timing`: of pods; `provider`: of spot nodes; `volume`: pods mount one; `settings`: splitter's."""
        header = header or f"maxSurge {surge}, maxUnavailable {unavailable}"
        self.lines = [f"# {title}", f"# N {replicas}, {header}", ""]
        self.loop = LeapingLoop()
        self.settings = settings
        Story.open.append(self)
        strategy = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
        }
        raw = workload or deployment(replicas, strategy=strategy)
        if volume:
            raw["spec"]["template"]["spec"]["volumes"] = [_VOLUME]
        self.ref = Ref(kind, "shop", raw["metadata"]["name"])
        self._provider = provider
        self._until_s = 0.0
        self._written: list[Written] = []
        self._repeated: set[str] = set()  # what was written since the last word of the story is told once
        self._before = self._held = ""
        self.drains: dict[str, asyncio.Future[None]] = {}  # nodes that are being drained
        self._world = AsyncExitStack()
        self._process = AsyncExitStack()
        self.run(self._begun(raw, seed, lag_s, timing, spot_nodes))
        self._log = _Decisions(self._decided)
        _LOGGER.addHandler(self._log)
        _LOGGER.setLevel(logging.DEBUG)
        _LOGGER.propagate = False
        self.start()
        self._wait_until(_BEGINS_S)
        self.run(self._at_once(self.judge.begin))

    async def _begun(self, raw: Raw, seed: int, lag_s: float, timing: Timing, spot_nodes: int) -> None:
        self.cluster = Cluster(seed, lag_s=lag_s, timing=timing)
        self.objects = self.cluster.objects
        self.api = Published(self.cluster.api, self._was_written, self._was_refused, self._will_write)
        self.cluster.api = self.api
        for number in range(self.on_demand_nodes):
            self.cluster.add_node(f"od-{number + 1}", {POOL: "on-demand"}, pods=40)
        for number in range(spot_nodes):
            self.add_spot_node(f"spot-{chr(97 + number)}")
        if raw["spec"]["template"]["spec"].get("volumes"):
            self.objects.create(CLAIMS, "shop", _CLAIM, "user")
        self.objects.create(self.ref.kind, self.ref.namespace, raw, "user")
        self.scene = Scene(self.cluster, self.ref)
        self.judge = self.judged_by(self.scene)
        self.judge.unseen_s += 2 * lag_s
        self.excused_s = _EXCUSED_S + 3 * lag_s  # so long after what the world does pods may end by it
        await self._world.enter_async_context(self.cluster.running())

    # --- how it is played -------------------------------------------------------------------------

    def run(self, action: Coroutine[object, object, Answer]) -> Answer:
        """Have something done in the world."""
        return self.loop.run_until_complete(action)

    async def _at_once(self, act: Callable[[], Answer]) -> Answer:
        return act()

    def start(self) -> None:
        """Start the process of splitter."""
        self.run(self._process.enter_async_context(splitting(self.cluster, **self.settings)))

    def stop(self) -> None:
        """End the process of splitter."""
        self.run(self._process.aclose())

    def close(self) -> None:
        """End the world. Raises what has failed in it."""
        Story.open.remove(self)
        _LOGGER.removeHandler(self._log)
        _LOGGER.setLevel(logging.NOTSET)
        _LOGGER.propagate = True
        for drain in self.drains.values():
            drain.cancel()
        try:
            self.stop()
            self.run(self._world.aclose())
        finally:
            self.loop.close()
        assert not self._log.faults, self._log.faults[0]
        if self.judge.broken:
            raise BrokenPromiseError(self.judge.broken[0])

    def act(self, act: Callable[[], object], excused_s: float = 0.0) -> None:
        """Let the world do what it likes, at this moment; for so long pods may end by it."""

        async def acts() -> None:
            self.judge.world(excused_s or self.excused_s)
            act()
            self.judge.happened()

        self.run(acts())

    def happens(self, text: str, act: Callable[[], object] = lambda: None, excused_s: float = 0.0) -> None:
        """Let the world do something, write it down, and let everything answer."""
        self._flush()
        self._repeated.clear()
        self.lines.append(f"{self.clock}  {text}")
        self.act(act, excused_s)
        self.run(passing(_ANSWERS_S))

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._wait_until(self._until_s + seconds)

    def _wait_until(self, until_s: float) -> None:
        self._until_s = until_s
        if (left_s := until_s - self.loop.time()) > 0:
            self.run(passing(left_s))
        self._until_s = max(until_s, self.loop.time())

    def _will_write(self) -> None:
        self.judge.before_write()
        if not self._written:
            self._before = f"{self.clock}  {self.scene}"

    def _was_written(self, written: Written) -> None:
        self._written.append(written)
        self.judge.written(written, self.loop.time())

    def _was_refused(self, written: Written, error: ApiError) -> None:
        self._flush()
        how = "lost a race at" if error.status == 409 else "refused"
        line = f"       {how}: {self.scene.names.of(said([written]))}"
        if self.lines[-1] != line:
            self.lines.append(line)

    def _flush(self, why: str = "") -> None:
        words = self.scene.names.of(said(self._written))
        self._written.clear()
        if words and (once := f"{words} {why}".replace("~", "+")) not in self._repeated:
            self._repeated.add(once)
            self.lines += [self._before, f"    -> {words}", *([f"       {why}"] if why else [])]

    def _decided(self, state: str, reason: str, because: str) -> None:
        wrote, now = bool(self._written), f"{state} {reason}"
        because = f"{self.scene.names.of(because)} ({reason})".lstrip()
        self._flush(because)
        if not wrote and now != self._held:
            self.lines += [f"{self.clock}  {self.scene}", f"       {state}: {because}"]
        self._held = now

    @property
    def clock(self) -> str:
        """Return the time since the label, minutes and seconds."""
        at = int(self.loop.time() - _BEGINS_S + 0.001)
        return f"{at // 60:02}:{at % 60:02}"

    # --- what a test says ---------------------------------------------------------------------------

    def changed(self, change: Callable[[Raw], None], ref: Ref | None = None) -> Callable[[], object]:
        """Return how a user writes an object: the workload, unless another is named."""
        return lambda: changed(self.cluster, ref or self.ref, change)

    def label(self, **annotations: str) -> None:
        """Annotate and label the source."""

        def change(raw: Raw) -> None:
            _annotate(raw, annotations)
            raw["metadata"].setdefault("labels", {})[LABEL] = "enabled"

        name, words = self.ref.name, _in_words(annotations)
        self.happens(f"{name} is labelled{', ' if words else ''}{words}", self.changed(change))

    def unlabel(self) -> None:
        """Take the label away."""
        self.happens("the label is removed", self.changed(lambda raw: raw["metadata"]["labels"].pop(LABEL)))

    def annotate(self, **annotations: str | None) -> None:
        """Annotate the source."""
        text = f"{self.ref.name} is annotated, {_in_words(annotations)}"
        self.happens(text, self.changed(lambda raw: _annotate(raw, annotations)))

    def scale(self, replicas: int) -> None:
        """Run `kubectl scale`."""
        text = f"{self.ref.name} is scaled {self.scene.replicas} -> {replicas}"
        self.happens(text, self.changed(lambda raw: raw["spec"].update(replicas=replicas)))

    def set_image(self, image: str) -> None:
        """Run `kubectl set image`."""
        self.happens(f"{self.ref.name} gets the image {image}", self.changed(_with_image(image)))

    def resume(self) -> None:
        """Run `kubectl rollout resume`, which nobody should."""
        resumed = self.changed(lambda raw: raw["spec"].pop("paused"))
        self.happens("somebody runs kubectl rollout resume", resumed)

    def twin(self, pool: Pool) -> Ref:
        """Return where a twin is."""
        return self.ref._replace(name=f"{self.ref.name}-{pool}")

    def edit_twins(self, image: str, *pools: Pool) -> None:
        """Give twins an image by hand."""
        edits = [self.changed(_with_image(image), self.twin(pool)) for pool in pools]
        self.happens(
            f"somebody gives the image {image} to {' and '.join(pools)}", lambda: [one() for one in edits]
        )

    def create_anew(self, *, labelled: bool) -> None:
        """Delete the source without what it owns, and apply its manifest again."""
        manifest = copy.deepcopy(self.scene.source)
        metadata = manifest["metadata"]
        manifest["spec"].pop("paused", None)
        asked = {
            key: text for key, text in (metadata.get("annotations") or {}).items() if "taken-over" not in key
        }
        labels = {key: text for key, text in metadata.get("labels", {}).items() if labelled or key != LABEL}
        manifest = {
            "metadata": {"name": metadata["name"], "labels": labels, "annotations": asked},
            "spec": manifest["spec"],
        }
        how = "with" if labelled else "without"
        text = f"{self.ref.name} is deleted with --cascade=orphan and created again {how} its label"
        self.happens(text, lambda: self.objects.delete(self.ref, {"propagationPolicy": "Orphan"}))
        self.happens("it is there again", lambda: self.objects.create(*self.ref[:2], manifest, "user"))

    def notice(self, *names: str) -> None:
        """Announce that nodes go."""

        def announced() -> None:
            self.scene.doomed.update(names)
            for name in names:
                self.cluster.taint(name, [NOTICE])

        pods = len(self.scene.on(*names))
        self.happens(f"{' and '.join(names)} get an interruption notice; {pods} pods will be lost", announced)

    def cordon(self, *names: str, until: bool = True) -> Callable[[], object]:
        """Return how nodes are cordoned, or uncordoned."""

        def cordoned() -> None:
            (self.scene.doomed.update if until else self.scene.doomed.difference_update)(names)
            for name in names:
                changed(
                    self.cluster, Ref(NODES, "", name), lambda raw: raw["spec"].update(unschedulable=until)
                )

        return cordoned

    def drain(self, node: str) -> None:
        """Run `kubectl drain`; the node comes back when it is empty."""
        self.happens(f"{node} is drained", self.cordon(node))
        self.drains[node] = asyncio.ensure_future(self._drained(node), loop=self.loop)
        self.run(passing(_EXCUSED_S))

    async def _drained(self, node: str) -> None:
        while pods := [
            pod["metadata"] for pod in self.objects.all(PODS) if pod["spec"].get("nodeName") == node
        ]:
            for metadata in pods:
                with suppress(ApiError):  # a budget says that it may not go now
                    body = {"metadata": {"name": metadata["name"]}}
                    evict(self.objects, Ref(PODS, metadata["namespace"], metadata["name"]), body, "user")
            await passing(_EVICTS_EVERY_S)
        del self.drains[node]
        with suppress(ApiError):  # it is gone
            self.cordon(node, until=False)()

    def evict(self, *names: str) -> None:
        """Evict all pods of nodes, whatever budgets say."""
        pods = self.scene.on(*names)
        ends = _each(self.objects.delete, [Ref(PODS, "shop", pod["metadata"]["name"]) for pod in pods])
        self.happens(f"{len(pods)} pods of {' and '.join(names)} are evicted", ends)

    def vanish(self, *names: str) -> None:
        """Take nodes away."""
        pods = len(self.scene.on(*names))
        gone = _each(self.cluster.vanish, names)
        self.happens(f"{' and '.join(names)} are gone, with {pods} pods", gone)

    def silence(self, *names: str) -> None:
        """Have machines fall silent."""
        self.happens(f"{' and '.join(names)} fall silent", _each(self.cluster.silence, names))

    def add_spot(self, *names: str) -> None:
        """Bring spot nodes."""
        self.happens(f"{' and '.join(names)} come", _each(self.add_spot_node, names))

    def add_spot_node(self, name: str, pods: int = 10) -> None:
        """Have a spot node with room for so many pods join."""
        self.cluster.add_node(name, {POOL: "spot"}, pods=pods)
        if self._provider:
            node = Ref(NODES, "", name)
            changed(
                self.cluster, node, lambda raw: raw["spec"].update(providerID=f"{self._provider}:///{name}")
            )

    def headroom(self, **pods: int) -> Callable[[], object]:
        """Return how nodes come to have room for so many pods; underscores stand for dashes."""

        def given() -> None:
            for name, count in pods.items():
                ref = Ref(NODES, "", name.replace("_", "-"))
                if self.objects.find(ref) is None:
                    continue
                node = copy.deepcopy(self.objects.get(ref))
                node["status"]["allocatable"]["pods"] = str(count)
                self.objects.update(ref, node, part="status")

        return given

    def limit_pods(self, quota: int | None) -> None:
        """Change the quota of the namespace."""
        if quota is None:
            path = path_of("/api/v1/resourcequotas", "shop", "small")
            self.happens("the quota is taken away", lambda: self.objects.forget(path))
        else:
            self.happens(f"a quota allows {quota} pods", lambda: self.cluster.quota("pods", quota))

    def refuse(self, refuses: Callable[[Request], bool]) -> None:
        """Have a policy from now on: it refuses what it is true of."""

        def rule(request: Request) -> None:
            if refuses(request):
                said = "ValidatingAdmissionPolicy 'policy' with binding 'policy' denied request"
                raise ApiError(422, "Invalid", said)

        self.objects.rules.append(rule)

    def at_write(self, act: Callable[[Request], object]) -> None:
        """Have something done right before each write of splitter's; a report is none."""

        def rule(request: Request) -> None:
            is_report = request.part == "status" or request.ref.kind == EVENTS
            if request.user == _WHO and not request.dry and not is_report:
                act(request)

        self.objects.rules.append(rule)

    def refuses_for(self, seconds: float, kind: str = "") -> None:
        """Have the API server refuse what splitter writes for a while, of one kind or of all."""
        until_s = self.loop.time() + seconds

        def rule(request: Request) -> None:
            if request.user == _WHO and kind in {"", request.ref.kind} and self.loop.time() < until_s:
                raise ApiError(500, "InternalError", "the API server takes no writes")

        self.objects.rules.append(rule)

    def refuse_writes(self, seconds: float) -> None:
        """Tell of it, too."""
        text = f"the API server refuses splitter's writes for {seconds:g} s"
        self.happens(text, partial(self.refuses_for, seconds))

    def registry(self, *, answers: bool) -> None:
        """Take the registry of images away, or bring it back."""

        def change() -> None:
            self.cluster.machines.registry_answers = answers
            self.cluster.kubelets.look_at()

        self.happens(f"the registry {'answers again' if answers else 'does not answer any more'}", change)

    def claim(self, *, there: bool) -> None:
        """Take away the volume claim that the pods name, or make it again."""
        claim = Ref(CLAIMS, "shop", "data")
        if there:
            make = partial(self.objects.create, CLAIMS, "shop", _CLAIM, "user")
            self.happens("somebody makes the claim that the pods name", make)
        else:
            self.happens("somebody deletes the claim that the pods name", partial(self.objects.delete, claim))

    def taint_spot(self, taint: str) -> None:
        """Taint all spot nodes, or take the taint away."""
        key, _, value = taint.partition(":")[0].partition("=")
        taints = [{"key": key, "value": value, "effect": "NoSchedule"}] if taint else []
        tainted = _each(lambda name: self.cluster.taint(name, taints), self.scene.spot_nodes())
        self.happens(f"all spot nodes get the taint {taint}" if taint else "the taint is taken away", tainted)

    # --- what a test asks ---------------------------------------------------------------------------

    def counts(self) -> str:
        """Say who holds how many."""
        return self.run(self._at_once(lambda: str(self.scene)))

    def available(self) -> int:
        """Count the pods that answer and are to stay."""
        return self.run(self._at_once(self.scene.available))

    def reason(self) -> str:
        """Return the reason word that the Split shows."""
        return str(self.scene.status.get("reason", ""))

    def message(self) -> str:
        """Return the sentence that the Split shows."""
        return str(self.scene.status.get("message", ""))

    def traces(self) -> list[str]:
        """Name what is left of splitter."""
        return self.run(self._at_once(self.scene.traces))

    def unsettled(self, on_demand: int) -> list[str]:
        """Name what keeps it from being at rest."""
        return self.run(self._at_once(lambda: self.scene.unsettled(on_demand)))

    def at(self) -> float:
        """Return how many seconds it is since the beginning."""
        return self.loop.time() - _BEGINS_S

    def said(self) -> set[str]:
        """Return the reasons of what the Split says was decided."""
        return {one["reason"] for one in self.scene.status.get("decisions") or ()}

    def look(self, seconds: int) -> None:
        """Let time pass, in which everything is looked at again and again, as splitter does by itself."""
        self.wait(seconds)

    def pods(self) -> set[str]:
        """Return the UIDs of the pods that are not ending."""
        return {pod["metadata"]["uid"] for pod in self.scene.pods()}


def _each(act: Callable[[Thing], object], things: Iterable[Thing]) -> Callable[[], None]:
    def acts() -> None:
        for one in things:
            act(one)

    return acts


class _Decisions(logging.Handler):
    """Hears the one line that the reconciler logs about each reconcile, and its faults."""

    def __init__(self, tell: Callable[[str, str, str], None]) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on."""
        if record.exc_info is not None:
            self.faults.append(logging.Formatter().format(record))
        elif record.msg == "reconciled":
            fields = vars(record)
            self._tell(fields["state"], fields["reason"], fields["because"])


def _annotate(raw: Raw, annotations: Mapping[str, str | None]) -> None:
    held = raw["metadata"].setdefault("annotations", {})
    for key, text in annotations.items():
        name = f"{PREFIX}{key.replace('_', '-')}"
        if text is None:
            held.pop(name, None)
        else:
            held[name] = text


def _in_words(annotations: Mapping[str, str | None]) -> str:
    return " ".join(
        f"{key.replace('_', '-')}{'-' if text is None else f'={text}'}" for key, text in annotations.items()
    )


def _with_image(image: str) -> Callable[[Raw], None]:
    def change(raw: Raw) -> None:
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change
