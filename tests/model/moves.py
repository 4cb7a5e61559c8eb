"""Who may act next, and what it comes to: every step of splitter, of Kubernetes and of the world.

`moves` lists what may happen in a world, each as a name and a function that does it to a copy. The
controllers are those of the stories; here only time differs: a pod becomes ready, or ends, when it likes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from model.cluster import Cluster, LostRaceError, Node, Pod
from model.controllers import collect_garbage, schedule, sync, sync_replica_set
from model.promises import CONTROLLER, Promises, check_action
from model.sight import observe
from model.world import (
    FOREVER_S,
    GRACE_S,
    NOW,
    POLICY,
    Config,
    World,
    fresh,
    kept_report,
    normalise,
    pass_time,
    pod_form,
)
from model.writes import render, write
from splitter.core.actions import Action
from splitter.core.labels_annotations import ANNOTATION_FREEZE as FREEZE
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, ANNOTATION_TAKEN_OVER, LABEL_SPLIT
from splitter.core.model import Observation
from splitter.core.plan import Plan, PolicyInForce, Rules, remembered
from splitter.core.planner import plan, policy_in_force
from splitter.core.replica import Pool
from splitter.report.status import build
from stories.reported import check_reported

RULES = Rules(defaults=POLICY)
OF_MEMBERS = Rules()


@dataclass(frozen=True)
class Move:
    """Something that may happen next."""

    name: str
    act: Callable[[World], None]
    tries: Callable[[World], object] | None = None
    """The same without judging: says False when nothing would change, and then has changed nothing."""
    quiet: bool = True
    """It happens without anybody doing anything to the workload."""
    world: bool = False
    """It is no answer of splitter's or of a controller's."""


def _judged(world: World) -> Promises:
    """Return the promises as they are in one state."""
    promises = Promises(world.cluster)
    promises.allowance, promises.excused = world.allowance, world.excused
    promises.seen, promises.seen_ceiling = world.seen, world.seen_ceiling
    return promises


def settle(world: World) -> None:
    """Have equal states look equal."""
    world.allowance = _judged(world).settle()


# What splitter does.


def concerns(world: World) -> bool:
    """Whether splitter has a key for it, or remembers that it wanted to look again."""
    return world.awake or _has_key(world)


def _has_key(world: World) -> bool:
    """Whether a label, a Split, or something that the source owns leads to it, even after a restart."""
    cluster = world.cluster
    return bool(LABEL_SPLIT in cluster.source.labels or cluster.split or cluster.twins or cluster.released())


def _decided(cluster: Cluster, seen: Cluster) -> tuple[Observation, Plan, PolicyInForce]:
    """Return what splitter would do by what it sees of a cluster."""
    rules = OF_MEMBERS if cluster.is_stateful else RULES
    observed = observe(seen)
    in_force = policy_in_force(observed, rules.defaults)
    result = plan(observed, in_force, render(observed, in_force.policy), rules)
    check_reported(observed, result)
    return observed, result, in_force


def _begin(world: World) -> None:
    promises, seen = _judged(world), world.cluster
    promises.look()
    late = world.nodes_seen is not None
    if late:
        seen = world.copied().cluster
        seen.nodes = dict(world.nodes_seen or {})
    world.last = observed, result, in_force = _decided(world.cluster, seen)
    world.awake = result.requeue_after_s is not None or (seen.is_stateful and bool(result.actions))
    world.pending = tuple(result.actions)
    world.seen, world.seen_ceiling, world.excused = promises.seen, promises.seen_ceiling, late
    world.report = None
    if observed.split is not None:
        world.report = kept_report(build(observed, result, in_force, written=True).to_json())
    if not world.pending:
        _write_report(world)


def planned(world: World) -> Plan:
    """Return what splitter would plan now."""
    return _decided(world.cluster, world.cluster)[1]


def _write_report(world: World) -> None:
    split, last = world.cluster.split, world.last
    seen = last[0].split if last else None
    if world.report is not None and split is not None and seen is not None and split.uid == seen.uid:
        split.status = world.report
    _forget(world)


def _forget(world: World) -> None:
    world.pending, world.last, world.report, world.seen, world.excused = (), None, None, None, False
    world.seen_ceiling = 0


def _crash(world: World) -> None:
    world.crashes -= 1
    world.awake = False
    _forget(world)


def _write(world: World) -> None:
    promises, action = _judged(world), world.pending[0]
    check_action(world.cluster, action)
    if world.last is None:
        raise AssertionError("a write without a plan")
    try:
        with promises.step(f"splitter's {action}"):
            write(world.cluster, action, world.last[0])
    except LostRaceError:
        _remember(world)
        _forget(world)
        return
    world.allowance = promises.allowance
    world.pending = world.pending[1:]
    if not world.pending and world.report is None:
        _forget(world)


def _remember(world: World) -> None:
    """Write what a reconcile that lost a race has learned."""
    split, last = world.cluster.split, world.last
    seen = last[0].split if last else None
    if last is None or split is None or seen is None or split.uid != seen.uid:
        return
    status = remembered(last[1], last[0])
    if status is not seen.status:
        split.status = status.to_json()


def _whole_reconcile(world: World) -> None:
    _begin(world)
    while world.pending:
        _write(world)
    if world.report is not None:
        _write_report(world)


def said(action: Action) -> str:
    """Return an action in a few words."""
    return f"{type(action).__name__}({', '.join(_values(action))})"


def _values(action: Action) -> Iterator[str]:
    for name in action.__dataclass_fields__:
        value = getattr(action, name)
        if name not in {"uid", "resource_version", "manifest_json", "strip", "labels", "kind"}:
            yield f"{name}={'...' if name == 'value' and value else value}"


# What Kubernetes does.


def _controller(act: Callable[[World], object]) -> Callable[[World], None]:
    def judged_act(world: World) -> None:
        promises = _judged(world)
        with promises.step(CONTROLLER):
            act(world)
        world.allowance = promises.allowance

    return judged_act


def _by(name: str, act: Callable[[World], object]) -> Move:
    return Move(name, _controller(act), tries=act)


def _controls(pool: Pool | None) -> Callable[[World], bool]:
    def act(world: World) -> bool:
        cluster = world.cluster
        return sync(cluster, cluster.source if pool is None else cluster.twins[pool])

    return act


def _replica_set(uid: str) -> Callable[[World], bool]:
    def act(world: World) -> bool:
        cluster = world.cluster
        headroom = 10**9 if world.quota is None else world.quota - len(cluster.pods)
        return sync_replica_set(cluster, cluster.replica_sets[uid], headroom)

    return act


def _collect_garbage(world: World) -> bool:
    return collect_garbage(world.cluster)


def _schedule(world: World) -> bool:
    return schedule(world.cluster)


def _ready(name: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.cluster.pods[name].ready_since = NOW

    return _controller(act)


def _ends(name: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        del world.cluster.pods[name]

    return _controller(act)


def _classes(pods: Iterator[Pod]) -> Iterator[Pod]:
    """Return one of each kind of pods: the others would do the same."""
    collected: set[tuple[object, ...]] = set()
    for pod in pods:
        form = pod_form(pod)
        if form not in collected:
            collected.add(form)
            yield pod


def _may_become_ready(cluster: Cluster, pod: Pod) -> bool:
    node = cluster.nodes.get(pod.node or "")
    return (
        pod.active
        and pod.ready_since is None
        and node is not None
        and node.ready
        and "broken" not in pod.template
    )


def _may_end(cluster: Cluster, pod: Pod) -> bool:
    node = cluster.nodes.get(pod.node or "")
    return not pod.active and (node is None or node.ready)


def _unready(world: World) -> None:
    """Show the pods of lost kubelets as not ready."""
    cluster = world.cluster
    for pod in cluster.pods.values():
        node = cluster.nodes.get(pod.node or "")
        if node is not None and not node.ready:
            pod.ready_since = None


def _has_lost_kubelet(cluster: Cluster) -> bool:
    lost = {node.name for node in cluster.nodes.values() if not node.ready}
    return any(pod.node in lost and pod.ready_since is not None for pod in cluster.pods.values())


def _collect(world: World) -> None:
    """Evict the pods of lost kubelets, and collect those of vanished nodes: a minute has passed."""
    cluster = world.cluster
    for name, pod in list(cluster.pods.items()):
        if pod.node is None:
            continue
        node = cluster.nodes.get(pod.node)
        if node is None:
            del cluster.pods[name]
        elif not node.ready:
            cluster.terminate(pod)


def _time(seconds: int) -> Callable[[World], None]:
    def act(world: World) -> None:
        pass_time(world, seconds)
        _forget(world)
        _world(_collect)(world)

    return act


# What people and clouds do.


def _world(act: Callable[[World], object]) -> Callable[[World], None]:
    def judged_act(world: World) -> None:
        promises = _judged(world)
        with promises.world():
            act(world)
        world.allowance, world.excused = promises.allowance, bool(world.pending)

    return judged_act


def _late(config: Config, act: Callable[[Cluster], object]) -> Callable[[World], None]:
    """Return something that happens to nodes, of which splitter hears later."""

    def happen(world: World) -> None:
        if config.late and world.nodes_seen is None:
            world.nodes_seen = {name: Node(**node.__dict__) for name, node in world.cluster.nodes.items()}
        act(world.cluster)

    return happen


def _notices(world: World) -> None:
    world.nodes_seen = None


def is_broken(world: World) -> bool:
    """Whether the world is in no state to let anybody rest."""
    cluster = world.cluster
    spot = sum(node.spot and node.ready and not node.doomed for node in cluster.nodes.values())
    sound = sum(node.ready and not node.doomed for node in cluster.nodes.values())
    return bool(
        spot < 2
        or sound < len(cluster.nodes)
        or sound < 3
        or world.quota is not None
        or "broken" in cluster.source.template
        or FREEZE in cluster.source.annotations
    )


def _mend(world: World) -> None:
    """Bring back what is missing: nodes, room, an image that works."""
    cluster = world.cluster
    for node in list(cluster.nodes.values()):
        if node.doomed:
            cluster.vanish(node.name)
        elif not node.ready:
            cluster.ready_again(node.name)
    for spot, count in ((False, 1), (True, 2)):
        while sum(node.spot == spot for node in cluster.nodes.values()) < count:
            prefix = "spot" if spot else "od"
            names = (f"{prefix}-{letter}" for letter in "abcdefghijklm")
            name = next(name for name in names if name not in cluster.seen_nodes)
            cluster.add_node(name, spot=spot, slots=40)
    world.quota = None
    cluster.annotate(freeze=None)
    if "broken" in cluster.source.template:
        cluster.change_spec(cluster.source, template="v3")


def _replace(cluster: Cluster) -> None:
    """Run `kubectl replace` with a manifest that knows nothing of splitter; of a StatefulSet it says N."""
    cluster.source.labels.pop(LABEL_SPLIT, None)
    cluster.source.annotations.clear()
    cluster.source.version = cluster.version()
    if cluster.is_stateful:
        cluster.change_spec(cluster.source, replicas=2, writer="kubectl-replace")


def _without(annotation: str) -> Callable[[World], None]:
    def happen(world: World) -> None:
        source = world.cluster.source
        source.annotations.pop(annotation, None)
        source.version = world.cluster.version()

    return happen


def _scale_split(replicas: int) -> Callable[[World], None]:
    def happen(world: World) -> None:
        if world.cluster.split is not None:
            world.cluster.split.replicas = replicas

    return happen


def _delete_split(cluster: Cluster) -> None:
    cluster.split = None


def _no_headroom(world: World) -> None:
    world.quota = len(world.cluster.pods)


def _label(cluster: Cluster) -> None:
    cluster.label(on=True)


def _unlabel(cluster: Cluster) -> None:
    cluster.label(on=False)


def _on(act: Callable[[Cluster], None]) -> Callable[[World], None]:
    def happen(world: World) -> None:
        act(world.cluster)

    return happen


Fault = tuple[str, str, Callable[[World], None]]
"""Its kind, its name, and what it does."""


def _to_nodes(config: Config, act: Callable[[Cluster, str], None], *names: str) -> Callable[[World], None]:
    def happen(cluster: Cluster) -> None:
        for name in names:
            act(cluster, name)

    return _late(config, happen)


def _to_source(**changes: object) -> Callable[[World], None]:
    return _on(lambda cluster: cluster.change_spec(cluster.source, **changes))


def _faults(world: World, config: Config) -> Iterator[Fault]:
    yield from _faults_of_nodes(world.cluster, config)
    yield from _deeds_of_users(world.cluster, config)
    yield from _deeds_of_strangers(world)


def _faults_of_nodes(cluster: Cluster, config: Config) -> Iterator[Fault]:
    for name, node in cluster.nodes.items():
        if not node.doomed:
            kind = "notice" if node.spot else "od-notice"
            yield kind, f"notice for {name}", _to_nodes(config, Cluster.notice, name)
        if node.ready and node.spot:
            yield "gone", f"{name} is gone", _to_nodes(config, Cluster.vanish, name)
            yield "unready", f"{name} is NotReady", _to_nodes(config, Cluster.unready, name)
    spot = [node.name for node in cluster.nodes.values() if node.spot and not node.doomed]
    if len(spot) > 1:
        yield "notices", "notice for all spot", _to_nodes(config, Cluster.notice, *spot)
        yield "all-gone", "all spot is gone", _to_nodes(config, Cluster.vanish, *spot)


def _deeds_of_users(cluster: Cluster, config: Config) -> Iterator[Fault]:
    source = cluster.source
    for count in range(min(3, config.replicas + 1) + 1):
        if count != source.replicas:
            writer = {"writer": "kubectl"} if cluster.is_stateful else {}
            yield "scaled", f"scaled to {count}", _to_source(replicas=count, **writer)
    split = cluster.split
    for count in range(4) if split is not None and split.replicas is not None else ():
        yield "split-scaled", f"Split scaled to {count}", _scale_split(count)
    for kind, template in (("image", "v2"), ("bad-image", "v2-broken")):
        if source.template != template:
            yield kind, f"image {template}", _to_source(template=template)
    surge, unavailable = (0, 1) if source.max_surge else (2, 0)
    changed = _to_source(max_surge=surge, max_unavailable=unavailable)
    yield "strategy", f"maxSurge {surge}, maxUnavailable {unavailable}", changed
    for base in ("0", "2"):
        yield "policy", f"on-demand-base {base}", _on(partial(Cluster.annotate, on_demand_base=base))
    if FREEZE not in source.annotations:
        yield "frozen", "frozen", _on(partial(Cluster.annotate, freeze="true"))
    if LABEL_SPLIT in source.labels:
        yield "unlabelled", "label removed", _on(_unlabel)
        yield "replaced", "kubectl replace without label and mark", _on(_replace)
    else:
        yield "labelled", "label set again", _on(_label)


def _deeds_of_strangers(world: World) -> Iterator[Fault]:
    cluster = world.cluster
    if cluster.source.paused:
        yield "resumed", "somebody resumes", _on(Cluster.unpause)
    for pool in cluster.twins:
        yield "twin-deleted", f"{pool} twin deleted", _on(partial(Cluster.delete_twin, pool=pool))
        edit = partial(Cluster.edit_twin, pool=pool, template="v9-edited")
        yield "edited", f"{pool} twin edited", _on(edit)
    if cluster.split is not None:
        yield "split-deleted", "Split deleted", _on(_delete_split)
    for kind, annotation in (("unmarked", ANNOTATION_TAKEN_OVER), ("n-removed", ANNOTATION_REPLICAS)):
        if annotation in cluster.source.annotations:
            yield kind, f"{annotation} removed", _without(annotation)
    if world.quota is None:
        yield "quota", "no room for surge", _no_headroom


def _counted(kind: str, act: Callable[[World], None]) -> Callable[[World], None]:
    def judged_act(world: World) -> None:
        _world(act)(world)
        world.faults = tuple(sorted((*world.faults, kind)))
        world.awake = world.awake or world.cluster.is_stateful  # by the event

    return judged_act


# All of it.


def moves(world: World, config: Config) -> list[Move]:
    """Return everything that may happen now, time left out."""
    unbound = (pod for pod in world.cluster.pods.values() if pod.active and pod.node is None)
    if not config.scheduled_late and any(pod.unschedulable_since is None for pod in unbound):
        return [Move("the scheduler", _controller(_schedule))]
    return [*_of_splitter(world, config), *_of_kubernetes(world), *_of_the_world(world, config)]


def _of_splitter(world: World, config: Config) -> Iterator[Move]:
    if config.whole_reconciles:
        if concerns(world):
            yield Move("splitter reconciles", _whole_reconcile)
        return
    if world.pending:
        yield Move(f"splitter writes {said(world.pending[0])}", _write)
    elif world.report is not None:
        yield Move("splitter reports", _write_report)
    elif concerns(world):
        yield Move("splitter looks", _begin)
    if world.crashes and (world.pending or world.report is not None):
        yield Move("splitter crashes", _crash, quiet=False)


def _of_kubernetes(world: World) -> Iterator[Move]:
    cluster = world.cluster
    yield _by(f"controller of {cluster.source.name}", _controls(None))
    for pool in cluster.twins:
        yield _by(f"controller of {pool}", _controls(pool))
    for rs in cluster.replica_sets.values():
        yield _by(f"ReplicaSet {rs.name}", _replica_set(rs.uid))
    if any(rs.deleting for rs in cluster.replica_sets.values()):
        yield _by("the garbage collector", _collect_garbage)
    if any(pod.node is None and pod.active for pod in cluster.pods.values()):
        yield _by("the scheduler", _schedule)
    for pod in _classes(pod for pod in cluster.pods.values() if _may_become_ready(cluster, pod)):
        yield Move(f"{pod.name} is ready", _ready(pod.name))
    for pod in _classes(pod for pod in cluster.pods.values() if _may_end(cluster, pod)):
        yield Move(f"{pod.name} ends", _ends(pod.name))
    if _has_lost_kubelet(cluster):
        yield Move("pods of a lost kubelet are unready", _controller(_unready))
    if world.nodes_seen is not None:
        yield Move("the node's event arrives", _notices)


def _of_the_world(world: World, config: Config) -> Iterator[Move]:
    for node in world.cluster.nodes.values():
        if node.doomed:  # it goes sooner or later; by itself, so that it costs no fault
            act = _world(_to_nodes(config, Cluster.vanish, node.name))
            yield Move(f"{node.name} is gone", act, world=True)
    if is_broken(world):
        yield Move("all is mended", _world(_mend), world=True)
    if len(world.faults) < config.faults_max:
        for kind, name, act in _faults(world, config):
            if kind in config.faults:
                yield Move(name, _counted(kind, act), quiet=False, world=True)


TIME_MOVES = (Move("some minutes pass", _time(GRACE_S)), Move("hours pass", _time(FOREVER_S)))
"""What may happen when nothing else does."""


def labelled(config: Config) -> World:
    """Return the workload at the moment it gets its label."""
    world = fresh(config)
    for _ in range(3):
        sync(world.cluster, world.cluster.source)
        for rs in world.cluster.replica_sets.values():
            sync_replica_set(world.cluster, rs)
        schedule(world.cluster)
        for pod in world.cluster.pods.values():
            pod.ready_since = NOW
    pass_time(world, FOREVER_S)
    world.cluster.label(on=True)
    normalise(world, config)
    return world
