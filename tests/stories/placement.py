"""Stories of a StatefulSet in placement mode, with a judge of each end that splitter asks for.

No eviction leaves half of the members ready or fewer, each is of a member that can be made again (or is lost
with its node in a moment), and no member is ended more often within an hour than docs/limits.md says.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from splitter.core.nodes.signals import NOTICE_S, TERMINATION_ANNOTATION
from splitter.kube.client import ApiError
from stories.director import NOTICE, Story
from stories.judge import Judge
from stories.members import manifest
from stories.scene import Scene
from stories.words import Written
from world import clock
from world.cluster import POOL
from world.controllers.kubelet import READY_AFTER, Timing
from world.controllers.replica_set import is_available
from world.controllers.stateful_set import ordinal
from world.kinds import BUDGETS, NODES, PODS, PRIORITIES, STATEFUL_SETS, Raw, Ref, path_of, ref_of
from world.objects import Event
from world.placement_policy import PlacementPolicy
from world.pods import is_active
from world.workloads import changed

START_S, END_S = 20, 3
LONG_S = 3800  # so long the members have been where they are when a story begins
LOST_ANYWAY_S = 15  # what ends so long before its grace would be cut off by the node's end loses nothing
RESTARTS_AN_HOUR = 4  # as docs/limits.md says
HELD = "splitter.io/placeholder"
BOTH = ("spot-a", "spot-b")
_EVENTS, _CLAIMS = "/api/v1/events", "/apis/karpenter.sh/v1/nodeclaims"
_TAINTS = {"doomed": NOTICE, "leaving": {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}}
_TOLD_AGAIN_S = 60.0


class PlacementJudge(Judge):
    """Judges each end of a member as it is asked for."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.ends: list[tuple[float, int]] = []  # second and ordinal of each end of splitter's, once a pod
        self.fewest = 99
        self.placeholders = 0
        self.deadlines: dict[str, datetime] = {}  # of nodes that are to go
        self._ended: set[str] = set()

    @property
    def floor(self) -> int:
        """Return no number: an end is judged when it is asked for."""
        return 0

    @property
    def ceiling(self) -> None:
        """Return no number: no member is made beside another."""

    def begin(self) -> None:
        """Count from here."""
        self.fewest = 99
        super().begin()
        self.look()

    def look(self) -> None:
        """Count what there is now."""
        super().look()
        self.fewest = min(self.fewest, self.serving())

    def members(self) -> dict[int, Raw]:
        """Return the members by their ordinals, those that end included."""
        pods = self.scene.objects.all(PODS, "shop")
        return {number: pod for pod in pods if (number := ordinal(pod, "db")) >= 0}

    def serving(self) -> int:
        """Count the members that are ready and not ending."""
        return sum(map(self.scene.serves, self.members().values()))

    def written(self, written: Written, at_s: float) -> None:
        """Judge an eviction, and count it and each removal."""
        if written.ref.kind != PODS:
            return
        if written.verb == "create":
            self.placeholders += 1
        old, number = written.old, ordinal(written.old, "db") if written.old is not None else -1
        if old is None or number < 0 or written.verb not in {"evict", "delete"}:
            return
        if written.verb == "evict":
            if not self._is_lost_anyway(old):
                self._must_come_again(at_s, number, old)
            if self.scene.serves(old) and self.serving() * 2 <= self.scene.replicas:
                self.break_(at_s, "an eviction took the majority")
        if old["metadata"]["uid"] in self._ended:
            return  # it was evicted, and its node went before it had ended: it has one end
        self._ended.add(old["metadata"]["uid"])
        self.ends.append((at_s, number))
        within = sum(one == number and at > at_s - 3600 for at, one in self.ends)
        if within > RESTARTS_AN_HOUR:
            self.break_(at_s, f"db-{number} was ended {within} times within an hour")

    def _is_lost_anyway(self, pod: Raw) -> bool:
        ends = self.deadlines.get(pod["spec"].get("nodeName", ""))
        grace_s = pod["spec"]["terminationGracePeriodSeconds"]
        return ends is not None and (ends - clock.now()).total_seconds() <= grace_s + LOST_ANYWAY_S

    def _must_come_again(self, at_s: float, number: int, pod: Raw) -> None:
        """Judge an eviction by what the StatefulSet controller and the scheduler would do next."""
        members, source = self.members(), self.scene.source
        ready_s = source["spec"].get("minReadySeconds", 0)
        if source["spec"]["podManagementPolicy"] != "Parallel":
            for lower in range(number):
                one = members.get(lower)
                if one is None or not (self.scene.serves(one) and is_available(one, ready_s, clock.now())):
                    self.break_(at_s, f"db-{number} is not made again behind db-{lower}")
                    break
        ended = {one for _, one in self.ends} & set(range(self.scene.replicas)) - {number}
        for other in sorted(ended):
            if other not in members or not members[other]["spec"].get("nodeName"):
                self.break_(at_s, f"db-{number} was evicted while db-{other}, which was moved, had no node")
        node = self.scene.node_of(pod) or {"spec": {}}
        wanted = (self.scene.split or {}).get("spec", {}).get("onDemandOrdinals") or ()
        if node["spec"].get("unschedulable") and number in wanted and not self._has_room():
            self.break_(at_s, f"db-{number} was evicted off a cordoned node, and there is no room")

    def _has_room(self) -> bool:
        """Whether on-demand takes one more, in the place of the placeholder if need be."""
        pods = [
            one
            for one in self.scene.objects.all(PODS, "shop")
            if HELD not in (one["metadata"].get("labels") or {})
        ]
        used = [one["spec"].get("nodeName") for one in pods]
        nodes = (raw for raw in self.scene.objects.all(NODES) if raw["metadata"]["labels"][POOL] != "spot")
        return any(
            not raw["spec"].get("unschedulable")
            and used.count(raw["metadata"]["name"]) < int(raw["status"]["allocatable"]["pods"])
            for raw in nodes
        )


class PlacementStory(Story):
    """A StatefulSet `db` whose members are on the node `od`, and on `spot-a` and `spot-b`, split by `begin`.

    `at`: members that are elsewhere then; `born`: the pools that they are labelled with, if not those of
    their ordinals ("" without a policy); `nodes`: others of on-demand.
    """

    judged_by: ClassVar[type[Judge]] = PlacementJudge
    on_demand_nodes: ClassVar[int] = 0
    judge: PlacementJudge

    def __init__(
        self,
        title: str = "",
        replicas: int = 5,
        *,
        ordered: bool = True,
        at: Mapping[int, str] | None = None,
        born: Mapping[int, str] | None = None,
        nodes: tuple[str, ...] = (),
        labelled: bool = True,
        acts: bool = True,
        tolerant: bool = False,
        start_s: int = START_S,
        end_s: int = END_S,
        seed: int = 0,
        **annotations: str,
    ) -> None:
        raw = manifest(replicas, ordered=ordered, longest_s=max(30, end_s))
        said = {f"splitter.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        raw["metadata"]["annotations"] = said
        template = raw["spec"]["template"]
        template["metadata"]["annotations"] = {READY_AFTER: f"{start_s - 1}s"}
        if tolerant:
            keys = NOTICE["key"], "node.kubernetes.io/unschedulable"
            template["spec"]["tolerations"] = [{"operator": "Exists", "key": key} for key in keys]
        self.base = replicas // 2 + 1
        self._at = {number: self._home(number) for number in range(replicas)} | dict(at or {})
        self._born = {number: self._meant(number) for number in range(replicas)} | dict(born or {})
        self._nodes = ("od", *nodes)
        self._refused = 0
        self.recover_placeholders: Callable[[], None] = lambda: None
        kind = "OrderedReady" if ordered else "Parallel"
        super().__init__(
            title,
            replicas,
            workload=raw,
            kind=STATEFUL_SETS,
            spot_nodes=0,
            header=f"{kind}; a pod starts in {start_s} s and stops in {end_s} s",
            timing=Timing(start_s=1.0, ready_s=0.0, end_s=end_s),
            seed=seed,
        )
        self.wait(LONG_S)
        self.cluster.scheduler.filters.clear()
        self.run(self._at_once(self.judge.begin))
        self.zero_s = self._until_s
        self.policy.acts = acts
        if labelled:
            self.begin()

    def begin(self) -> None:
        """Have it split."""
        self.label()
        self.wait(2)

    def _meant(self, number: int) -> str:
        return "on-demand" if number < self.base else "spot"

    def _home(self, number: int) -> str:
        return "od" if number < self.base else f"spot-{'ab'[number % 2]}"

    async def _begun(self, *world: object) -> None:
        await super()._begun(*world)  # type: ignore[arg-type] # what it was given
        for name in (*self._nodes, *BOTH):
            self._join(name)
        least = {"metadata": {}, "value": -10, "preemptionPolicy": "Never"}
        self.objects.put(path_of(PRIORITIES, "", "splitter-placeholder"), least)
        self.cluster.api.missing.discard("karpenter.sh")
        self.policy = PlacementPolicy(self.objects)
        self.policy.before = self._born
        self.cluster.scheduler.filters.append(self._not_at_home)

    def _not_at_home(self, pod: Raw, node: Raw) -> str:
        home = self._at.get(ordinal(pod, "db"), "")
        return "" if home in {"", node["metadata"]["name"]} else "it was elsewhere"

    @property
    def clock(self) -> str:
        """Return the time since the label, minutes and seconds."""
        at = int(self.loop.time() - getattr(self, "zero_s", 0.0) + 0.001)
        return f"{at // 60:02}:{at % 60:02}"

    # --- what a test says ---------------------------------------------------------------------------

    def _join(self, name: str) -> None:
        """Have a machine of AWS join."""
        self.cluster.add_node(name, {POOL: "on-demand" if name in self._nodes else "spot"})
        aws = {"providerID": f"aws:///{name}"}
        changed(self.cluster, Ref(NODES, "", name), lambda raw: raw["spec"].update(aws))

    def nodes_are(self, state: str, *names: str) -> None:
        """Change machines: `up`, `doomed` (in two minutes), `leaving`, `cordoned`, `silent` or `gone`."""

        def become() -> None:
            for name in names:
                self._become(state, name)

        self.happens(f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {state}", become)

    def _become(self, state: str, name: str) -> None:
        ref, scene = Ref(NODES, "", name), self.scene
        there = self.objects.find(ref)
        scene.doomed.discard(name)
        self.judge.deadlines.pop(name, None)
        if state == "gone":
            self.cluster.vanish(name)
        elif there is None:
            self._join(name)
        elif state == "silent":
            self.cluster.silence(name)
        else:
            if name in self.cluster.machines.silent:
                self.cluster.speak(name)

            def change(raw: Raw) -> None:
                ours = [taint["key"] for taint in _TAINTS.values()]
                others = [one for one in raw["spec"].get("taints") or () if one["key"] not in ours]
                raw["spec"]["taints"] = [*others, dict(_TAINTS[state])] if state in _TAINTS else others
                raw["spec"]["unschedulable"] = state == "cordoned"
                raw["metadata"].get("annotations", {}).pop(TERMINATION_ANNOTATION, None)

            changed(self.cluster, ref, change)
            if state != "up":
                scene.doomed.add(name)
            if state == "doomed":
                self.judge.deadlines[name] = clock.now() + timedelta(seconds=NOTICE_S["aws"])

    def notice(self, seconds: int, *names: str) -> None:  # type: ignore[override] # it has a deadline here
        """Have machines announce that they go in so many seconds; then they do."""
        ends = self.run(self._at_once(clock.now)) + timedelta(seconds=seconds)

        def announce() -> None:
            for name in names:
                self._become("doomed", name)
                self.judge.deadlines[name] = ends
                changed(self.cluster, Ref(NODES, "", name), _ending(ends))
                self.loop.call_later(seconds, self._ends, name, ends)

        self.happens(f"{' and '.join(names)} will go in {seconds} s", announce)

    def _ends(self, name: str, ends: datetime) -> None:
        if self.judge.deadlines.get(name) == ends:
            self.judge.world(0.2)
            self._become("gone", name)
            self.judge.look()

    def member_ends(self, *numbers: int) -> None:
        """Have members end by themselves, as a drain ends them."""

        def end() -> None:
            for number in numbers:
                self.objects.delete(Ref(PODS, "shop", f"db-{number}"))

        self.happens(f"{' and '.join(f'db-{number}' for number in numbers)} ends by itself", end)

    def ill(self, number: int, seconds: float) -> None:
        """Have a member's readiness probe fail for so long."""
        uid = self.objects.get(Ref(PODS, "shop", f"db-{number}"))["metadata"]["uid"]
        ill, look = self.cluster.machines.ill, self.cluster.kubelets.look_at

        def fails() -> None:
            ill.add(uid)
            look()

        def recovers() -> None:
            ill.discard(uid)
            look()

        self.happens(f"db-{number} is ill for {seconds:g} s", fails)
        self.loop.call_later(seconds, recovers)

    def ends_take(self, seconds: float) -> None:
        """Have members need so long to end."""
        self.cluster.kubelets.timing = replace(self.cluster.kubelets.timing, end_s=seconds)

    def min_ready(self, seconds: int) -> None:
        """Set minReadySeconds."""
        set_ = self.changed(lambda raw: raw["spec"].update(minReadySeconds=seconds))
        self.happens(f"minReadySeconds is {seconds}", set_)

    def on_demand_has(self, pods: int) -> None:
        """Give `od` room for so many pods."""
        self.happens(f"od has room for {pods} pods", self.headroom(od=pods))

    def rivals(self, count: int) -> None:
        """Have pods of others want room on `od`, before any placeholder."""
        spec = {"containers": [{"name": "rival", "image": "rival:1"}], "nodeSelector": {POOL: "on-demand"}}

        def come() -> None:
            for number in range(count):
                raw = {"metadata": {"name": f"rival-{number}-{self.clock.replace(':', '-')}"}, "spec": spec}
                with suppress(ApiError):  # a quota
                    self.objects.create(PODS, "shop", raw, "user")

        self.happens(f"{count} rivals want room on od", come)

    def rivals_go(self) -> None:
        """Take the pods of others away."""

        def go() -> None:
            for pod in self.objects.all(PODS, "shop"):
                if pod["metadata"]["name"].startswith("rival"):
                    self.objects.forget(path_of(PODS, "shop", pod["metadata"]["name"]))

        self.happens("the rivals go", go)

    def keep_off(self, node: str, text: str = "node(s) didn't match pod topology spread constraints") -> None:
        """Keep members, and no placeholder, off the nodes whose names begin so."""
        self.cluster.scheduler.filters.append(
            lambda pod, raw: (
                text
                if raw["metadata"]["name"].startswith(node)
                and "splitter.io/pool" in (pod["metadata"].get("labels") or {})
                and ordinal(pod, "db") >= 0
                else ""
            )
        )

    def let_on(self) -> None:
        """Keep members off no node any more."""

        def free() -> None:
            self.cluster.scheduler.filters.clear()
            self.cluster.scheduler.look_at_all()

        self.happens("members fit everywhere again", free)

    def fail_placeholders(self) -> None:
        """Have kubelets take no placeholder, until `recover_placeholders`."""

        def bound(event: Event) -> None:
            pod = event.new
            starts = pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") == "Pending"
            if HELD in (pod["metadata"].get("labels") or {}) and starts and not event.deleted:
                self.loop.call_later(0.05, self.fail_placeholder)

        stop = self.objects.follow(PODS, bound)

        def recover() -> None:
            stop()
            self.recover_placeholders = lambda: None

        self.recover_placeholders = recover

    def fail_placeholder(self) -> None:
        """Have the placeholder that there is fail."""
        for pod in self.held():
            failed = {**pod.get("status", {}), "phase": "Failed", "reason": "OutOfcpu"}
            ref = Ref(PODS, "shop", pod["metadata"]["name"])
            with suppress(ApiError):
                self.objects.update(ref, {**pod, "status": failed}, part="status")

    def refused(self, *, by_karpenter: bool) -> None:
        """Have Karpenter find no spot machine, or say nothing more."""
        self._refused += 1
        if by_karpenter:
            self.happens("Karpenter finds no spot machine", lambda: self._tell_refusal(self._refused))
        else:
            self.happens("Karpenter has no more to say about spot", self._end_refusal)

    def _tell_refusal(self, episode: int) -> None:
        if episode != self._refused:
            return
        wanted = [{"key": POOL, "operator": "In", "values": ["spot"]}]
        claim = self.objects.put(
            path_of(_CLAIMS, "", "wanted"), {"metadata": {}, "spec": {"requirements": wanted}}
        )
        about = {"kind": "NodeClaim", "name": "wanted", "uid": claim["metadata"]["uid"]}
        event = {
            "metadata": {},
            "involvedObject": about,
            "reason": "InsufficientCapacityError",
            "type": "Warning",
            "message": "no instance type was available",
            "source": {"component": "karpenter"},
            "reportingComponent": "karpenter",
            "lastTimestamp": clock.stamp(),
        }
        self.objects.put(path_of(_EVENTS, "default", "wanted"), event)
        self.loop.call_later(_TOLD_AGAIN_S, self._tell_refusal, episode)

    def _end_refusal(self) -> None:
        self.forget(path_of(_EVENTS, "default", "wanted"))

    def forget(self, path: str) -> None:
        """Remove what is there."""
        if self.objects.find(ref_of(path)) is not None:
            self.objects.forget(path)

    def budget(self, least: int | None) -> None:
        """Have a budget keep so many members, or none."""
        path = path_of(BUDGETS, "shop", "mine")
        spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": least}
        if least is None:
            self.happens("the budget is gone", lambda: self.forget(path))
        else:
            self.happens(
                f"a budget keeps {least}", lambda: self.objects.put(path, {"metadata": {}, "spec": spec})
            )

    # --- what a test asks ---------------------------------------------------------------------------

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The second and the ordinal of each end that splitter asked for."""
        return [(int(at - self.zero_s), number) for at, number in self.judge.ends]

    @property
    def now_s(self) -> int:
        """How many seconds the story has lasted."""
        return int(self.loop.time() - self.zero_s)

    @property
    def fewest(self) -> int:
        """The fewest members that were ready at any moment."""
        return self.judge.fewest

    @property
    def placeholders(self) -> int:
        """How many placeholders were made."""
        return self.judge.placeholders

    @property
    def serving(self) -> int:
        """How many members are ready."""
        return self.judge.serving()

    @property
    def ordinals(self) -> list[int] | None:
        """The ordinals that are on on-demand, as the Split says."""
        listed: list[int] | None = ((self.scene.split or {}).get("spec") or {}).get("onDemandOrdinals")
        return listed

    def held(self) -> list[Raw]:
        """Return the placeholder, if there is one."""
        pods = self.objects.all(PODS, "shop")
        return [pod for pod in pods if HELD in (pod["metadata"].get("labels") or {}) and is_active(pod)]

    def where(self) -> dict[int, str]:
        """Return the node of each member."""
        return {k: pod["spec"].get("nodeName", "") for k, pod in sorted(self.judge.members().items())}

    def on_spot(self) -> list[int]:
        """Return the ordinals that are on spot nodes."""
        spot = self.scene.spot_nodes()
        return [number for number, node in self.where().items() if node in spot]

    def is_whole(self) -> bool:
        """Whether all are ready where they are wanted."""
        return self.serving == self.scene.replicas and self.on_spot() == [
            *range(self.scene.replicas // 2 + 1, self.scene.replicas)
        ]


def _ending(ends: datetime) -> Callable[[Raw], None]:
    """Return what says on a node when it goes."""

    def change(raw: Raw) -> None:
        raw["metadata"].setdefault("annotations", {})[TERMINATION_ANNOTATION] = clock.stamp(ends)

    return change
