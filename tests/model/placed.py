"""A StatefulSet in placement mode in a small world: every order of events, breadth first.

The world is the smallest in which the mover's rules can be broken: members, two spot nodes, on-demand, a
placeholder, the StatefulSet controller, the scheduler, the kubelets and the reconciles of splitter, which may
crash after any write. Time stands still and every soak and back-off is 0, so that nothing is saved by
waiting: all that happens between two hours happens in one, and no member is ended more often than one allows.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from builders import LONG_AGO_S, NOW, ago, pod
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placement.members import Member, Placeholder, PlacementInput
from splitter.core.placement.place import Placed, place
from splitter.core.rebalance import Tuning
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status import RebalanceState, Restart

OD, WAITING = "od", ""
SPOT = ("s0", "s1")
UP, DOOMED, CORDONED, SILENT, GONE, ANEW = "up", "doomed", "cordoned", "silent", "gone", "anew"
LIVE = frozenset({UP, DOOMED, CORDONED})
RESTARTS_AN_HOUR = 2  # fewer than by default, so that the bound is reached soon
TUNING = Tuning(step_interval_s=0.0, fast_s=0.0, settle_s=0.0, restarts_per_hour=RESTARTS_AN_HOUR)


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the StatefulSet."""

    born: Pool
    node: str = WAITING
    ready: bool = False
    ending: bool = False
    stuck: bool = False
    old: bool = False  # of the template before the update
    labelled: bool = True  # the admission policy made it


@dataclass(frozen=True, slots=True)
class Held:
    """The placeholder."""

    pool: Pool
    ordinal: int
    node: str = WAITING
    failed: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """Everything there is."""

    replicas: int
    members: tuple[tuple[int, Pod], ...]
    nodes: tuple[str, str] = (UP, UP)
    in_force: frozenset[int] = frozenset()  # as the Split says
    published: frozenset[int] = frozenset()  # as the admission policy has it, by which pods are born
    yielded: tuple[int, ...] = ()
    held: Held | None = None
    full: bool = False  # on-demand takes no more pods
    faults: int = 0  # still to come
    crashed: bool = False  # by the application: nobody promises a majority any more
    updating: bool = False
    refused: bool = False  # no spot machine can be had, an autoscaler says
    acts: bool = True  # the admission policy does
    lies: bool = False  # on-demand takes a placeholder, and no member
    quota: bool = False  # no pod can be made
    late: int | None = None  # whose eviction a leader sent that leads no more; it may arrive at any time
    ends: tuple[
        tuple[int, bool], ...
    ] = ()  # of this hour, by splitter: the ordinal, and whether it was planned

    def pod(self, ordinal: int) -> Pod | None:
        """Return a member's pod."""
        return dict(self.members).get(ordinal)

    def put(self, ordinal: int, result: Pod | None) -> "World":
        """Return the world with another pod for an ordinal, or none."""
        members = {**dict(self.members), ordinal: result}
        known = tuple(sorted((k, one) for k, one in members.items() if one is not None))
        # An eviction names the pod by its UID: of the next one it ends nothing.
        late = None if result is None and self.late == ordinal else self.late
        return replace(self, members=known, late=late)

    def node_of(self, value: Pod | Held) -> str:
        """Return the state of the node under a pod."""
        return UP if value.node not in SPOT else self.nodes[SPOT.index(value.node)]

    def serves(self, result: Pod | None) -> bool:
        """Whether a member is ready on a node that has not gone."""
        return result is not None and result.ready and not result.ending and self.node_of(result) in LIVE

    @property
    def serving(self) -> int:
        """Return how many members of the range are."""
        return sum(self.serves(self.pod(k)) for k in range(self.replicas))


@dataclass(frozen=True, slots=True)
class Config:
    """One exploration."""

    replicas: int = 3
    faults: int = 2
    kinds: tuple[str, ...] = ("doom", "silence", "take")
    ordered: bool = False
    policy: Policy = Policy(on_demand_base="majority", soak_s=0.0)  # noqa: RUF009 - frozen
    scales: tuple[int, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Whether the ends of an hour are counted: they make many more worlds."""
        return bool(_ANSWERS & set(self.kinds))

    @property
    def is_ours_alone(self) -> bool:
        """Whether only spot fails: then a majority serves at every instant."""
        return set(self.kinds) <= {"doom", "cordon", "silence", "take", "full", "refuse", *_ANSWERS}


# What the cluster may answer to what splitter does: with one of these the ends of an hour are counted.
_ANSWERS = frozenset({"policy", "anew", "lies", "spent", "quota", "late"})
Moves = Iterator[tuple[str, World]]


def start(config: Config) -> World:
    """Return a world at rest."""
    wanted = config.replicas // 2 + 1 if config.policy.on_demand_base == "majority" else 0
    members = []
    for k in range(config.replicas):
        born = Pool.ON_DEMAND if k < wanted else Pool.SPOT
        members.append((k, Pod(born, OD if born is Pool.ON_DEMAND else SPOT[k % 2], ready=True)))
    chosen = frozenset(range(wanted))
    return World(config.replicas, tuple(members), in_force=chosen, published=chosen, faults=config.faults)


def seen(world: World, config: Config) -> PlacementInput:
    """Return what splitter observes."""
    node_status = {
        UP: NodeStatus.SOUND,
        DOOMED: NodeStatus.DOOMED,
        CORDONED: NodeStatus.DOOMED,
        SILENT: NodeStatus.LOST,
        GONE: NodeStatus.LOST,
        ANEW: NodeStatus.LOST,
    }

    made_anew = {f"db-{k}" for k, _ in world.ends} - {f"db-{world.late}"}

    def view(name: str, one: Pod) -> object:
        state = NodeStatus.UNBOUND if one.node == WAITING else node_status[world.node_of(one)]
        return pod(
            name,
            state,
            ready=one.ready,
            node=one.node or None,
            node_uid=one.node or None,
            on_spot=one.node in SPOT,
            cordoned=world.node_of(one) == CORDONED,
            vanished=world.node_of(one) in {GONE, ANEW},
            successor="uid-anew" if world.node_of(one) == ANEW else "",
            terminating=one.ending,
            unschedulable_since=ago(LONG_AGO_S) if one.stuck else None,
            created=NOW if name in made_anew else ago(LONG_AGO_S),
        )

    def member(k: int) -> Member:
        one = world.pod(k)
        if one is None:
            return Member(k)
        return Member(k, view(f"db-{k}", one), one.born if one.labelled else None)  # type: ignore[arg-type]

    held = None
    if world.held is not None and not world.held.failed:
        shown = Pod(world.held.pool, world.held.node, ready=world.held.node != WAITING)
        held = Placeholder(world.held.pool, world.held.ordinal, "", view("held", shown))  # type: ignore[arg-type]
    surplus = tuple(view(f"db-{k}", one) for k, one in world.members if k >= world.replicas)
    old = sum(one.old for _, one in world.members)
    return PlacementInput(
        NOW,
        "db",
        world.replicas,
        tuple(member(k) for k in range(world.replicas)),
        tuple(sorted(world.in_force)),
        surplus,  # type: ignore[arg-type]
        held,
        ordered=config.ordered,
        rolling=f"{old} to go" if world.updating else "",
        blocked="no spot machine" if world.refused else "",
    )


def decided(world: World, config: Config) -> Placed:
    """Return what splitter would do."""
    restarts = tuple(Restart(k, NOW, planned) for k, planned in world.ends)
    state = RebalanceState(yielded=world.yielded, restarts=restarts)
    counted = TUNING if config.is_counted else replace(TUNING, restarts_per_hour=10**6)
    return place(seen(world, config), config.policy, state, counted)


def writes(world: World, config: Config) -> list[tuple[str, World]]:
    """Return the world after each write of one reconcile, in order; judged as they come."""
    placed = decided(world, config)
    now, collected = replace(world, yielded=placed.state.yielded), []

    def wrote(what: str, after: World) -> World:
        collected.append((f"splitter: {what}", after))
        return after

    wanted = frozenset(placed.ordinals)
    if not wanted == world.in_force == world.published:
        if wanted != world.published:
            now = wrote(f"the policy is told ordinals {placed.ordinals}", replace(now, published=wanted))
        if wanted != world.in_force:
            wrote(f"ordinals {placed.ordinals}", replace(now, in_force=wanted))
        return collected
    for gone in (*placed.vanished, *placed.unbound):
        ordinal = int(gone.name.rpartition("-")[2])
        one = now.pod(ordinal)
        assert one is not None
        assert one.node == WAITING or world.node_of(one) == GONE, "a pod by force, whose node is there"
        removed = now.put(ordinal, None)  # who was asked to end already is not counted again
        now = wrote(
            f"remove db-{ordinal}", removed if now.late == ordinal else _ended(removed, config, ordinal)
        )
    if placed.evict is not None:
        k = placed.evict.ordinal
        one = now.pod(k)
        assert one is not None
        assert not one.ending
        before = now.serving
        _can_be_made_again(now, config, k, one)
        planned = world.node_of(one) in {UP, CORDONED}
        if "late" in config.kinds and now.faults and now.late is None:
            lost = replace(now, late=k, faults=now.faults - 1)
            collected.append(
                (f"another leads; evict db-{k} is on its way", _ended(lost, config, k, planned=planned))
            )
        ending = now.put(k, replace(one, ending=True))
        if now.late != k:  # else that pod was asked to end already
            ending = _ended(ending, config, k, planned=planned)
        now = wrote(f"evict db-{k}", ending)
        on_its_way = now.late is not None and now.late != k and now.serves(now.pod(now.late))
        left = now.serving - int(on_its_way)
        assert now.serving == before or left * 2 > now.replicas, "an eviction took the majority"
        needless = k in placed.base and one.node == OD
        assert not needless, "a member that is where it is wanted was restarted"
    collected += [(f"splitter: {what}", after) for what, after in _reserve(now, placed)]
    return collected


def _can_be_made_again(world: World, config: Config, k: int, one: Pod) -> None:
    """Judge an eviction by what the StatefulSet controller and the scheduler would do next.

    No node of this world has a deadline, so none is lost in a moment anyway.
    """
    behind = [j for j in range(k) if not world.serves(world.pod(j))]
    assert not (config.ordered and behind), f"db-{k} is not made again behind db-{behind[0]}"
    stuck = [j for j, other in world.members if j != k and other.stuck and not other.ending]
    assert not stuck, f"db-{k} was evicted while db-{stuck[0]} had no node"
    held = world.held
    if world.node_of(one) == CORDONED:
        has_room = held is not None and (held.ordinal, held.node) == (k, OD)
        assert has_room, f"db-{k} was evicted off a cordoned node, and no room is held for it"


def _reserve(now: World, placed: Placed) -> Moves:
    """Yield what becomes of the placeholder in a reconcile."""
    held, wanted = now.held, placed.reservation
    one = now.pod(held.ordinal) if held is not None else None
    if held is not None and held.failed:
        yield "delete the spent placeholder", replace(now, held=None)
    elif held is not None and (one is None or one.ending) and now.node_of(held) == UP:
        return  # the room of a member on its way
    elif held is not None and (wanted is None or (wanted.pool, wanted.ordinal) != (held.pool, held.ordinal)):
        yield "let the room go", replace(now, held=None)
    elif held is None and wanted is not None and placed.evict is None and not now.quota:
        yield "hold room", replace(now, held=Held(wanted.pool, wanted.ordinal))


def _ended(after: World, config: Config, ordinal: int, *, planned: bool = False) -> World:
    if not config.is_counted:
        return after
    ends = tuple(sorted((*after.ends, (ordinal, planned))))
    times = sum(k == ordinal for k, _ in ends)
    assert times <= RESTARTS_AN_HOUR, f"db-{ordinal} was ended {times} times within an hour"
    return replace(after, ends=ends)


def machinery(world: World, config: Config) -> Moves:
    """Yield what Kubernetes does by itself."""
    yield from _made(world, config)
    for k, one in world.members:
        yield from _lived(world, k, one)
    yield from _held(world)
    for i, node in enumerate(SPOT):
        if world.nodes[i] == ANEW:
            started = tuple(
                (k, replace(one, ready=False) if one.node == node else one) for k, one in world.members
            )
            here = replace(world, nodes=_with(world.nodes, i, UP), members=started)
            yield f"the new kubelet of {node} starts the pods there", here
    if world.updating:
        yield from _updates(world)
    if world.late is not None:
        yield from _arrives(world, world.late)


def _arrives(world: World, late: int) -> Moves:
    one = world.pod(late)
    assert one is not None
    yield (
        f"the late eviction of db-{late} arrives",
        replace(world, late=None).put(late, replace(one, ending=True)),
    )


def _made(world: World, config: Config) -> Moves:
    present = dict(world.members)
    for k in range(world.replicas):
        below = all(world.serves(world.pod(j)) for j in range(k))
        if k not in present and (below or not config.ordered) and not world.quota:
            born = Pool.ON_DEMAND if k in world.published and world.acts else Pool.SPOT
            yield f"db-{k} is made for {born}", world.put(k, Pod(born, labelled=world.acts))
            if config.ordered:
                break


def _lived(world: World, k: int, one: Pod) -> Moves:
    state = world.node_of(one)
    if one.ending:
        if state in LIVE:
            yield f"db-{k} ends", world.put(k, None)
    elif k >= world.replicas:
        yield f"db-{k} is scaled away", world.put(k, replace(one, ending=True))
    elif one.node == WAITING:
        yield from _scheduled(world, k, one)
    elif not one.ready and state in LIVE:
        yield f"db-{k} is ready", world.put(k, replace(one, ready=True))


def _held(world: World) -> Moves:
    held = world.held
    if held is not None and held.failed:
        return
    if held is not None and held.node == WAITING:
        if held.pool is Pool.ON_DEMAND and not world.full:
            yield "room on on-demand", replace(world, held=replace(held, node=OD))
        for i, node in enumerate(SPOT):
            if held.pool is Pool.SPOT and world.nodes[i] == UP:
                yield f"room on {node}", replace(world, held=replace(held, node=node))
    elif held is not None and held.node in SPOT and world.node_of(held) == GONE:
        yield "the placeholder is collected", replace(world, held=None)


def _scheduled(world: World, k: int, one: Pod) -> Moves:
    taken = False
    if one.born is Pool.SPOT:
        for i, node in enumerate(SPOT):
            if world.nodes[i] == UP:
                taken = True
                yield f"db-{k} to {node}", world.put(k, replace(one, node=node, stuck=False))
    if not world.full and not (world.lies and one.born is Pool.ON_DEMAND):
        taken = True
        yield f"db-{k} to od", world.put(k, replace(one, node=OD, stuck=False))
    if not taken and not one.stuck:
        yield f"db-{k} finds no node", world.put(k, replace(one, stuck=True))


def _updates(world: World) -> Moves:
    old = [k for k, one in world.members if one.old and not one.ending and k < world.replicas]
    if not old:
        yield "the update is through", replace(world, updating=False)
    elif world.serving == world.replicas:
        one = world.pod(old[-1])
        assert one is not None
        yield f"the update takes db-{old[-1]}", world.put(old[-1], replace(one, ending=True))


def faults(world: World, config: Config) -> Moves:
    """Yield what may go wrong, and what people do."""
    if not world.faults:
        return
    left = replace(world, faults=world.faults - 1)
    yield from _of_nodes(world, left, config)
    for k, one in world.members:
        yield from _of_members(world, left, config, k, one)
    if "update" in config.kinds and not world.updating:
        old = tuple((k, replace(one, old=True)) for k, one in world.members)
        yield "an update begins", replace(left, members=old, updating=True, crashed=True)
    for scale in config.scales:
        if scale != world.replicas:
            yield f"scaled to {scale}", replace(left, replicas=scale, crashed=True)


def _of_members(world: World, left: World, config: Config, k: int, one: Pod) -> Moves:
    if "drain" in config.kinds and world.node_of(one) == CORDONED and not one.ending:
        yield f"db-{k} is drained", replace(left, crashed=True).put(k, replace(one, ending=True))
    if "crash" in config.kinds and one.ready:
        yield f"db-{k} crashes", replace(left, crashed=True).put(k, replace(one, ready=False))


def _of_nodes(world: World, left: World, config: Config) -> Moves:
    changes = {"doom": (UP, DOOMED), "silence": (UP, SILENT), "cordon": (UP, CORDONED)}
    for i, state in enumerate(world.nodes):
        for kind, (before, after) in changes.items():
            if kind in config.kinds and state == before:
                yield f"{SPOT[i]} {after}", replace(left, nodes=_with(world.nodes, i, after))
        if "take" in config.kinds and state != GONE:
            yield f"{SPOT[i]} gone", replace(left, nodes=_with(world.nodes, i, GONE))
    if "refuse" in config.kinds and not world.refused:
        yield "spot is refused", replace(left, refused=True)
    if "full" in config.kinds and not world.full:
        yield "on-demand is full", replace(left, full=True)
    yield from _answers(world, left, config)


def _answers(world: World, left: World, config: Config) -> Moves:
    """Yield what the cluster may answer to what splitter does."""
    if "policy" in config.kinds and world.acts:
        yield "the policy acts no more", replace(left, acts=False)
    if "lies" in config.kinds and not world.lies:
        yield "on-demand takes no member", replace(left, lies=True)
    if "quota" in config.kinds and not world.quota:
        yield "a quota is used up", replace(left, quota=True)
    if "spent" in config.kinds and world.held is not None and not world.held.failed:
        yield "the placeholder fails", replace(left, held=replace(world.held, failed=True))
    for i, state in enumerate(world.nodes):
        if "anew" in config.kinds and state == GONE:
            yield f"{SPOT[i]} registers anew", replace(left, nodes=_with(world.nodes, i, ANEW))


def _with(nodes: tuple[str, str], i: int, state: str) -> tuple[str, str]:
    return (state, nodes[1]) if i == 0 else (nodes[0], state)


def recovery(world: World) -> Moves:
    """Yield what ends every trouble: taken nodes come back, with nothing on them, and on-demand has room."""
    ends = {DOOMED: ("gone", GONE), SILENT: ("gone", GONE), CORDONED: ("uncordoned", UP)}
    for i, state in enumerate(world.nodes):
        if state in ends:
            said, after = ends[state]
            yield f"{SPOT[i]} {said}", replace(world, nodes=_with(world.nodes, i, after))
        empty = not any(one.node == SPOT[i] for one in (*dict(world.members).values(), world.held) if one)
        if state == GONE and empty:
            yield f"{SPOT[i]} is back", replace(world, nodes=_with(world.nodes, i, UP))
    if world.full:
        yield "on-demand has room", replace(world, full=False)
    if world.refused:
        yield "spot can be had", replace(world, refused=False)
    if not world.acts:
        yield "the policy acts again", replace(world, acts=True)
    if world.lies:
        yield "on-demand takes members", replace(world, lies=False)
    if world.quota:
        yield "there is quota", replace(world, quota=False)
    if world.ends and world.late is None:
        yield "an hour passes", replace(world, ends=())


@dataclass(slots=True)
class Explored:
    """How far it went."""

    states: int = 0
    complete: bool = True


def explore(config: Config, states_max: int = 10**9) -> Explored:
    """Visit every world that any order of events leads to; raises AssertionError with the shortest way."""
    first = start(config)
    parents: dict[World, tuple[World | None, str]] = {first: (None, "start")}
    queue, collected, home = deque([first]), Explored(), set[World]()
    while queue:
        world = queue.popleft()
        try:
            steps = [
                *writes(world, config),
                *machinery(world, config),
                *faults(world, config),
                *recovery(world),
            ]
            if config.is_ours_alone and not world.crashed:
                assert world.serving * 2 > world.replicas, f"{world.serving} of {world.replicas} serve"
            bring_home(world, config, home)
        except AssertionError as error:
            raise AssertionError("\n".join([*_way(parents, world), f"broken: {error}"])) from error
        for name, after in steps:
            if after not in parents:
                parents[after] = (world, name)
                queue.append(after)
        if len(parents) >= states_max:
            collected.complete = False
            break
    collected.states = len(parents)
    return collected


def bring_home(world: World, config: Config, home: set[World]) -> None:
    """Let the world go quiet: it comes to rest with every member ready in its pool.

    `home` are the quiet worlds that are known to.
    """
    quiet = replace(world, faults=0)
    way: list[World] = []
    for _ in range(300):
        if quiet in home:
            home.update(way)
            return
        way.append(quiet)
        written = writes(quiet, config)
        if written:
            quiet = written[-1][1]
            continue
        steps = [*machinery(quiet, config), *recovery(quiet)]
        if not steps:
            break
        quiet = steps[0][1]
    else:
        raise AssertionError("no rest after 300 steps")
    home.update(way)
    check_rest(quiet, config)


def check_rest(quiet: World, config: Config) -> None:
    """Judge a world in which nothing happens any more."""
    base = decided(quiet, config).base
    assert quiet.in_force == base, f"rest with {sorted(quiet.in_force)} in force, {sorted(base)} wanted"
    assert quiet.published == base, (
        f"rest with the policy told {sorted(quiet.published)}, {sorted(base)} wanted"
    )
    for k in range(quiet.replicas):
        one = quiet.pod(k)
        assert quiet.serves(one), f"rest without db-{k}"
        assert one is not None
        spot = one.node in SPOT
        few = quiet.replicas <= 2  # no move leaves a majority
        assert few or spot == (k not in base), f"rest with db-{k} on {one.node}"
    assert quiet.held is None or quiet.replicas <= 2, "rest with room held"


def _way(parents: dict[World, tuple[World | None, str]], world: World) -> list[str]:
    way: list[str] = []
    at: World | None = world
    while at is not None:
        before, name = parents[at]
        way.append(name)
        at = before
    return way[::-1]
