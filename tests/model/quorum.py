"""Explores a small split StatefulSet to its end, breadth first: no promise broken, rest always within reach.

As `explore` for Deployments: every order in which splitter, the StatefulSet controller, pods and people may
act, with a crash after any write. Time stands still; nodes stay (the random lives of stories lose them).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from model.quorum_process import Splitter, unsettled
from model.quorum_world import (
    BrokenPromiseError,
    Member,
    Quorum,
    StatefulSet,
    is_startable,
    schedule,
    sync,
    unshared,
)
from splitter.core.actions import Action
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.labels_annotations.label import parse_ownership_mark
from splitter.core.model import Pool
from stories.cluster import LostRaceError

NOW = 10_000


@dataclass(frozen=True)
class Config:
    """A StatefulSet, and what may happen to it in one run."""

    replicas: int
    ordered: bool = False
    faults: tuple[str, ...] = ()
    crashes: int = 0
    start: str = "labelled"
    """`labelled`: just now; `split`: long ago; `given-back`: as that, and unlabelled just now."""

    def __str__(self) -> str:
        """Return what a report calls it."""
        kind = "OrderedReady" if self.ordered else "Parallel"
        crash = " crash" if self.crashes else ""
        return f"N{self.replicas} {kind} {self.start}: {'+'.join(self.faults) or 'quiet'}{crash}"


class World:
    """Everything that decides what may happen next."""

    def __init__(self, quorum: Quorum, faults: tuple[str, ...], crashes: int) -> None:
        self.quorum = quorum
        self.splitter = Splitter(quorum)
        self.faults = faults
        self.crashes = crashes

    def copied(self) -> "World":
        """Return a copy that shares nothing that changes."""
        other = World(unshared(self.quorum), self.faults, self.crashes)
        mine, its = self.splitter, other.splitter
        its.pending, its.last, its.woken = deque(mine.pending), mine.last, mine.woken
        its.seen = unshared(mine.seen) if mine.pending else its.quorum
        return other


Move = tuple[str, Callable[[World], object], bool]
"""Its name, what it does, and whether it happens without anybody's fault."""


def moves(world: World) -> Iterator[Move]:
    """Yield everything that may happen now."""
    quorum, splitter = world.quorum, world.splitter
    if splitter.pending:
        yield f"splitter writes {type(splitter.pending[0]).__name__}", lambda w: w.splitter.write_next(), True
        if world.crashes:
            yield "splitter crashes", _crash, False
    elif splitter.concerns():
        yield "splitter looks", lambda w: w.splitter.begin(), True
    yield "controller of db", _controller(None), True
    for pool in quorum.twins:
        yield f"controller of {pool}", _controller(pool), True
    for uid in _classes(pod for pod in quorum.members.values() if is_startable(quorum, pod)):
        yield "a pod is ready", _ready(uid), True
    for uid in _classes(pod for pod in quorum.members.values() if not pod.active):
        yield "a pod ends", _ends(uid), True
    for kind in world.faults:
        for name, act in _deeds(quorum, kind):
            yield name, _counted(act), False


def _crash(world: World) -> None:
    world.crashes -= 1
    world.splitter.crash()


def _controller(pool: Pool | None) -> Callable[[World], object]:
    def act(world: World) -> bool:
        owner = world.quorum.source if pool is None else world.quorum.twins[pool]
        changed = sync(world.quorum, owner)
        schedule(world.quorum)
        return changed

    return act


def _ready(uid: str) -> Callable[[World], object]:
    return lambda world: setattr(world.quorum.members[uid], "ready_since", 0)


def _ends(uid: str) -> Callable[[World], object]:
    return lambda world: world.quorum.members.pop(uid)


def _counted(act: Callable[[Quorum], object]) -> Callable[[World], object]:
    def happen(world: World) -> None:
        act(world.quorum)
        world.faults, world.splitter.woken = (), True

    return happen


def _deeds(quorum: Quorum, kind: str) -> list[tuple[str, Callable[[Quorum], object]]]:
    """Return what people may do of one kind."""
    source, split = quorum.source, quorum.split
    marks = {"unmarked": ANNOTATION_TAKEN_OVER, "n-removed": ANNOTATION_REPLICAS}
    shown = split is not None and split.replicas is not None
    deeds: dict[str, list[Callable[[Quorum], object]]] = {
        "scaled": [partial(Quorum.scale, replicas=n) for n in range(4)],
        "split-scaled": [partial(Quorum.scale_split, replicas=n) for n in range(4) if shown],
        "unlabelled": [partial(Quorum.label, on=False)] if LABEL_SPLIT in source.labels else [],
        "labelled": [] if LABEL_SPLIT in source.labels else [partial(Quorum.label, on=True)],
        "replaced": [partial(Quorum.replaced, replicas=2)],
        "image": [_new_image] if source.template == "v1" else [],
        "twin-deleted": [partial(Quorum.delete_twin, pool=pool) for pool in quorum.twins],
        "split-deleted": [_delete_split] if split is not None else [],
        **{
            name: [partial(_without, annotation=annotation)] if annotation in source.annotations else []
            for name, annotation in marks.items()
        },
    }
    return [(f"{kind} {number}", act) for number, act in enumerate(deeds[kind])]


def _new_image(quorum: Quorum) -> None:
    quorum.change(quorum.source, template="v2")


def _delete_split(quorum: Quorum) -> None:
    quorum.split = None


def _without(quorum: Quorum, annotation: str) -> None:
    quorum.source.annotations.pop(annotation)
    quorum.source.version = quorum.version()


# When two worlds are the same.


def key(world: World) -> tuple[object, ...]:
    """Return what makes two worlds one: names by chance and numbers of versions left out."""
    splitter = world.splitter
    pending: tuple[object, ...] = ()
    if splitter.pending and splitter.last is not None:
        observed = splitter.last[0]
        saw = observed.source.replicas if observed.source else None
        split = observed.split.uid if observed.split else None
        same_split = world.quorum.split is not None and split == world.quorum.split.uid
        said = tuple(_form_of(action, world.quorum) for action in splitter.pending)
        pending = (said, saw, same_split, _form(splitter.seen))
    return (_form(world.quorum), pending, world.faults, world.crashes, splitter.woken)


def _form(quorum: Quorum) -> tuple[object, ...]:
    split = quorum.split
    status = split.status if split else {}
    reported = (
        status.get("state"),
        status.get("conflict"),
        status.get("conflictingWriter"),
        len(_write_conflicts(status)),
    )
    return (
        tuple(_form_of_set(quorum, owner) for owner in sorted(quorum.sets, key=lambda one: one.name)),
        (split.takes_over, split.replicas, reported) if split else None,
    )


def _write_conflicts(status: dict[str, object]) -> list[object]:
    write_conflicts = status.get("writeConflicts", [])
    return write_conflicts if isinstance(write_conflicts, list) else []


def _form_of_set(quorum: Quorum, owner: StatefulSet) -> tuple[object, ...]:
    mark = parse_ownership_mark(owner.annotations.get(ANNOTATION_TAKEN_OVER))
    pods = tuple(sorted(map(_form_of_pod, quorum.of(owner)), key=str))
    return (
        owner.name,
        owner.replicas,
        owner.template,
        owner.rendered_hash,
        owner.observed == owner.generation,
        owner.status_replicas,
        owner.status_available,
        LABEL_SPLIT in owner.labels,
        mark is not None,
        owner.annotations.get(ANNOTATION_REPLICAS),
        owner.writer,
        pods,
    )


def _form_of_pod(pod: Member) -> tuple[object, ...]:
    return (pod.ordinal, pod.template, pod.node is not None, pod.ready_since is not None, pod.active)


def _form_of(action: Action, quorum: Quorum) -> tuple[object, ...]:
    versions = {str(owner.version) for owner in quorum.sets}
    uids = {owner.uid for owner in quorum.sets}
    values = []
    for name in action.__dataclass_fields__:
        value = getattr(action, name)
        if name == "resource_version":
            value = value if value is None else value in versions
        elif name == "uid":
            value = value in uids
        elif name == "value":
            value = value is not None
        values.append(value)
    return (type(action).__name__, *values)


def _classes(pods: Iterable[Member]) -> Iterator[str]:
    """Yield one of each kind of pods: the others would do the same."""
    collected: set[object] = set()
    for pod in pods:
        form = (pod.owner, _form_of_pod(pod))
        if form not in collected:
            collected.add(form)
            yield pod.uid


# The exploration.


@dataclass
class Explored:
    """What an exploration came to."""

    states: int = 0
    steady: int = 0
    complete: bool = True
    violations: list[str] = field(default_factory=list)


def explore(config: Config, states_max: int = 10**9) -> Explored:
    """Visit every state that any order of events leads to, or so many."""
    return _Explorer(config, states_max).run()


class _Explorer:
    """One exploration; states are numbered as they are found."""

    def __init__(self, config: Config, states_max: int) -> None:
        self.explored = Explored()
        self._states_max = states_max
        self._numbers: dict[tuple[object, ...], int] = {}
        self._parents: list[tuple[int, str]] = []
        self._quiet_before: list[list[int]] = []
        self._steady: list[int] = []
        self._queue: deque[tuple[int, World]] = deque()
        self._add(beginning(config), -1, "start")

    def run(self) -> Explored:
        """Visit everything, then look for states that nothing leads home from."""
        while self._queue:
            if len(self._numbers) >= self._states_max or self.explored.violations:
                self.explored.complete = False
                break
            self._expand(*self._queue.popleft())
        if lost := self._lost():
            why = f"no rest from here, nor from {len(lost) - 1} others"
            self.explored.violations.append(f"{self._trace(lost[0])}\n=> {why}")
        self.explored.states, self.explored.steady = len(self._numbers), len(self._steady)
        return self.explored

    def _expand(self, number: int, world: World) -> None:
        for name, act, quiet in moves(world):
            after = world.copied()
            try:
                act(after)
            except (BrokenPromiseError, LostRaceError) as broken:
                self.explored.violations.append(f"{self._trace(number)}\n{name}\n=> {broken}")
                continue
            there = self._add(after, number, name)
            if quiet and there != number:
                self._quiet_before[there].append(number)

    def _add(self, world: World, parent: int, name: str) -> int:
        form = key(world)
        number = self._numbers.get(form)
        if number is None:
            number = self._numbers[form] = len(self._numbers)
            self._parents.append((parent, name))
            self._quiet_before.append([])
            if not world.splitter.pending and not unsettled(world.quorum):
                self._steady.append(number)
            self._queue.append((number, world))
        return number

    def _lost(self) -> list[int]:
        """Return the states from which no quiet way leads to rest; what was not visited counts as rest."""
        home = {*self._steady, *(number for number, _ in self._queue)}
        todo = list(home)
        while todo:
            for before in self._quiet_before[todo.pop()]:
                if before not in home:
                    home.add(before)
                    todo.append(before)
        return [number for number in range(len(self._numbers)) if number not in home]

    def _trace(self, number: int) -> str:
        names = []
        while number >= 0:
            number, name = self._parents[number]
            names.append(name)
        return "\n".join(reversed(names))


def beginning(config: Config) -> World:
    """Return where an exploration begins."""
    quorum = Quorum(config.replicas, ordered=config.ordered)
    quorum.now = NOW
    for name, spot in (("od-1", False), ("spot-1", True)):
        quorum.add_node(name, spot=spot)
    world = World(quorum, (), 0)
    _settle(world)
    quorum.label(on=True)
    if config.start != "labelled":
        _settle(world)
    if config.start == "given-back":
        quorum.label(on=False)
    world.faults, world.crashes = config.faults, config.crashes
    return world


def _settle(world: World) -> None:
    """Let everybody act in turn until nothing changes."""
    for _ in range(1_000):
        before = key(world)
        for name in [name for name, _, quiet in moves(world) if quiet]:
            act = next((act for other, act, _ in moves(world) if other == name), None)
            if act is not None:
                act(world)
        if key(world) == before:
            return
    raise BrokenPromiseError("never settles")
