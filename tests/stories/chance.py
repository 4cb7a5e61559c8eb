"""A life by dice: things happen at any moment to a workload in the world; the judge looks at each event.

`Life(seed).live()` lets random things happen, then leaves the workload alone with enough nodes and checks
that a steady state is reached. The same seed gives the same life.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy, parse_policy
from stories.director import LABEL, NOTICE, Story
from stories.judge import BrokenPromiseError
from stories.words import images
from world import clock
from world.cluster import POOL
from world.controllers.kubelet import Timing
from world.kinds import BUDGETS, NODES, PODS, SPLITS, Raw, Ref, path_of

Hand = tuple[str, Callable[[], object]]

POLICY = {"on_demand_base": "1", "spot_percent": "75"}
RESTS_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps
_LOOKS_S = (5, 60, 300)
_QUOTA = path_of("/api/v1/resourcequotas", "shop", "small")


class Life(Story):
    """One random run."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        surge = dice.choice([0, 1, 1, 2, 3])
        super().__init__(
            f"life {seed}",
            dice.randint(0, 8),
            surge,
            dice.randint(0, 2) if surge else dice.randint(1, 2),
            timing=Timing(start_s=1.0, ready_s=dice.choice([0.5, 4.0, 19.0]), end_s=dice.choice([1.0, 5.0])),
            provider=dice.choice(["", "aws", "gce"]),
            seed=seed,
            lag_s=dice.choice([0.02, 0.02, 0.02, 0.5]),
        )
        lost, late_s = dice.choice([0, 0, 0, 0.05, 0.2]), dice.choice([0, 0, 0.2, 2.0])
        self.by_hand = dice.random() < 0.5
        self.api.loses = lambda: dice.random() < lost
        self.api.lag_s = lambda: dice.random() * late_s
        self.excused_s += 2 * late_s
        self.nodes, self.image = 0, 1

    def live(self, events: int = 18) -> None:
        """Live, then come to rest."""
        self.label(**POLICY)
        for _ in range(events):
            self.wait(self.dice.choice([0, 0, 1, 2, 5, 10, 60, 200, 700]))
            self.happens(*self.next())
            self._must_keep()
        self._leave_alone()
        self._rest()

    def next(self) -> Hand:
        """Return what happens next."""
        if self.by_hand and self.dice.random() < 0.4:
            return self.dice.choice([*self._on_ours(), *self._on_pods()])
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
                (f"kubectl drain {name}", partial(self._drains, name)),
            ]
        there = [name for name in machines.silent if self.objects.find(Ref(NODES, "", name))]
        if there:
            events.append((f"{there[0]} speaks again", partial(self.cluster.speak, there[0])))
        if self.scene.source["spec"].get("paused"):
            events.append(
                ("kubectl rollout resume", self.changed(lambda raw: raw["spec"].pop("paused", None)))
            )
        return events

    def _rarer(self) -> list[Hand]:
        """Return what people change about the workload and its surroundings, and what goes on on-demand."""
        dice, replicas = self.dice, self.scene.replicas
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
            ("splitter is away", lambda: None),
            ("an on-demand node comes", partial(self._comes, "od")),
        ]
        on_demand = [raw["metadata"]["name"] for raw in self.objects.all(NODES)]
        on_demand = [name for name in on_demand if name.startswith("od")]
        if len(on_demand) > 1:
            name = dice.choice(on_demand)
            events += [
                (f"notice for {name}", partial(self._notices, name)),
                (f"{name} vanishes", partial(self.cluster.vanish, name)),
                (f"kubectl drain {name}", partial(self._drains, name)),
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
            for kind in (SPLITS, BUDGETS)
            for raw in self.objects.all(kind, "shop")
        ]
        return events

    def _on_pods(self) -> list[Hand]:
        """Return what becomes of one replica."""
        pods = self.scene.pods()
        if not pods:
            return [("nothing", lambda: None)]
        pod = self.dice.choice(pods)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        return [
            (f"kubectl delete {name}", partial(self._deletes, Ref(PODS, "shop", name))),
            (f"{name} fails its probe", partial(self._ails, partial(self.cluster.machines.ill.add, uid))),
            (
                f"{name} crashes",
                partial(self._ails, lambda: self.cluster.machines.crashing.update({uid: clock.now()})),
            ),
        ]

    def annotated(self, asked: dict[str, str | None], raw: Raw) -> None:
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

    def _drains(self, name: str) -> None:
        if name not in self.drains:
            at_rest = (
                self.scene.status.get("state") == "Steady" and self.scene.available() == self.scene.replicas
            )
            self.judge.guarded = at_rest and self.objects.find(Ref(BUDGETS, "shop", "web-guard")) is not None
            self.cordon(name)()
            self.drains[name] = self.loop.create_task(self._drained(name))

    def _deletes(self, ref: Ref) -> None:
        self.judge.world(5.0)  # the garbage collector comes later
        self.objects.delete(ref)

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
            self._quota(None)
            self._registry(answers=True)
            machines = self.cluster.machines
            for pod in self.scene.pods():
                if pod["metadata"]["uid"] in {*machines.ill, *machines.crashing}:
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
            return [*self.unsettled(on_demand), *drained]
        return [*(one for one in self.traces() if one != "Split" or not labelled), *drained]


def _labelled(raw: Raw, *, on: bool) -> None:
    labels = raw["metadata"].setdefault("labels", {})
    labels.pop(LABEL, None)
    if on:
        labels[LABEL] = "enabled"


def _with_image(image: str, raw: Raw) -> None:
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = image
