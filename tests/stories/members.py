"""Stories of a StatefulSet that is split into twins: members by ordinal, with what is promised of them."""

import asyncio
from dataclasses import replace
from typing import ClassVar

from splitter.core.labels_annotations import ANNOTATION_REPLICAS, LABEL_SPLIT
from splitter.core.replica import Pool
from stories.director import Story
from stories.judge import Judge
from stories.scene import Scene
from stories.words import Written, images
from world.controllers.kubelet import Timing
from world.controllers.stateful_set import ordinal
from world.controllers.volumes import LOCAL
from world.kinds import NODES, PODS, SPLITS, STATEFUL_SETS, Raw, Ref
from world.objects import Event
from world.pods import is_ready

START_S, STOP_S = 5, 2
MAY_RUN_S = 40  # so long a kubelet whose Node object was deleted is given to show itself
TIMING = Timing(start_s=1.0, ready_s=START_S - 1.0, end_s=STOP_S)


def manifest(
    replicas: int,
    *,
    ordered: bool = False,
    local_volumes: bool = False,
    longest_s: int = 30,
    **annotations: str,
) -> Raw:
    """Return a StatefulSet `db`; with `local_volumes` a member has one on the node where it was first."""
    labels = {"app": "db"}
    container = {"name": "db", "image": "db:1", "resources": {"requests": {"cpu": "100m"}}}
    spec: Raw = {
        "replicas": replicas,
        "serviceName": "db",
        "podManagementPolicy": "OrderedReady" if ordered else "Parallel",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": longest_s},
        },
    }
    if local_volumes:
        annotations["volumes"] = "disposable"
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    said = {f"splitter.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"name": "db", "labels": dict(labels), "annotations": said}, "spec": spec}


class MembersJudge(Judge):
    """Judges twins of a StatefulSet: what each write leaves, how many there are, and on which pool."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.most, self.least_majority = 0, scene.replicas
        self.missed: dict[str, float] = {}  # nodes that went while Ready: their kubelets may run on
        scene.objects.follow(NODES, self._node_changed)

    def begin(self) -> None:
        """Count from here."""
        self.most, self.least_majority = 0, self.scene.replicas
        super().begin()
        self.look()

    def _node_changed(self, event: Event) -> None:
        if event.deleted and is_ready(event.new) and event.ref.name not in self.scene.doomed:
            self.missed[event.ref.name] = asyncio.get_running_loop().time()

    def look(self) -> None:
        """Count what there is now."""
        super().look()
        scene = self.scene
        placed = [pod for pod in scene.pods() if scene.node_of(pod) is not None]
        on_spot = sum(
            (pod["metadata"].get("labels") or {}).get("splitter.io/pool") == "spot" for pod in placed
        )
        self.most = max(self.most, len(placed))
        self.least_majority = min(self.least_majority, len(placed) - 2 * on_spot)

    def written(self, written: Written, at_s: float) -> None:
        """Judge what is left once every controller has done what is written (promise 1)."""
        if written.ref.kind == PODS and written.verb == "delete" and written.old is not None:
            missed_s = self.missed.get(written.old["spec"].get("nodeName", ""), -MAY_RUN_S)
            if at_s < missed_s + MAY_RUN_S:
                self.break_(at_s, f"{written.ref.name} may still run where it was, beside its successor")
        if written.ref.kind != STATEFUL_SETS or written.old is None:
            return
        there = [one for one in self._sets() if one["metadata"]["name"] != written.ref.name]
        before, after = [*there, written.old], [*there, *([written.new] if written.verb != "delete" else [])]
        kept_before, kept = sum(map(self._kept, before)), sum(map(self._kept, filter(None, after)))
        floor = max(0, self.scene.replicas - any(map(self._rolls, filter(None, (*before, *after)))))
        if kept < kept_before and kept < floor:
            self.break_(at_s, f"{written.ref.name}: {kept_before} -> {kept}, floor {floor} (promise 1)")
        old, new = written.old["spec"], (written.new or {}).get("spec") or written.old["spec"]
        if (
            written.ref == self.scene.ref
            and old["replicas"] != new["replicas"]
            and not _is_saved(written.old)
        ):
            self.break_(at_s, "the source is scaled before N is saved")
        most = sum(map(self._potential, filter(None, after)))
        if most > max(self._most(), sum(map(self._potential, before))):
            self.break_(at_s, f"{written.ref.name}: {most} may come, {self._most()} may be (promise 2)")

    @property
    def floor(self) -> int:
        """Return no number: what a StatefulSet's controller ends was judged when it was written."""
        return 0

    @property
    def ceiling(self) -> None:
        """Return no number: what may come was judged when it was written."""

    def _most(self) -> int:
        """Return N + S, and what an emergency adds (promise 2)."""
        scene, pods = self.scene, self.scene.objects.all(PODS, "shop")
        going = sum("nodeName" in pod["spec"] and not self._is_sound(pod) for pod in pods)
        known = scene.rebalance.keys() & {"lost", "shortSince"}
        waits = any(not pod["spec"].get("nodeName") for pod in pods)
        home = LABEL_SPLIT not in scene.source["metadata"]["labels"] or bool(scene.status.get("conflict"))
        failing = sum(not scene.serves(pod) for pod in scene.pods()) if home else 0
        return scene.replicas + 1 + going + failing + (scene.replicas if going or known or waits else 0)

    def _sets(self) -> list[Raw]:
        return self.scene.objects.all(STATEFUL_SETS, "shop")

    def _is_sound(self, pod: Raw) -> bool:
        """Whether the API server shows its node as Ready, and it stays."""
        node = self.scene.node_of(pod)
        return node is not None and is_ready(node) and pod["spec"]["nodeName"] not in self.scene.doomed

    def _kept(self, one: Raw) -> int:
        """Count its available members that its spec keeps; a roll takes one of them at a time."""
        first = (one["spec"].get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + one["spec"]["replicas"])
        kept = sum(
            ordinal(pod, one["metadata"]["name"]) in wanted and self._seems_to_stay(pod)
            for pod in self.scene.pods(one)
        )
        return min(kept, len(wanted) - 1) if kept and self._rolls(one) else kept

    def _seems_to_stay(self, pod: Raw) -> bool:
        """Whether the API server shows it as ready on a node that stays: a silent one is known later."""
        return is_ready(pod) and self._is_sound(pod)

    def _potential(self, one: Raw) -> int:
        """Count what may be there without a further write; what finds no node takes no room."""
        pods = self.scene.pods(one)
        stuck = sum(not pod["spec"].get("nodeName") for pod in pods)
        return max(int(one["spec"]["replicas"]), len(pods)) - stuck

    def _rolls(self, one: Raw) -> bool:
        first = (one["spec"].get("ordinals") or {}).get("start", 0)
        first += ((one["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition", 0)
        return any(
            images(pod["spec"]) != images(one["spec"]) and ordinal(pod, one["metadata"]["name"]) >= first
            for pod in self.scene.pods(one)
        )


def _is_saved(raw: Raw) -> bool:
    return ANNOTATION_REPLICAS in (raw["metadata"].get("annotations") or {})


class Members(Story):
    """A StatefulSet `db` of some members on three on-demand and two spot nodes."""

    judged_by: ClassVar[type[Judge]] = MembersJudge
    on_demand_nodes: ClassVar[int] = 3
    judge: MembersJudge

    def __init__(
        self,
        title: str,
        replicas: int = 5,
        *,
        ordered: bool = False,
        local_volumes: bool = False,
        tolerant: bool = False,
        longest_s: int = 30,
        seed: int = 0,
        lag_s: float = 0.02,
    ) -> None:
        kind = "OrderedReady" if ordered else "Parallel"
        raw = manifest(
            replicas, ordered=ordered, local_volumes=local_volumes, longest_s=longest_s, mode="twins"
        )
        if tolerant:
            raw["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
        super().__init__(
            title,
            replicas,
            workload=raw,
            kind=STATEFUL_SETS,
            spot_nodes=2,
            header=f"{kind}; a pod starts in {START_S} s and stops in {STOP_S} s",
            timing=TIMING,
            seed=seed,
            lag_s=lag_s,
        )
        self._spot = 0

    # --- what a test says ---------------------------------------------------------------------------

    def restart(self) -> None:
        """Leave out what was told so far."""
        self.lines = [*self.lines[:3], f"{self.clock}  split since long: {self.scene}"]
        self.run(self._at_once(self.judge.begin))

    def scale_split(self, replicas: int) -> None:
        """Run `kubectl scale split`."""
        ref = Ref(SPLITS, "shop", "db-sts")
        scaled = self.changed(lambda raw: raw["spec"].update(replicas=replicas), ref)
        self.happens(f"somebody scales the Split to {replicas}", scaled)

    def set_back(self, who: str) -> None:
        """Have someone apply a manifest with the replicas of old."""
        count = self.scene.replicas

        def applied() -> None:
            raw = self.scene.source
            self.objects.update(self.ref, {**raw, "spec": {**raw["spec"], "replicas": count}}, who)

        self.happens(f"{who} sets the source back to {count}", applied)

    def replace(self, replicas: int) -> None:
        """Run `kubectl replace` with a manifest that knows nothing of splitter."""

        def change(raw: Raw) -> None:
            raw["metadata"]["labels"] = {"app": "db"}
            raw["metadata"].pop("annotations", None)
            raw["spec"]["replicas"] = replicas

        self.happens(f"db is replaced, with {replicas} replicas", self.changed(change))

    def partition(self, number: int) -> None:
        """Set the partition of the source's updates."""
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}
        partitioned = self.changed(lambda raw: raw["spec"].update(updateStrategy=strategy))
        self.happens(f"the partition is {number}", partitioned)

    def delete_twin(self, pool: Pool) -> None:
        """Delete a twin: its pods go with it."""
        ref = self.ref._replace(name=f"db-{pool.value}")
        self.happens(f"{ref.name} is deleted", lambda: self.objects.delete(ref))

    def unannotate(self) -> None:
        """Run `kubectl annotate statefulset db splitter.io/replicas-`."""
        removed = self.changed(lambda raw: raw["metadata"]["annotations"].pop(ANNOTATION_REPLICAS))
        self.happens("somebody removes the annotation with N", removed)

    def notice_under(self, number: int) -> None:
        """Announce that the node of one member goes."""
        self.notice(self.node_of(number))

    def silence_under(self, *numbers: int) -> None:
        """Let the nodes of members say nothing any more, for ever."""
        self.silence(*dict.fromkeys(map(self.node_of, numbers)))

    def vanish_under(self, number: int) -> None:
        """Take the node of one member away, without a sign before."""
        self.vanish(self.node_of(number))

    def speak(self) -> None:
        """Let all nodes speak again."""
        silent = sorted(self.cluster.machines.silent)

        def spoken() -> None:
            for name in silent:
                self.cluster.speak(name)

        self.happens(f"{' and '.join(silent)} speak again", spoken)

    def ends_take(self, seconds: float) -> None:
        """Have members need so long to end."""
        self.cluster.kubelets.timing = replace(TIMING, end_s=seconds)

    def drain_under(self, number: int, stop_s: int) -> None:
        """Drain the node of one member, which needs so long to end."""
        node = self.node_of(number)
        self.ends_take(stop_s)
        self.happens(f"{node} is cordoned", self.cordon(node))
        self.evict(node)

    def crash(self, number: int) -> None:
        """Let a member of on-demand fail its probe, however often it is made again."""
        name = f"db-on-demand-{number}"

        def fails(raw: Raw) -> None:
            self.cluster.machines.ill.add(raw["metadata"]["uid"])

        def made(event: Event) -> None:
            if event.ref.name == name and event.old is None:
                fails(event.new)

        def crashes() -> None:
            fails(self.objects.get(Ref(PODS, "shop", name)))
            self.objects.follow(PODS, made)
            self.cluster.kubelets.look_at()

        self.happens(f"{name} crashes", crashes)

    def notice_spot(self) -> None:
        """Announce that all spot nodes go."""
        self.notice(*self.scene.spot_nodes())

    def vanish_spot(self) -> None:
        """Take all spot nodes away."""
        self.vanish(*self.scene.spot_nodes())

    def return_spot(self) -> None:
        """Bring two spot nodes."""
        self._spot += 1
        self.add_spot(f"spot-new-{2 * self._spot - 1}", f"spot-new-{2 * self._spot}")

    # --- what a test asks ---------------------------------------------------------------------------

    def on_gone_nodes(self) -> list[Raw]:
        """Return the members whose nodes are gone."""
        return [pod for pod in self.scene.pods() if pod["spec"].get("nodeName") in self.judge.missed]

    @property
    def least(self) -> int:
        """The fewest members that served at any moment."""
        return self.judge.least_serving

    @property
    def least_majority(self) -> int:
        """How many more there were at least on on-demand than on spot."""
        return self.judge.least_majority

    @property
    def most(self) -> int:
        """The most that were on nodes at any moment."""
        return self.judge.most

    def node_of(self, number: int) -> str:
        """Return the node of a member."""
        pods = self.scene.pods()
        one = next(pod for pod in pods if pod["metadata"]["name"].endswith(f"-{number}"))
        return str(one["spec"]["nodeName"])

    def ready(self) -> dict[str, int]:
        """Count the available members by where they are: source, on-demand, spot."""

        def counted() -> dict[str, int]:
            owners = {"source": self.scene.source} | {
                pool.value: raw for pool, raw in self.scene.twins.items()
            }
            counts = {name: sum(map(self.scene.stays, self.scene.pods(raw))) for name, raw in owners.items()}
            return {name: count for name, count in counts.items() if count}

        return self.run(self._at_once(counted))

    def state(self) -> tuple[str, str]:
        """Return state and reason of the Split."""
        return str(self.scene.status.get("state")), self.reason()

    def unrest(self) -> list[str]:
        """Name what keeps it from rest: split as its policy says, or its user's own again."""
        conflict = bool(self.scene.status.get("conflict"))
        if LABEL_SPLIT in self.scene.source["metadata"]["labels"] and not conflict:
            wanted = self.scene.replicas
            shown = (self.scene.split or {}).get("spec", {}).get("replicas")
            lines = self.unsettled(min(wanted, wanted // 2 + 1))
            lines += [] if shown == wanted else [f"the Split shows {shown}"]
            own = self.scene.source["spec"]["replicas"]
            return [*lines, f"the source is at {own}"] if own else lines
        left = [one for one in self.traces() if one != "Split" or not conflict]
        return left + [f"{self.available()} available"] * (self.available() != self.scene.replicas)


def split(title: str, replicas: int = 5, *, local_volumes: bool = False, longest_s: int = 30) -> Members:
    """Return a story of a StatefulSet that is already split, told from there on."""
    story = Members(title, replicas, local_volumes=local_volumes, longest_s=longest_s)
    story.label()
    story.wait(600)
    story.restart()
    return story
