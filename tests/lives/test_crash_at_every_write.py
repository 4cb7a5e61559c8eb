"""The controller dies at its writes, again and again: what it promises holds all the same.

A gateway between the controller and the API server (`gateway.py`) carries a write out and keeps its answer
back, and the controller is killed: as the cluster sees it, it died right after that write. The pods are
recorded all the time.
"""

import copy
import random
from collections.abc import Callable
from dataclasses import replace

from e2e.support.mortal import Dying, Life, Mortal, every
from lab.fixtures.gateway import Write
from lab.fixtures.shop import POOL, JsonObject, Shop, Snapshot, Watched
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Notice
from lab.sandbox.recorder import Recorder

REPLICAS, SURGE = 4, 1
ASKED = {"splitter.io/on-demand-base": "2"}
# While N jumps. Four replicas of at most ten change with each jump, so on-demand has its two all the time.
FEWEST, MOST, RANDOM_SURGE = 6, 10, 2
JUMPS, JUMP_EVERY_S = 20, 1.0
A_THIRD = 0.3


def is_split(shop: Shop, on_demand: int, spot: int) -> bool:
    """Whether the pods stand as said, all ready, none beside, and the twins ask for just that."""
    shape, wanted = shop.shape(), (on_demand, spot, on_demand + spot)
    stands = shop.twins() == (on_demand, spot) and (shape.on_demand, shape.spot, shape.total) == wanted
    return stands and shop.is_handed_over()


def is_given_back(shop: Shop, replicas: int) -> bool:
    """Whether the Deployment runs its own pods, and nothing that splitter made or wrote is left."""
    source = shop.deployment()
    status = source["status"]
    return (
        shop.split() is None
        and shop.deployments() == {"web"}
        and not shop.leftovers()
        and not any(marks(raw) for raw in (source, *shop.replica_sets(), *shop.pods()))
        and status.get("updatedReplicas") == status.get("availableReplicas") == replicas
        and len(shop.pods()) == replicas
    )


def marks(raw: JsonObject) -> list[str]:
    """Return the labels and annotations of splitter's on an object, those left out that its user wrote."""
    metadata = raw["metadata"]
    keys = [*metadata.get("labels", {}), *metadata.get("annotations", {})]
    return [key for key in keys if key.startswith("splitter.io/") and key not in ASKED]


def with_image(result: Snapshot, image: str) -> Snapshot:
    """Return a Deployment's `Snapshot` after `kubectl set image`."""
    spec = copy.deepcopy(result.spec)
    spec["template"]["spec"]["containers"][0]["image"] = image
    return replace(result, spec=spec, managers=result.managers | {"kubectl-set"})


def surged_together(recorder: Recorder, replicas: int, since: Instant) -> bool:
    """Whether both twins, of so many replicas each, ever had more pods than that at the same moment."""
    both = [
        recorder.timeline(labels={"app": "web", POOL: pool}).total_without_terminating
        for pool in ("on-demand", "spot")
    ]
    moments = [Instant(time_s, 0) for steps in both for time_s in steps.times if time_s >= since.monotonic_s]
    return any(all(steps.at(moment) > replicas for steps in both) for moment in moments)


def deletes_pod(write: Write) -> bool:
    """Whether a write deletes a pod."""
    return write.method == "DELETE" and write.kind == "pods"


class Jumping:
    """Scales `web` to another N once a second, as an autoscaler gone mad would."""

    def __init__(self, shop: Shop, dice: random.Random) -> None:
        self._shop, self._dice = shop, dice
        self._began, self._done = Instant.now().monotonic_s, 0
        self.replicas = FEWEST

    def is_over(self) -> bool:
        """Jump if it is time, and return whether that was the last time."""
        if Instant.now().monotonic_s >= self._began + self._done * JUMP_EVERY_S:
            self._done += 1
            self.replicas = self._dice.choice([n for n in range(FEWEST, MOST + 1) if n != self.replicas])
            path = f"/apis/apps/v1/namespaces/{self._shop.namespace}/deployments/web"
            patch = {"spec": {"replicas": self.replicas}}
            self._shop.sandbox.api.patch(path, patch, field_manager="autoscaler")
        return self._done == JUMPS


class TestEveryWrite:
    def test_of_a_whole_life(self, mortal: Mortal) -> None:
        """Killed after each single write of on-boarding, image change and off-boarding, it completes them.

        There are N available pods at every moment, never more than N + S, and in the end the Deployment
        is its user's again as it was, but for the image. In the image change one twin rolls at a time,
        and one pod more is excused: as in any rollout, the Deployment controller lowers the old ReplicaSet
        and raises the new one, and for a millisecond the new pod may be there before the old one goes.
        """
        shop = mortal.shop
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        before = shop.snapshot()
        with shop.record() as recorder:
            watched = Watched(recorder, {"app": "web"})
            mortal.dies_at(every)
            lives = Dying(mortal, watched, REPLICAS)

            def is_whole(image: str) -> bool:
                return is_split(shop, on_demand=2, spot=2) and set(shop.images()) == {image}

            def change_image() -> None:
                shop.set_image("web:2")

            life = lives("on-boarding", shop.label, lambda: is_whole("web:1"), least=10)
            assert life.highest <= REPLICAS + SURGE, life.tell()
            # A write for each twin; what is reported of it may come later, and so not at all.
            life = lives("image change", change_image, lambda: is_whole("web:2"), least=2)
            assert {"web-on-demand", "web-spot"} <= {write.name for write in life.writes}, life.tell()
            assert life.highest <= REPLICAS + SURGE + 1, life.tell()
            assert not surged_together(recorder, 2, life.since), life.tell()
            life = lives("off-boarding", shop.unlabel, lambda: is_given_back(shop, REPLICAS), least=10)
            assert life.highest <= REPLICAS + SURGE, life.tell()
        assert shop.snapshot() == with_image(before, "web:2")
        assert set(shop.images()) == {"web:2"}

    def test_of_an_emergency(self, mortal: Mortal, fleet: Fleet) -> None:
        """Killed after each single write of a spot notice, the loss and the return, it covers and returns.

        N pods are available all the time. Those on the node that goes are excused from the upper bound
        (promise 2: they do not take the place of their replacements), so the others are counted: N + S.
        """
        shop = mortal.shop
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        mortal.until(lambda: is_split(shop, on_demand=2, spot=2), "the split")
        doomed = next(node for node in shop.nodes() if node.startswith("spot"))
        with shop.record() as recorder:
            mortal.dies_at(every)  # first: a status of the split may still be on its way
            life = Life("notice, loss and return", mortal, Watched(recorder, {"app": "web"}))
            fleet.notice(doomed, Notice.TAINT)
            try:
                mortal.until(lambda: shop.available_off(doomed) >= REPLICAS, f"cover for {doomed}")
                mortal.until(lambda: doomed not in shop.nodes(), f"{doomed} to be left")
                fleet.kill(doomed)
                mortal.until(lambda: is_split(shop, on_demand=2, spot=2), "the return to spot")
            finally:
                story = life.tell()
            staying = recorder.timeline(labels={"app": "web"}, where=lambda pod: pod.node != doomed)
        assert life.died_each_time, story
        assert life.deaths >= 3, story
        assert life.lowest >= REPLICAS, story
        assert staying.highest_total(with_terminating=False) <= REPLICAS + SURGE, story

    def test_of_a_node_that_vanished_while_it_was_dead(self, mortal: Mortal, fleet: Fleet) -> None:
        """Started after a spot node has vanished, it deletes the pods left of it, killed at each write.

        Otherwise Kubernetes' garbage collection would, a minute later.
        """
        shop = mortal.shop
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        shop.label()
        mortal.until(lambda: is_split(shop, on_demand=2, spot=2), "the split")
        lost = next(node for node in shop.nodes() if node.startswith("spot"))
        with shop.watch() as watched:
            mortal.controller.kill()
            fleet.kill(lost)
            mortal.dies_at(every)
            # Not before: a status of the split may still be on its way, and is written without a death.
            life = Life("a node that vanished", mortal, watched)
            mortal.controller.start()
            try:
                mortal.until(lambda: any(map(deletes_pod, life.writes)), "the pods to be deleted", 30)
                mortal.until(lambda: is_split(shop, on_demand=2, spot=2), "the return to spot")
            finally:
                story = life.tell()
        assert life.died_each_time, story


class TestWhileReplicasJump:
    def test_at_random_writes(self, mortal: Mortal) -> None:
        """Killed at 30 % of its writes while N jumps between 6 and 10, it keeps 6 available and 12 at most.

        *At least 6.* With S >= 1 no write lowers anything below the N that the reconcile saw (F = N), and N
        is never under 6; the resourceVersion it carries refuses one that was computed from older counts.

        *At most 10 + 2.* A write raises something only within N + S of the N that the reconcile saw, less all
        that any holder has in spec, in status or as pods; N is never over 10. A jump excuses that this N
        is already an old one: just after 10 became 6 there may be 12 pods of 6 + 2 allowed ones. It never
        excuses more than the largest N allows, since what is there is counted before anything is added.
        """
        shop = mortal.shop
        shop.deploy(replicas=FEWEST, surge=RANDOM_SURGE, unavailable=2, annotations=ASKED)
        before = shop.snapshot()
        dice = random.Random(2026)
        deaths = random.Random(11)
        with shop.watch() as watched:
            mortal.dies_at(lambda _: deaths.random() < A_THIRD)

            def lives(name: str, act: Callable[[], object], reached: Callable[[int], bool]) -> int:
                life = Life(name, mortal, watched)
                act()
                jumping = Jumping(shop, dice)
                try:
                    mortal.until(jumping.is_over, "the last jump")
                    replicas = jumping.replicas
                    mortal.until(lambda: reached(replicas), f"the end of {name}")
                finally:
                    story = life.tell()
                assert len(life.writes) > life.deaths >= 3, story
                assert life.lowest >= FEWEST, story
                assert life.highest <= MOST + RANDOM_SURGE, story
                return replicas

            def is_divided(replicas: int) -> bool:
                return is_split(shop, on_demand=2, spot=replicas - 2)

            lives("jumps from on-boarding on", shop.label, is_divided)
            last = lives("jumps from off-boarding on", shop.unlabel, lambda n: is_given_back(shop, n))
        after = shop.snapshot()
        assert after.spec == {**before.spec, "replicas": last}
        assert (after.labels, after.annotations) == (before.labels, before.annotations)
