"""Random lives of a StatefulSet in placement mode: whatever happens to it, in any order and at any pace.

Each write is judged by the story as it is made: no eviction takes the majority or a member that could not be
made again, and no member is ended more than four times within an hour. At the end all that was wrong is
mended: then every member comes to be, ready, where the policy wants it, and none is restarted any more.
"""

from collections.abc import Callable, Iterator
from random import Random

from splitter.core.placeable import FEWEST
from stories.placement import PlacementStory
from world.admission import Request
from world.kinds import NODES, SPLITS, Ref

HOUR_S = 3600
PAUSES_S = (1, 3, 20, 60, 200, 700)


class Life:
    """One life; `run` plays it."""

    def __init__(self, seed: int) -> None:
        dice = self.dice = Random(seed)
        self.happened: list[str] = []
        self.story = PlacementStory(
            f"life {seed}",
            dice.choice([1, 2, 3, 4, 5, 7]),
            ordered=dice.random() < 0.6,
            tolerant=dice.random() < 0.2,
            end_s=dice.choice([3, 3, 30, 120]),
            start_s=dice.choice([20, 20, 90]),
            seed=seed,
        )
        self.forgets = False
        self.story.refuse(self._forget)
        self._spot = 0

    def run(self, events: int = 14) -> PlacementStory:
        """Live, then come to rest. Raises AssertionError with the last lines."""
        try:
            for _ in range(events):
                name, act = self.dice.choice(self._events())
                self.happened.append(name)
                act()
                self._wait(self.dice.choice(PAUSES_S))
            self._heal()
            self._come_to_rest()
        except AssertionError as error:
            last = "\n".join(self.story.lines[-40:])
            raise AssertionError(f"{self.story.lines[:2]} {self.happened}\n{last}\n{error}") from error
        return self.story

    def _wait(self, seconds: float) -> None:
        self.story.wait(seconds)
        assert not self.story.judge.broken, self.story.judge.broken[0]

    def _forget(self, request: Request) -> bool:
        """Have the status of the Split be refused."""
        return self.forgets and (request.ref.kind, request.part) == (SPLITS, "status")

    # --- what happens -------------------------------------------------------------------------------

    def _events(self) -> list[tuple[str, Callable[[], object]]]:
        """Return what may happen now."""
        story, dice = self.story, self.dice
        spot = sorted({*story.scene.spot_nodes(), "spot-a", "spot-b"})
        node = dice.choice(spot)
        live = [name for name in story.scene.spot_nodes() if name not in story.scene.doomed]
        members = sorted(story.judge.members()) or [0]
        member = dice.choice(members)
        there = story.objects.find(Ref(NODES, "", node)) is not None
        always: list[tuple[str, Callable[[], object]]] = [
            (f"{node} is up", lambda: story.nodes_are("up", node)),
            ("another spot node", self._add_spot),
            ("scaled", lambda: story.scale(dice.randint(1, 7))),
            ("scaled to 0 and up", self._scale_to_0),
            ("room on od", lambda: self._has("od", dice.choice([0, 1, 2, 3, 99]))),
            ("rivals", lambda: story.rivals(dice.choice([1, 3]))),
            ("rivals go", story.rivals_go),
            ("min ready", lambda: story.min_ready(dice.choice([0, 30, 300]))),
            ("base", lambda: story.annotate(on_demand_base=dice.choice(["majority", "0", "1", "2", "4"]))),
            ("freeze", lambda: story.annotate(freeze=dice.choice(["true", None]))),
            ("blocked", lambda: story.refused(by_karpenter=True)),
            ("policy gone", lambda: setattr(story.policy, "acts", False)),
            ("policy seen to be gone", story.policy.remove),
            ("policy back", story.policy.install),
            ("od cordoned", lambda: story.nodes_are(dice.choice(["cordoned", "up"]), "od")),
            ("members kept off", lambda: story.keep_off(dice.choice(["od", "spot"]))),
            ("members kept off nothing", story.let_on),
            ("placeholders fail", self._let_fail),
            ("the placeholder fails", lambda: story.happens("it fails", story.fail_placeholder)),
            ("a quota", lambda: story.limit_pods(0)),
            ("a budget", lambda: story.budget(story.scene.replicas)),
            ("no answers", lambda: setattr(story.cluster.api, "answers", dice.random() < 0.5)),
            ("forgets", lambda: setattr(self, "forgets", not self.forgets)),
            ("an image", lambda: story.set_image(f"db:{len(self.happened) + 2}")),
            ("unlabelled", lambda: self._label(on=False)),
            ("labelled", lambda: self._label(on=True)),
        ]
        if member in story.judge.members():
            always += [
                ("ill", lambda: story.ill(member, dice.choice([10, 100, 10_000]))),
                ("ends", lambda: story.member_ends(member)),
            ]
        if not there:
            return always
        on_it = [number for number, name in story.where().items() if name == node]
        return [
            *always,
            *(
                (f"{node} is {how}", lambda how=how: story.nodes_are(how, node))
                for how in ("doomed", "leaving")
            ),
            *((f"{node} is {how}", lambda how=how: story.nodes_are(how, node)) for how in ("silent", "gone")),
            ("cordoned", lambda: story.nodes_are("cordoned", node)),
            ("drained", lambda: self._drain(node, on_it)),
            ("noticed", lambda: story.notice(dice.choice([30, 120, 900]), node)),
            ("all noticed", lambda: story.notice(dice.choice([30, 120, 900]), *(live or [node]))),
            ("upgraded", lambda: self._upgrade(live)),
        ]

    def _add_spot(self) -> None:
        self._spot += 1
        self.story.nodes_are("up", f"spot-new-{self._spot}")

    def _has(self, node: str, pods: int) -> None:
        self.story.happens(f"{node} has room for {pods}", self.story.headroom(**{node: pods}))

    def _scale_to_0(self) -> None:
        self.story.scale(0)
        self.story.wait(self.dice.choice([1, 30]))
        self.story.scale(self.dice.choice([1, 3, 5]))

    def _let_fail(self) -> None:
        self.story.recover_placeholders()
        self.story.fail_placeholders()

    def _drain(self, node: str, members: list[int]) -> None:
        self.story.nodes_are("cordoned", node)
        if members:
            self.story.member_ends(*members)

    def _upgrade(self, live: list[str]) -> None:
        """Have all of the pool be cordoned, and another one come (blue-green)."""
        if live:
            self.story.nodes_are("cordoned", *live)
        self._add_spot()

    def _label(self, *, on: bool) -> None:
        labelled = "splitter.io/split" in self.story.scene.source["metadata"]["labels"]
        if on and not labelled:
            self.story.label()
        elif labelled and not on:
            self.story.unlabel()

    # --- the end ------------------------------------------------------------------------------------

    def _heal(self) -> None:
        story = self.story
        story.refused(by_karpenter=False)
        story.annotate(on_demand_base=None, freeze=None)
        story.cluster.api.answers, self.forgets = True, False
        story.policy.install()
        story.let_on()
        story.recover_placeholders()
        story.rivals_go()
        story.ends_take(3)
        story.min_ready(0)
        story.budget(None)
        story.limit_pods(999)
        self._label(on=True)
        story.cluster.machines.ill.clear()
        for name in story.scene.spot_nodes():
            if name in story.scene.doomed or name in story.cluster.machines.silent:
                story.nodes_are("gone", name)
        story.nodes_are("up", "od")
        self._has("od", 99)
        self._add_spot()
        if not story.scene.replicas:
            story.scale(3)

    def _come_to_rest(self) -> None:
        story = self.story
        for _ in range(26):  # the longest rest before spot is tried again is a day
            self._wait(HOUR_S)
            if not list(self._wrong()):
                break
        ended = len(story.ends)
        self._wait(2 * HOUR_S)
        wrong = list(self._wrong())
        assert not wrong, "; ".join(wrong)
        assert len(story.ends) == ended, "a member is restarted although all is as wanted"

    def _wrong(self) -> Iterator[str]:
        story, replicas = self.story, self.story.scene.replicas
        base = replicas // 2 + 1
        if story.serving != replicas:
            yield f"{story.serving} of {replicas} are ready"
        if set(story.ordinals or ()) != set(range(base)):
            yield f"{story.ordinals} in force"
        if replicas >= FEWEST:
            if not story.is_whole():
                yield f"{story.on_spot()} on spot"
            if story.held():
                yield "room is held for no member"
