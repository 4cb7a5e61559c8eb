"""A life by dice: things happen at any moment to a workload in the world; the judge looks at each event.

`Life(seed).live()` lets random things happen, then leaves the workload alone with enough nodes and checks
that a steady state is reached. The same seed gives the same life.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from random import Random

from leaping import passing
from splitter.core.division import base_replicas
from splitter.core.labels_annotations import LABEL_POOL
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from stories.director import LABEL, NOTICE, PREFIX, Story
from stories.reported import BrokenPromiseError
from stories.words import images
from world import clock
from world.cluster import POOL
from world.controllers.kubelet import Timing
from world.eviction import evict
from world.kinds import BUDGETS, NODES, PODS, REPLICA_SETS, SPLITS, Raw, Ref, path_of
from world.workloads import deployment

Hand = tuple[str, Callable[[], object]]

POLICY = {"on_demand_base": "1", "spot_percent": "75"}
RESTS_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps
GUARD = "web-guard"
_AUTOSCALES_EVERY_S = 15.0
_LOOKS_S = (5, 60, 300)
_QUOTA = path_of("/api/v1/resourcequotas", "shop", "small")


class Life(Story):
    """One random run."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        surge = dice.choice([0, 1, 1, 2, 3])
        numbers = {"maxSurge": surge, "maxUnavailable": dice.randint(0 if surge else 1, 2)}
        asked: Raw = {"strategy": {"type": "RollingUpdate", "rollingUpdate": numbers}}
        if least_s := dice.choice([0, 0, 0, 10, 60]):
            asked["minReadySeconds"] = least_s
        super().__init__(
            f"life {seed}",
            workload=deployment(dice.randint(0, 8), **asked),
            header=f"{asked}",
            timing=Timing(start_s=1.0, ready_s=dice.choice([0.5, 4.0, 19.0]), end_s=dice.choice([1.0, 5.0])),
            provider=dice.choice(["", "aws", "gce"]),
            seed=seed,
            lag_s=dice.choice([0.02, 0.02, 0.02, 0.5]),
        )
        lost, late_s = dice.choice([0, 0, 0, 0.05, 0.2]), dice.choice([0, 0, 0.2, 2.0])
        self.by_hand = dice.random() < 0.5
        self.scales = dice.choice([0, 0, 0, 0.01, 0.05])  # how often an autoscaler that looks wants another N
        self.api.loses = lambda: dice.random() < lost
        self.api.lag_s = lambda: dice.random() * late_s
        self.excused_s += 2 * late_s
        self.judge.unseen_s += late_s
        self.judge.late_s += 2 * late_s
        self.nodes, self.image = 0, 1
        self.budgets_refused = False  # once at least

    def live(self, events: int = 18) -> None:
        """Live, then come to rest."""
        self.label(**POLICY)
        autoscaler = self.loop.create_task(self._autoscales())
        try:
            for _ in range(events):
                self.wait(self.dice.choice([0, 0, 1, 2, 5, 10, 60, 200, 700]))
                self.happens(*self.next())
                self._must_keep()
        finally:
            autoscaler.cancel()
        self._leave_alone()
        self._rest()

    def next(self) -> Hand:
        """Return what happens next."""
        if self.dice.random() < 0.2:
            return self.dice.choice(self._evictions())
        if self.by_hand and self.dice.random() < 0.4:
            return self.dice.choice([*self._on_ours(), *self._on_pods(), *self._clocks()])
        return self.dice.choice(self._frequent() if self.dice.random() < 0.5 else self._rarer())

    def _must_keep(self) -> None:
        if self.judge.broken:
            raise BrokenPromiseError(self.judge.broken[0])

    # --- what happens -----------------------------------------------------------------------------

    def _frequent(self) -> list[Hand]:
        dice, machines = self.dice, self.cluster.machines
        spot = self.scene.spot_nodes()
        labelled = LABEL in self.scene.source["metadata"].get("labels", {})
        count = dice.randint(0, 8)
        events: list[Hand] = [
            (f"scaled to {count}", self.changed(lambda raw: raw["spec"].update(replicas=count))),
            (f"scaled to {count}", self.changed(lambda raw: raw["spec"].update(replicas=max(1, count)))),
            ("a new image", self._new_image),
            (f"label flipped, was {labelled}", self.changed(partial(_labelled, on=not labelled))),
            ("nothing", lambda: None),
            ("a node comes", partial(self._comes, "spot")),
        ]
        if spot:
            name = dice.choice(spot)
            events += [
                (f"notice for {name}", partial(self._notices, name)),
                (f"{name} vanishes", partial(self.cluster.vanish, name)),
                (f"{name} vanishes", partial(self.cluster.vanish, name)),
                ("notice for all spot", partial(self._notices, *spot)),
                (f"{name} is silent", partial(self.cluster.silence, name)),
                (f"kubectl drain {name}", partial(self.begin_drain, name)),
            ]
        there = [name for name in machines.silent if self.objects.find(Ref(NODES, "", name))]
        if there:
            events.append((f"{there[0]} speaks again", partial(self.cluster.speak, there[0])))
        if labelled:
            events.append(("kubectl replace", self.changed(_replaced)))
        if self.scene.source["spec"].get("paused"):
            events.append(
                ("kubectl rollout resume", self.changed(lambda raw: raw["spec"].pop("paused", None)))
            )
        return events

    def _rarer(self) -> list[Hand]:
        """Return what people change about the workload and its surroundings, and what goes on on-demand."""
        dice, replicas = self.dice, self.scene.replicas
        free = dice.choice([0, 1, 12]) + len(self.scene.on("od-1"))
        asked = {
            "on_demand_base": dice.choice(["0", "1", "2", "4", "majority"]),
            "spot_percent": dice.choice(["0", "50", "80", "100"]),
            "on_demand_max": dice.choice(["3", "8", None, None]),
            "soak": dice.choice(["1s", "60s", "10m"]),
            "grace": dice.choice(["0s", "30s", "180s"]),
            "freeze": dice.choice(["true", None]),
            "dry_run": dice.choice(["true", None, None]),
            "rollout_order": dice.choice(["spot-first", "on-demand-first"]),
            "evictions": dice.choice(["one-at-a-time", "surge-first", "unguarded", None]),
        }
        events: list[Hand] = [
            (f"{key}={text}", self.changed(partial(self.annotated, {key: text})))
            for key, text in asked.items()
        ]
        quota, surge, answers = (
            dice.choice([None, replicas, replicas + 2]),
            dice.randint(0, 3),
            dice.random() < 2 / 3,
        )
        numbers = {"maxSurge": surge, "maxUnavailable": dice.randint(0 if surge else 1, 2)}
        events += [
            (
                f"strategy {numbers}",
                self.changed(lambda raw: raw["spec"]["strategy"].update(rollingUpdate=numbers)),
            ),
            (f"a quota of {quota}", partial(self._quota, quota)),
            (f"the registry answers: {answers}", partial(self._registry, answers)),
            ("writes are refused for a minute", partial(self.refuses_for, 60.0)),
            (f"others leave {free} places on od-1", self.headroom(od_1=free)),
            ("an on-demand node comes", partial(self._comes, "od")),
        ]
        on_demand = [name for name in self.scene.nodes() if name.startswith("od")]
        if len(on_demand) > 1:
            name = dice.choice(on_demand)
            events += [
                (f"notice for {name}", partial(self._notices, name)),
                (f"{name} vanishes", partial(self.cluster.vanish, name)),
                (f"kubectl drain {name}", partial(self.begin_drain, name)),
            ]
        return events

    def _on_ours(self) -> list[Hand]:
        """Return what people do to what splitter has made, one line of kubectl each."""
        count = self.dice.randint(0, 8)
        events: list[Hand] = [("nothing", lambda: None)]
        for pool in self.scene.twins:
            twin = self.twin(pool)
            events += [
                (
                    f"kubectl scale {twin.name}",
                    self.changed(lambda raw: raw["spec"].update(replicas=count), twin),
                ),
                (
                    f"kubectl rollout pause {twin.name}",
                    self.changed(lambda raw: raw["spec"].update(paused=True), twin),
                ),
                (f"kubectl delete {twin.name}", partial(self._deletes, twin)),
                (f"{twin.name} is edited", self.changed(partial(_with_image, "web:by-hand"), twin)),
            ]
        events += [
            (
                f"kubectl delete {raw['kind']} {raw['metadata']['name']}",
                partial(self._deletes, Ref(kind, "shop", raw["metadata"]["name"])),
            )
            for kind in (SPLITS, BUDGETS, REPLICA_SETS)
            # Not while pods have no owner: then nothing but a parked one knows what they are made of.
            for raw in (self.scene.parked() if kind == REPLICA_SETS else self.objects.all(kind, "shop"))
            if kind != REPLICA_SETS or not self._have_no_owner()
        ]
        return events

    def _have_no_owner(self) -> bool:
        going = ("deletionTimestamp" in raw["metadata"] for raw in self.scene.replica_sets())
        return bool(self.scene.unowned()) or any(going)

    def _on_pods(self) -> list[Hand]:
        """Return what becomes of one replica."""
        pods = self.scene.pods()
        if not pods:
            return [("nothing", lambda: None)]
        pod = self.dice.choice(pods)
        name, uid, seconds = pod["metadata"]["name"], pod["metadata"]["uid"], self.dice.choice([2, 30, 300])
        return [
            (f"{name} is not ready for {seconds} s", partial(self._flaps, uid, seconds)),
            (f"kubectl delete {name}", partial(self._deletes, Ref(PODS, "shop", name))),
            (f"{name} is taken out", self.changed(_taken_out, Ref(PODS, "shop", name))),
            (f"{name} fails its probe", partial(self._ails, partial(self.cluster.machines.ill.add, uid))),
            (
                f"{name} crashes",
                partial(self._ails, lambda: self.cluster.machines.crashing.update({uid: clock.now()})),
            ),
        ]

    def _clocks(self) -> list[Hand]:
        """Return how splitter's clock may be wrong: the API server's and the kubelets' are right."""
        off_s = self.dice.choice([0, 30, -30, 300, -300, 4000, -4000])
        return [(f"splitter's clock is wrong by {off_s} s", partial(setattr, self.loop, "wrong_by_s", off_s))]

    def _evictions(self) -> list[Hand]:
        """Return what people do about evictions, and what evicts."""
        kind, guard = (
            self.dice.choice(["least", "all", "most", "spot", "on-demand"]),
            Ref(BUDGETS, "shop", GUARD),
        )
        events: list[Hand] = [
            (f"a user's budget, {kind}", partial(self._budget, kind)),
            ("no user's budget", self._no_budgets),
            ("budgets are refused for a minute", self._refuses_budgets),
        ]
        if self.objects.find(guard) is not None:
            robbed = self.changed(lambda raw: raw["metadata"].pop("ownerReferences", None), guard)
            events.append(("the guard loses its owner", robbed))
        if pods := self.scene.pods():
            name = self.dice.choice(pods)["metadata"]["name"]
            events += [(f"{name} is evicted", partial(self._evicts, name))] * 3
        if self.drains:
            name = self.dice.choice(sorted(self.drains))
            events.append((f"kubectl uncordon {name}", partial(self._uncordons, name)))
        return events

    def annotated(self, asked: Mapping[str, str | None], raw: Raw) -> None:
        """Annotate the source."""
        held = raw["metadata"].setdefault("annotations", {})
        for key, text in asked.items():
            name = f"splitter.io/{key.replace('_', '-')}"
            held.pop(name, None)
            if text is not None:
                held[name] = text

    def _new_image(self) -> None:
        self.image += 1
        broken = self.dice.choice(["", "", "", "-broken", "-crash"])
        number = self.dice.choice([self.image, self.image, self.dice.randint(1, self.image)])
        self.changed(partial(_with_image, f"web:{number}{broken}"))()

    def _comes(self, pool: str, pods: int | None = None) -> None:
        self.nodes += 1
        labels = {POOL: "spot" if pool == "spot" else "on-demand"}
        self.cluster.add_node(f"{pool}-{self.nodes}", labels, pods=pods or self.dice.randint(2, 12))

    def _notices(self, *names: str) -> None:
        self.scene.doomed.update(names)
        for name in names:
            self.cluster.taint(name, [NOTICE])

    def begin_drain(self, name: str) -> None:
        """Run `kubectl drain`; at rest it leaves N - 1."""
        if name not in self.drains:
            at_rest = (
                self.scene.status.get("state") == "Steady" and self.scene.available() == self.scene.replicas
            )
            self.judge.guarded = at_rest and self.objects.find(Ref(BUDGETS, "shop", GUARD)) is not None
            self.cordon(name)()
            self.drains[name] = self.loop.create_task(self._drained(name))

    def _deletes(self, ref: Ref) -> None:
        self.judge.world(5.0)  # the garbage collector comes later
        self.objects.delete(ref)

    def _budget(self, kind: str) -> None:
        """Have a user write a budget, of all pods or of one pool's."""
        replicas, labels = self.scene.replicas, {"app": "web"}
        if kind in set(Pool):
            labels[LABEL_POOL] = kind
        least = {"least": max(0, replicas - 1), "all": replicas}.get(kind)
        wanted = {"maxUnavailable": 1} if least is None else {"minAvailable": least}
        raw = {"metadata": {"name": f"mine-{kind}"}, "spec": {"selector": {"matchLabels": labels}, **wanted}}
        with suppress(ApiError):  # it is there
            self.objects.create(BUDGETS, "shop", raw, "user")

    def _no_budgets(self) -> None:
        for name in self._of_users():
            self.objects.delete(Ref(BUDGETS, "shop", name))

    def _of_users(self) -> list[str]:
        return [
            name for raw in self.objects.all(BUDGETS, "shop") if (name := raw["metadata"]["name"]) != GUARD
        ]

    def _refuses_budgets(self) -> None:
        self.budgets_refused = True
        self.refuses_for(60.0, BUDGETS)

    def _evicts(self, name: str) -> None:
        with suppress(ApiError):  # a budget says that it may not go now
            evict(self.objects, Ref(PODS, "shop", name), {"metadata": {"name": name}}, "user")

    def _uncordons(self, name: str) -> None:
        self.drains.pop(name).cancel()
        with suppress(ApiError):  # it is gone
            self.cordon(name, until=False)()

    async def _autoscales(self) -> None:
        """Play a HorizontalPodAutoscaler: it looks every 15 s, and leaves alone what is at 0."""
        dice = Random(self.dice.random())
        while True:
            await passing(_AUTOSCALES_EVERY_S)
            if (was := self.scene.replicas) and dice.random() < self.scales:
                count = min(max(1, was + dice.choice([-3, -1, 1, 2, 4])), 9)
                self.judge.world(self.excused_s)
                self.changed(partial(_scaled, count))()
                self.judge.happened()

    def _flaps(self, uid: str, seconds: float) -> None:
        self._ails(partial(self.cluster.machines.ill.add, uid))
        self.loop.call_later(seconds, self._ails, partial(self.cluster.machines.ill.discard, uid))

    def _ails(self, act: Callable[[], object]) -> None:
        act()
        self.cluster.kubelets.look_at()

    def _quota(self, pods: int | None) -> None:
        if pods is not None:
            self.cluster.quota("pods", pods)
        elif self.objects.find(Ref("/api/v1/resourcequotas", "shop", "small")) is not None:
            self.objects.forget(_QUOTA)

    def _registry(self, answers: bool) -> None:
        self.cluster.machines.registry_answers = answers
        self.cluster.kubelets.look_at()

    # --- rest -------------------------------------------------------------------------------------

    def _leave_alone(self) -> None:
        """Give everything what is needed, and let nothing happen from now on."""

        def mended() -> None:
            for raw in self.objects.all(NODES):
                name = raw["metadata"]["name"]
                gone = name in self.scene.doomed - self.drains.keys() or name in self.cluster.machines.silent
                if gone:
                    self.cluster.vanish(name)
            for name in self._of_users():
                if name != "mine-most" or self.dice.random() < 0.5:
                    self.objects.delete(Ref(BUDGETS, "shop", name))
            self.loop.wrong_by_s = 0.0
            self._quota(None)
            self._registry(answers=True)
            machines = self.cluster.machines
            for pod in self.scene.pods():
                taken_out = pod["metadata"]["labels"].get("pod-template-hash") == "debug"
                if taken_out or pod["metadata"]["uid"] in {*machines.ill, *machines.crashing}:
                    self.objects.delete(Ref(PODS, "shop", pod["metadata"]["name"]))
            for pool in ("spot", "spot", "spot", "od", "od", "od"):
                self._comes(pool, 12)
            asked = {"freeze": None, "dry_run": None, "on_demand_max": None}
            self.changed(partial(self.annotated, asked))()
            if "-" in images(self.scene.source["spec"]):
                self.changed(partial(_with_image, f"web:{self.image + 1}"))()

        self.api.loses = lambda: False
        self.happens("left alone, with enough nodes", mended)

    def _rest(self) -> None:
        ends_s, looks = self.loop.time() + RESTS_WITHIN_S, iter(_LOOKS_S)
        every_s = next(looks)
        while unrest := self._unrest():
            self.wait(every_s)
            every_s = next(looks, every_s)
            self._must_keep()
            if self.loop.time() > ends_s:
                raise BrokenPromiseError(f"no rest: {'; '.join(unrest)}")

    def _unrest(self) -> list[str]:
        source = self.scene.source
        labelled = LABEL in source["metadata"].get("labels", {})
        conflict = "conflict" in self.scene.status
        drained = [f"{name} is drained" for name in self.drains]
        if labelled and not conflict:
            annotations = source["metadata"].get("annotations") or {}
            policy = parse_policy(annotations, Policy(), None).policy or Policy()
            on_demand = base_replicas(self.scene.replicas, policy)
            return [*self.unsettled(on_demand), *drained, *self._unguarded(annotations)]
        guard = self.objects.find(Ref(BUDGETS, "shop", GUARD))
        # Without an owner, and with its deletion refused, it stays: that stops nothing (G12).
        if guard is not None and (guard["metadata"].get("ownerReferences") or not self.budgets_refused):
            drained.append(f"{GUARD} is left")
        return [*(one for one in self.traces() if one != "Split" or not labelled), *drained]

    def _unguarded(self, annotations: Mapping[str, str]) -> list[str]:
        """Name what is wrong with the budget of a split workload at rest (G1, G2, G8, G9)."""
        guard, evictions = (
            self.objects.find(Ref(BUDGETS, "shop", GUARD)),
            annotations.get(f"{PREFIX}evictions"),
        )
        if self._of_users() or evictions == "unguarded":
            return [] if guard is None else [f"{GUARD} beside {self._of_users() or evictions}"]
        wanted = max(0, self.scene.replicas - (evictions != "surge-first"))
        keeps = None if guard is None else guard["spec"]["minAvailable"]
        return [] if keeps == wanted else [f"{GUARD} keeps {keeps}, not {wanted}"]


def _labelled(raw: Raw, *, on: bool) -> None:
    labels = raw["metadata"].setdefault("labels", {})
    labels.pop(LABEL, None)
    if on:
        labels[LABEL] = "enabled"


def _scaled(replicas: int, raw: Raw) -> None:
    raw["spec"]["replicas"] = replicas


def _replaced(raw: Raw) -> None:
    """Have what a manifest says that knows nothing of splitter."""
    raw["metadata"].setdefault("labels", {}).pop(LABEL, None)
    raw["metadata"]["annotations"] = {}
    raw["spec"].pop("paused", None)


def _taken_out(raw: Raw) -> None:
    raw["metadata"]["labels"]["pod-template-hash"] = "debug"


def _with_image(image: str, raw: Raw) -> None:
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = image
