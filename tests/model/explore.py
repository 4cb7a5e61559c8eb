"""Explores a small world to its end, breadth first: no promise broken, rest always within reach.

`Explorer(config).run()` visits every state that any order of events leads to (or as many as it may),
judges each step by the stories' promises, and afterwards looks from which states a steady state can be
reached when the world goes quiet. Breadth first makes every trace it tells a shortest one.
"""

import re
import sys
import time
from array import array
from collections import deque
from dataclasses import dataclass, field, replace

from model.cluster import LostRaceError
from model.moves import TIME_MOVES, Move, concerns, labelled, moves, planned, settle
from model.promises import traces, unsettled
from model.world import MAJORITY, POLICY, Config, World, key, normalise
from splitter.core.division import base_replicas
from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.labels_annotations.policy import parse_policy
from stories.reported import BrokenPromiseError

QUIET_STEPS_MAX = 3_000
VIOLATIONS_MAX = 10
FRONTIER_RUNS = 50


@dataclass
class Explored:
    """What an exploration came to."""

    config: Config
    states: int = 0
    steps: int = 0
    seconds: float = 0.0
    complete: bool = True
    steady: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return a line of the report."""
        extent = "complete" if self.complete else "bounded"
        return (
            f"{self.config}: {self.states} states, {self.steps} steps, {self.steady} steady, {extent},"
            f" {self.seconds:.0f} s, {len(self.violations)} violations"
        )


def next_world(world: World, move: Move, config: Config) -> World:
    """Return the world after a move, in normal form."""
    after = world.copied()
    move.act(after)
    normalise(after, config)
    settle(after)
    return after


def unrest(world: World) -> list[str]:
    """Name what keeps this world from being at rest."""
    cluster = world.cluster
    wanted = LABEL_SPLIT in cluster.source.labels
    conflict = cluster.split is not None and "conflict" in cluster.split.status
    if wanted and not conflict:
        defaults = MAJORITY if cluster.is_stateful else POLICY
        policy = parse_policy(cluster.source.annotations, defaults, None).policy or defaults
        return unsettled(cluster, base_replicas(cluster.wanted, policy))
    left = traces(cluster)
    return [trace for trace in left if trace != "Split"] if wanted else left


class Explorer:
    """One exploration; states are numbered as they are found."""

    def __init__(self, config: Config, states_max: int = 10**9, seconds_max: float = 1e9) -> None:
        self.config, self.states_max, self.seconds_max = config, states_max, seconds_max
        self.numbers: dict[bytes, int] = {}
        self.parents = array("l")
        self.names: list[str] = []
        self.steady: list[int] = []
        self.quiet_from, self.quiet_to = array("l"), array("l")
        self.queue: deque[tuple[int, World]] = deque()
        self.explored = Explored(config)
        self.heads: set[str] = set()

    def run(self) -> Explored:
        """Visit everything, then look for states that nothing leads home from."""
        began = time.monotonic()
        for world in starts(self.config):
            self._add(world, -1, "start")
        while self.queue:
            late = time.monotonic() - began > self.seconds_max
            if (
                late
                or len(self.numbers) >= self.states_max
                or len(self.explored.violations) >= VIOLATIONS_MAX
            ):
                self.explored.complete = False
                break
            self._expand(*self.queue.popleft())
        home = self._bring_home()
        self.explored.states, self.explored.steady = len(self.numbers), len(self.steady)
        self._check_rest(home)
        self.explored.seconds = time.monotonic() - began
        return self.explored

    def _add(self, world: World, parent: int, name: str) -> int:
        form = key(world)
        number = self.numbers.get(form)
        if number is None:
            number = self.numbers[form] = len(self.numbers)
            self.parents.append(parent)
            self.names.append(sys.intern(name))
            if not world.pending and not unrest(world):
                self.steady.append(number)
            self.queue.append((number, world))
        return number

    def _expand(self, number: int, world: World) -> None:
        idle = not world.pending and world.report is None
        scratch: World | None = None
        for move in moves(world, self.config):
            if move.tries is not None:
                scratch = scratch or world.copied()
                if not move.tries(scratch):
                    self.explored.steps += 1
                    continue
                scratch = None
            after = self._follow(number, world, move)
            if after is not None and after != number and not move.world:
                idle = False
        if idle:
            for move in TIME_MOVES:
                self._follow(number, world, move)
            self._check_alarm(number, world)

    def _check_alarm(self, number: int, world: World) -> None:
        """What time alone lets splitter do, it must have asked to be woken for."""
        if not concerns(world) or planned(world).requeue_after_s is not None:
            return
        for move in TIME_MOVES:
            after = next_world(world, move, self.config)
            alike = sum(pod.active for pod in world.cluster.pods.values())
            if alike == sum(pod.active for pod in after.cluster.pods.values()) and planned(after).actions:
                what = f"splitter sleeps, and would {planned(after).verdict.message}"
                self._violated(number, move.name, what)

    def _follow(self, number: int, world: World, move: Move) -> int | None:
        self.explored.steps += 1
        try:
            after = next_world(world, move, self.config)
        except (BrokenPromiseError, LostRaceError) as broken:
            self._violated(number, move.name, f"{type(broken).__name__}: {broken}")
            return None
        there = self._add(after, number, move.name)
        if move.quiet and there != number:
            self.quiet_from.append(number)
            self.quiet_to.append(there)
        return there

    def _violated(self, number: int, name: str, what: str) -> None:
        head = re.sub(r"[0-9]+", "#", what)
        if head not in self.heads:
            self.heads.add(head)
            self.explored.violations.append("\n".join([*self.trace(number), name, f"=> {what}"]))

    def trace(self, number: int) -> list[str]:
        """Return what led to a state, by one of the shortest ways."""
        names = []
        while number >= 0:
            names.append(self.names[number])
            number = self.parents[number]
        return names[::-1]

    def _bring_home(self) -> bytearray:
        """Return which states a steady one can be reached from, in quiet."""
        count = len(self.numbers)
        before: list[list[int]] = [[] for _ in range(count)]
        for here, there in zip(self.quiet_from, self.quiet_to, strict=True):
            before[there].append(here)
        home = bytearray(count)
        # What was not visited any more counts as home here; `_check_rest` follows some of it.
        todo = [*self.steady, *(number for number, _ in self.queue)]
        for number in todo:
            home[number] = 1
        while todo:
            for here in before[todo.pop()]:
                if not home[here]:
                    home[here] = 1
                    todo.append(here)
        return home

    def _check_rest(self, home: bytearray) -> None:
        lost = [number for number in range(len(home)) if not home[number]]
        if lost:
            self.explored.violations.append(
                "\n".join([*self.trace(lost[0]), f"=> no rest from here, nor from {len(lost) - 1} others"])
            )
        step = max(1, len(self.queue) // FRONTIER_RUNS)
        for number, world in list(self.queue)[::step]:
            walked: list[str] = []
            try:
                why = self.why_no_rest(world, walked)
            except (BrokenPromiseError, LostRaceError) as broken:
                self._violated(number, "\n".join(walked), f"{type(broken).__name__}: {broken}")
                continue
            if why:
                self._violated(number, "left alone", f"no rest: {why}")

    def why_no_rest(self, world: World, walked: list[str] | None = None) -> str:
        """Leave a world alone, have all act in turn, and say why it does not come to rest.

        `walked` gets the names of what was done. Raises BrokenPromiseError, LostRaceError.
        """
        seen: set[bytes] = set()
        config = replace(self.config, faults=())
        while (form := key(world)) not in seen:
            seen.add(form)
            if not world.pending and not unrest(world):
                return ""
            world = self.quiet_round(world, config, walked)
        return "; ".join(unrest(world))

    @staticmethod
    def quiet_round(world: World, config: Config, walked: list[str] | None = None) -> World:
        """Have all act once, in turn; if that changes nothing, let time pass."""
        changed = False
        for name in [move.name for move in moves(world, config)]:
            move = next((one for one in moves(world, config) if one.name == name), None)
            if move is None or not move.quiet or (move.world and not name.endswith("mended")):
                continue
            if walked is not None:
                walked.append(move.name)
            after = next_world(world, move, config)
            changed = changed or key(after) != key(world)
            world = after
        if changed:
            return world
        for move in TIME_MOVES:
            after = next_world(world, move, config)
            if key(after) != key(world):
                if walked is not None:
                    walked.append(move.name)
                return after
        return world


def starts(config: Config) -> list[World]:
    """Return where an exploration begins."""
    world = labelled(config)
    if config.start == "labelled":
        return [world]
    quiet = replace(config, faults=(), crashes=0)
    world = _settled(world, quiet)
    world.crashes, world.faults = config.crashes, ()
    if config.start == "given-back":
        world.cluster.label(on=False)
    return [world]


def _settled(world: World, config: Config) -> World:
    explorer = Explorer(config)
    world.crashes = 0
    for _ in range(QUIET_STEPS_MAX):
        before = key(world)
        world = explorer.quiet_round(world, config)
        if key(world) == before:
            return world
    raise BrokenPromiseError("never settles")
