"""Random lives of a StatefulSet that is split into twins: it is scaled, rolled, lost, edited in any order.

The judge of `members` looks at each write, and at the end all that was wrong is mended: then rest is reached.
The same seed gives the same life.
"""

from collections.abc import Callable, Iterable
from random import Random

from stories.members import STOP_S, Members
from stories.words import images
from world.cluster import POOL
from world.kinds import NODES, PODS, SPLITS, Ref

GRACE_S = 3600  # terminationGracePeriodSeconds: no member takes longer
SETTLED_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps
PAUSES_S = (0.05, 0.3, 1, 5, 30, 200)


class Life:
    """One life; `run` plays it."""

    def __init__(self, seed: int) -> None:
        dice = self.dice = Random(seed)
        self.happened: list[str] = []
        self.story = Members(
            f"life {seed}",
            dice.randint(0, 7),
            ordered=dice.random() < 0.5,
            tolerant=dice.random() < 0.2,
            longest_s=GRACE_S,
            seed=seed,
            lag_s=dice.choice([0.02, 0.02, 0.2, 1.0]),
        )
        self._nodes = 0
        self._images = 1

    def run(self, events: int = 14) -> Members:
        """Live, then come to rest. Raises AssertionError with the last lines."""
        try:
            self.story.label()
            for _ in range(events):
                self._wait(self.dice.choice(PAUSES_S))
                name, act = self.dice.choice(self._events())
                self.happened.append(name)
                act()
            self._leave_alone()
        except AssertionError as error:
            last = "\n".join(self.story.lines[-40:])
            raise AssertionError(f"{self.story.lines[:2]} {self.happened}\n{last}\n{error}") from error
        return self.story

    def _wait(self, seconds: float) -> None:
        self.story.wait(seconds)
        assert not self.story.judge.broken, self.story.judge.broken[0]

    def _events(self) -> list[tuple[str, Callable[[], object]]]:
        """Return what may happen now."""
        story, dice = self.story, self.dice
        nodes = sorted(name for _, name in story.objects.by_kind[NODES])
        spot = story.scene.spot_nodes()
        doomed = [name for name in nodes if name in story.scene.doomed]
        silent = bool(story.cluster.machines.silent)
        node = dice.choice(nodes or [""])
        is_labelled = "splitter.io/split" in story.scene.source["metadata"]["labels"]
        events: list[tuple[str, Callable[[], object]]] = [
            ("scaled", lambda: story.scale(dice.randint(0, 7))),
            ("set back by git", lambda: story.set_back("argocd-controller")),
            ("unlabelled", story.unlabel) if is_labelled else ("labelled", lambda: story.label(mode="twins")),
            ("replaced", lambda: story.replace(dice.randint(1, 5))),
            ("image", lambda: self._set_image("")),
            ("broken image", lambda: self._set_image("-broken")),
            ("partition", lambda: story.partition(dice.randint(0, 7))),
            ("more spot", lambda: self._add_node("spot")),
            ("more on-demand", lambda: self._add_node("on-demand")),
            ("crash", self._crash),
            ("a quota", lambda: story.limit_pods(story.scene.replicas + dice.choice([0, 1, 99]))),
            ("members end slowly", lambda: story.ends_take(dice.choice([STOP_S, 60, 3600]))),
            *((f"{pool} deleted", lambda pool=pool: story.delete_twin(pool)) for pool in story.scene.twins),
        ]
        if story.scene.split is not None:
            events += [
                ("Split scaled", lambda: story.scale_split(dice.randint(0, 7))),
                ("Split deleted", lambda: story.happens("the Split is deleted", self._delete_split)),
            ]
        if node and node not in story.cluster.machines.silent:
            events += [("silent", lambda: story.silence(node)), ("notice", lambda: story.notice(node))]
        if node:
            events.append(("gone", lambda: story.vanish(node)))
        if spot:
            events.append(("all spot gone", lambda: story.vanish(*spot)))
        if doomed:
            events += [
                ("drained", lambda: story.evict(*doomed)),
                ("notices withdrawn", lambda: self._withdraw(doomed)),
            ]
        return [*events, ("all speak again", story.speak)] if silent else events

    def _crash(self) -> None:
        self.story.stop()
        self.story.start()

    def _delete_split(self) -> None:
        if self.story.scene.split is not None:
            self.story.objects.delete(Ref(SPLITS, "shop", "db-sts"))

    def _withdraw(self, names: Iterable[str]) -> None:
        def withdrawn() -> None:
            self.story.scene.doomed.difference_update(names)
            for name in names:
                self.story.cluster.taint(name, [])

        self.story.happens(f"the notices of {' and '.join(names)} are withdrawn", withdrawn)

    def _add_node(self, pool: str) -> None:
        self._nodes += 1
        name = f"{pool}-more-{self._nodes}"
        self.story.happens(f"{name} comes", lambda: self.story.cluster.add_node(name, {POOL: pool}))

    def _set_image(self, word: str) -> None:
        self._images += 1
        self.story.set_image(f"db:{self._images}{word}")

    # --- the end ------------------------------------------------------------------------------------

    def _leave_alone(self) -> None:
        story = self.story
        story.limit_pods(999)
        story.ends_take(STOP_S)
        gone = sorted({*story.scene.doomed, *story.cluster.machines.silent} & {*self._node_names()})
        if gone:
            story.vanish(*gone)
        for pool in ("on-demand", "on-demand", "spot", "spot"):
            self._add_node(pool)
        if "broken" in images(story.scene.source["spec"]):
            self._set_image("")
        story.partition(0)
        # A StatefulSet that is OrderedReady waits for a broken pod, whatever its template is by now: people
        # delete it (kubernetes#67250).
        story.happens("broken pods are deleted", self._delete_broken)
        for _ in range(SETTLED_WITHIN_S // 600):
            self._wait(600)
            if not story.unrest():
                return
            if "Scale the source" in story.message():
                story.scale(3)  # its user does what the Split says
        raise AssertionError(f"no rest: {story.unrest()}")

    def _delete_broken(self) -> None:
        for pod in self.story.scene.pods():
            if "broken" in images(pod["spec"]):
                self.story.objects.delete(Ref(PODS, "shop", pod["metadata"]["name"]))

    def _node_names(self) -> list[str]:
        return [name for _, name in self.story.objects.by_kind[NODES]]
