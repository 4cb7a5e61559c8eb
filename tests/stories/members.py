"""The life of a split StatefulSet, by dice or by a story: everybody acts, and promises are judged.

What a promise is stands in `Judge`; it looks at pods and specs only. `Life(seed).run()` lets the world do a
number of random things in any order, then leaves it alone and checks that rest is reached.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from splitter.core.actions import Action, ApplyTwin, Scale
from splitter.core.division import base_replicas
from splitter.core.handover import Step
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, LABEL_SPLIT
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation, Pool
from splitter.core.plan import Plan, PolicyInForce, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.plugin.core.action_messages import describe
from splitter.report.status import build
from stories.cluster import LostRaceError
from stories.quorum import (
    COLLECTED_S,
    STOP_S,
    BrokenPromiseError,
    Member,
    Quorum,
    StatefulSet,
    leftovers,
    lowered,
    observe,
    remaining,
    render,
    run_kubelets,
    schedule,
    sync,
    unshared,
    write,
)
from stories.reconciles import look_again_s

POLICY = Policy(on_demand_base="majority")
RULES = Rules()
TURNS_MAX = 2_000  # at one instant; more is a livelock
GRACE_S = Policy().grace_s
SETTLED_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps


class Splitter:
    """One process of splitter: reconciles, and their writes one by one."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.pending: deque[Action] = deque()
        self.last: tuple[Observation, Plan, PolicyInForce] | None = None
        self.seen = quorum
        self.woken = False
        self.due_at = 0

    def concerns(self) -> bool:
        """Whether anything leads here: a label, a Split, a twin, an event, or a look that is due."""
        quorum = self.quorum
        here = LABEL_SPLIT in quorum.source.labels or quorum.split is not None or bool(quorum.twins)
        again = self.last is not None and self.last[1].step is not Step.NOTHING
        return here or self.woken or again

    def is_due(self) -> bool:
        """Whether there is something to look at that was not looked at: an event, or the plan said when."""
        if not self.concerns():
            return False
        if self.woken or self.last is None or self.quorum.now >= self.due_at:
            return True
        return replace(observe(self.quorum), now=self.last[0].now) != self.last[0]

    def begin(self) -> Plan:
        """Observe and plan; the writes come with `write_next`."""
        quorum = self.quorum
        observed = observe(quorum)
        in_force = policy_in_force(observed, RULES.defaults)
        planned = plan(observed, in_force, render(observed, in_force.policy), RULES)
        self.pending, self.last = deque(planned.actions), (observed, planned, in_force)
        self.seen = unshared(quorum)
        self.woken = bool(planned.actions)
        self.due_at = quorum.now + look_again_s(planned)
        if not self.pending:
            self.report()
        return planned

    def write_next(self) -> Action | None:
        """Do the next write, judged; None when it lost a race and the rest was dropped."""
        action = self.pending.popleft()
        if self.last is None:
            raise AssertionError("a write without a plan")
        judge = Judge(self.seen)
        try:
            write(self.quorum, action, self.last[0])
        except LostRaceError:
            self.pending.clear()
            return None
        write(self.seen, action, self.last[0])
        judge.after(action)
        if not self.pending:
            self.report()
        return action

    def report(self) -> None:
        """Write the status of the Split, which must survive."""
        split, seen = self.quorum.split, self.last[0].split if self.last is not None else None
        if self.last is None or split is None or seen is None or seen.uid != split.uid:
            return
        status = build(*self.last, written=True)
        if status is not seen.status:
            split.status = status.to_json()

    def crash(self) -> None:
        """Forget everything that is not written; after a start all that can be found is looked at."""
        self.pending.clear()
        self.woken, self.last = False, None


class Judge:
    """Judges one write: what is left when all is done that is written, against what would have been.

    It is given the world as splitter saw it: what has happened since is not its to know, unless a
    precondition tells.
    """

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._counted = {uid: quorum.available(member) for uid, member in quorum.members.items()}
        self._left = remaining(quorum, self._counted)
        self._potential = potential(quorum)
        self._saved = ANNOTATION_REPLICAS in quorum.source.annotations
        self._wanted = quorum.wanted

    def after(self, action: Action) -> None:
        """Raise BrokenPromiseError when the write should not have been."""
        quorum = self._quorum
        left = remaining(quorum, self._counted)
        rolling = any(is_rolling(quorum, owner) for owner in quorum.sets)
        floor = max(0, min(self._wanted, quorum.wanted) - rolling)
        if left < self._left and left < floor:
            raise BrokenPromiseError(f"{action}: available {self._left} -> {left}, floor {floor} (promise 1)")
        if lowered(action) and isinstance(action, Scale) and action.resource_version is None:
            raise BrokenPromiseError(f"{action.name} is lowered without a precondition")
        if isinstance(action, Scale) and action.name == quorum.source.name and not self._saved:
            raise BrokenPromiseError("the source is scaled before N is saved")
        most = potential(quorum)
        if most > max(self._potential, ceiling(quorum)):
            raise BrokenPromiseError(f"{action}: {most} pods, at most {ceiling(quorum)} (promise 2)")


def is_rolling(quorum: Quorum, owner: StatefulSet) -> bool:
    """Whether it holds pods of another template than its own, a partition left aside."""
    return any(
        pod.active and pod.template != owner.template and pod.ordinal - owner.first >= owner.partition
        for pod in quorum.of(owner)
    )


def potential(quorum: Quorum) -> int:
    """Count what may be there without a further write; what finds no node takes nobody's room."""
    count = 0
    for owner in quorum.sets:
        active = [pod for pod in quorum.of(owner) if pod.active]
        stuck = sum(pod.unschedulable_since is not None for pod in active)
        count += max(owner.replicas, len(active)) - stuck
    return count


def ceiling(quorum: Quorum) -> int:
    """Return N + S, and what an emergency adds."""
    # One that is ending there holds its name, until somebody has seen to it that it has ended.
    going = sum(pod.node is not None and not quorum_sound(quorum, pod.node) for pod in pods(quorum))
    rebalance = quorum.split.status.get("rebalance", {}) if quorum.split else {}
    short = isinstance(rebalance, dict) and bool({"lost", "shortSince"} & rebalance.keys())
    waits = any(pod.unschedulable_since is not None for pod in pods(quorum))
    lost = any(pod.node is not None and pod.node not in quorum.nodes for pod in pods(quorum))
    short = short or waits or lost
    return quorum.wanted + 1 + going + failing(quorum) + (quorum.wanted if going or short else 0)


def failing(quorum: Quorum) -> int:
    """Count the members of twins that make room on the way home: not ready for the grace."""
    conflict = quorum.split is not None and bool(quorum.split.status.get("conflict"))
    if LABEL_SPLIT in quorum.source.labels and not conflict:
        return 0
    since = [pod.unready_since for pod in pods(quorum) if pod.pool is not None and pod.active]
    return sum(one is not None and quorum.now - one > GRACE_S for one in since)


def quorum_sound(quorum: Quorum, node: str) -> bool:
    """Whether a node is there and stays."""
    return node in quorum.nodes and quorum.nodes[node].ready and not quorum.nodes[node].doomed


def pods(quorum: Quorum) -> list[Member]:
    """Return all pods."""
    return list(quorum.members.values())


def unsettled(quorum: Quorum) -> list[str]:
    """Name what keeps it from rest: split as its policy says, or its user's own again."""
    split = quorum.split
    conflicted = split is not None and bool(split.status.get("conflict"))
    if LABEL_SPLIT in quorum.source.labels and not conflicted:
        share = base_replicas(quorum.wanted, POLICY)
        wanted = {Pool.ON_DEMAND: share, Pool.SPOT: quorum.wanted - share}
        collected = [f"source at {quorum.source.replicas}"] if quorum.source.replicas else []
        for pool, replicas in wanted.items():
            twin = quorum.twins.get(pool)
            ready = sum(quorum.available(pod) for pod in quorum.of(twin)) if twin else 0
            if twin is None or (twin.replicas, ready) != (replicas, replicas):
                collected.append(f"{pool}: {twin.replicas if twin else None}/{ready}, wanted {replicas}")
            elif not twin.template.startswith(quorum.source.template):
                collected.append(f"{pool} runs {twin.template}")
        shown = split.replicas if split is not None else None
        return collected if shown == quorum.wanted else [*collected, f"the Split shows {shown}"]
    collected = [trace for trace in leftovers(quorum) if trace != "Split" or not conflicted]
    ready = sum(quorum.available(pod) for pod in quorum.of(quorum.source))
    return (
        collected
        if ready == quorum.source.replicas
        else [*collected, f"source {quorum.source.replicas}/{ready}"]
    )


class Life:
    """One random run."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.quorum = Quorum(self.dice.randint(0, 7), ordered=self.dice.random() < 0.5)
        self.splitter = Splitter(self.quorum)
        self.log: deque[str] = deque(maxlen=120)
        self.nodes = 0
        self.images = 1
        for spot in (False, False, True, True):
            self._add_node(spot=spot)
        self._settle(60)

    def run(self, events: int = 14, steps_between: int = 25) -> None:
        """Live, then come to rest."""
        self.quorum.label(on=True)
        for _ in range(events):
            for _ in range(self.dice.randint(0, steps_between)):
                self._random_step()
            self._random_event()
        self._leave_alone()

    def _say(self, text: str) -> None:
        quorum = self.quorum
        counts = " ".join(f"{owner.name} {owner.replicas}" for owner in quorum.sets)
        self.log.append(f"{quorum.now:6} N{quorum.wanted} {counts} | {text}")

    def _actors(self) -> list[Callable[[], bool]]:
        quorum = self.quorum
        own = [partial(sync, quorum, owner) for owner in quorum.sets]
        return [lambda: run_kubelets(quorum), *own, lambda: schedule(quorum)]

    def _splitter_acts(self) -> bool:
        if self.splitter.pending:
            action = self.splitter.write_next()
            self._say(f"{action or 'lost race'}")
            return True
        if not self.splitter.concerns():
            return False
        result = self.splitter.begin()
        return bool(result.actions)

    def _random_step(self) -> None:
        roll = self.dice.random()
        if roll < 0.35:
            self._splitter_acts()
        elif roll < 0.4:
            self.splitter.crash()
        elif roll < 0.9:
            self.dice.choice(self._actors())()
        else:
            self.quorum.now += self.dice.choice([1, 5, 30, 200])

    def _settle(self, seconds: int) -> None:
        """Let everybody act in turn until nothing changes and the time is over."""
        end = self.quorum.now + seconds
        idle, busy = 0, 0
        while self.quorum.now < end:
            acted = [act() for act in self._actors()]
            acted.append((self.splitter.pending or self.splitter.is_due()) and self._splitter_acts())
            idle = 0 if any(acted) or self.splitter.pending else idle + 1
            busy = 0 if idle else busy + 1
            if busy > TURNS_MAX:
                raise BrokenPromiseError("never settles")
            if idle:
                self.quorum.now += 1 if idle < 100 else 30

    def _leave_alone(self) -> None:
        quorum = self.quorum
        self._end_troubles()
        for spot in (False, False, True, True):
            self._add_node(spot=spot)
        if "broken" in quorum.source.template:
            self._set_image("")
        # A StatefulSet that is OrderedReady waits for a broken pod, whatever its template is by now: people
        # delete it (kubernetes#67250).
        for member in quorum.members.values():
            if "broken" in member.template:
                quorum.terminate(member)
        quorum.change(quorum.source, partition=0)
        for _ in range(SETTLED_WITHIN_S // 600):
            self._settle(600)
            if not unsettled(quorum):
                return
            if self.splitter.last is not None and self.splitter.last[1].step is Step.WAIT_COUNT:
                quorum.scale(3)  # its user does what the Split says
        raise BrokenPromiseError(f"no rest: {unsettled(quorum)}")

    def _end_troubles(self) -> None:
        quorum = self.quorum
        quorum.quota, quorum.stop_s, quorum.tolerant = None, STOP_S, False
        quorum.vanish(*(node.name for node in quorum.nodes.values() if node.doomed or not node.ready))
        for member in quorum.members.values():
            if member.ends is not None:
                member.ends = min(member.ends, quorum.now + COLLECTED_S)

    def _add_node(self, *, spot: bool) -> None:
        self.nodes += 1
        self.quorum.add_node(f"{'spot' if spot else 'od'}-{self.nodes}", spot=spot)

    def _set_image(self, word: str) -> None:
        self.images += 1
        self.quorum.change(self.quorum.source, template=f"v{self.images}{word}")

    def _random_event(self) -> None:
        quorum, dice = self.quorum, self.dice
        nodes = sorted(quorum.nodes)
        spot = [name for name in nodes if quorum.nodes[name].spot]
        events: list[tuple[str, Callable[[], None]]] = [
            ("scaled", lambda: quorum.scale(dice.randint(0, 7))),
            ("set back by git", lambda: quorum.scale(quorum.wanted, "argocd-controller")),
            ("Split scaled", lambda: quorum.scale_split(dice.randint(0, 7))),
            ("unlabelled", lambda: quorum.label(on=False)),
            ("labelled", lambda: quorum.label(on=True)),
            ("replaced", lambda: quorum.replaced(dice.randint(1, 5))),
            ("image", lambda: self._set_image("")),
            ("broken image", lambda: self._set_image("-broken")),
            ("partition", lambda: quorum.change(quorum.source, partition=dice.randint(0, 7))),
            ("more spot", lambda: self._add_node(spot=True)),
            ("more on-demand", lambda: self._add_node(spot=False)),
            ("crash", self.splitter.crash),
        ]
        silent = [name for name in nodes if not quorum.nodes[name].ready]
        doomed = [name for name in nodes if quorum.nodes[name].doomed]
        events += [
            ("a quota", lambda: setattr(quorum, "quota", quorum.wanted + dice.choice([0, 1, 99]))),
            ("members end slowly", lambda: setattr(quorum, "stop_s", dice.choice([STOP_S, 60, 3600]))),
            ("all is tolerated", lambda: setattr(quorum, "tolerant", not quorum.tolerant)),
            ("who is noticed is drained", lambda: quorum.evict(*doomed)),
            ("notices are withdrawn", lambda: quorum.withdraw(*doomed)),
            ("all speak again", lambda: quorum.speak(*silent)),
        ]
        events += [(f"{name} falls silent", partial(quorum.silence, name)) for name in nodes[1:4]]
        events += [(f"notice {name}", partial(quorum.notice, name)) for name in nodes[:3]]
        events += [(f"{name} gone", partial(quorum.vanish, name)) for name in nodes[-2:]]
        events += [("all spot gone", lambda: quorum.vanish(*spot))]
        events += [(f"{pool} deleted", partial(quorum.delete_twin, pool)) for pool in quorum.twins]
        if quorum.split is not None:
            events.append(("Split deleted", lambda: setattr(quorum, "split", None)))
        name, act = dice.choice(events)
        act()
        self.splitter.woken = self.splitter.woken or name != "crash"
        self._say(f"--- {name}")


class Reported:
    """A story: the world acts, everybody answers in the fixed order, and it is written down."""

    def __init__(self, title: str, replicas: int, *, ordered: bool = False) -> None:
        self.quorum = Quorum(replicas, ordered=ordered)
        self.splitter = Splitter(self.quorum)
        kind = "OrderedReady" if ordered else "Parallel"
        self.lines = [f"# {title}", f"# N {replicas}, {kind}; a pod starts in 5 s and stops in 2 s", ""]
        self.least, self.most, self.least_majority = replicas, replicas, replicas
        self._held, self._spot = "", 0
        for number in (1, 2):
            self.quorum.add_node(f"od-{number}", spot=False)
        self._add_spot()
        self._measure = False
        self.wait(60)
        self._measure = True

    def restart(self) -> None:
        """Leave out what was told so far."""
        self.lines = [*self.lines[:3], f"{self._clock}  split since long: {self._counts()}"]
        self.least = self.most = self.least_majority = self.quorum.wanted

    def ready(self) -> dict[str, int]:
        """Count the ready members by where they are, source, on-demand, spot."""
        values: dict[str, int] = {}
        for owner in self.quorum.sets:
            count = sum(self.quorum.available(pod) for pod in self.quorum.of(owner))
            if count:
                values[owner.pool.value if owner.pool else "source"] = count
        return values

    def state(self) -> tuple[str, str]:
        """Return state and reason of the Split."""
        status = self.quorum.split.status if self.quorum.split else {}
        return str(status.get("state")), str(status.get("reason"))

    def message(self) -> str:
        """Return the sentence of the Split."""
        return str(self.quorum.split.status.get("message")) if self.quorum.split else ""

    def label(self) -> None:
        """Label the source."""
        self.quorum.label(on=True)
        self._happens("db is labelled")

    def unlabel(self) -> None:
        """Take the label away."""
        self.quorum.label(on=False)
        self._happens("the label is removed")

    def scale(self, replicas: int) -> None:
        """Run `kubectl scale statefulset`."""
        self.quorum.scale(replicas)
        self._happens(f"somebody scales the source to {replicas}")

    def scale_split(self, replicas: int) -> None:
        """Run `kubectl scale split`."""
        self.quorum.scale_split(replicas)
        self._happens(f"somebody scales the Split to {replicas}")

    def set_back(self, who: str) -> None:
        """Have somebody apply a manifest with the replicas of old."""
        self.quorum.scale(self.quorum.wanted, who)
        self._happens(f"{who} sets the source back to {self.quorum.wanted}")

    def notice(self) -> None:
        """Announce that all spot nodes go."""
        self.quorum.notice(*self._spot_nodes())
        self._happens("all spot nodes get a notice")

    def notice_under(self, ordinal: int) -> None:
        """Announce that the node of one member goes."""
        node = self._node_of(ordinal)
        self.quorum.notice(node)
        self._happens(f"{node}, of the member {ordinal}, gets a notice")

    def silence_under(self, *ordinals: int) -> None:
        """Let the nodes of members say nothing any more, for ever."""
        nodes = list(dict.fromkeys(map(self._node_of, ordinals)))
        self.quorum.silence(*nodes)
        self._happens(f"{' and '.join(nodes)} fall silent")

    def speak(self) -> None:
        """Let all nodes speak again."""
        silent = [name for name, node in self.quorum.nodes.items() if not node.ready]
        self.quorum.speak(*silent)
        self._happens(f"{' and '.join(silent)} speak again")

    def drain_under(self, ordinal: int, stop_s: int) -> None:
        """Drain the node of one member, which needs so long to end."""
        node, self.quorum.stop_s = self._node_of(ordinal), stop_s
        self.quorum.notice(node)
        self._happens(f"{node} is cordoned")
        self.quorum.evict(node)
        self._happens(f"{node} is drained")

    def crash(self, ordinal: int) -> None:
        """Let a member of on-demand crash, again and again."""
        name = self.quorum.twins[Pool.ON_DEMAND].name
        self.quorum.crashing.add((name, ordinal))
        for pod in self.quorum.members.values():
            if (pod.owner, pod.ordinal) == (name, ordinal):
                pod.ready_since, pod.unready_since = None, self.quorum.now
        self._happens(f"{name}-{ordinal} crashes")

    def vanish_under(self, ordinal: int) -> None:
        """Take the node of one member away, without a sign before."""
        node = self._node_of(ordinal)
        self.quorum.vanish(node)
        self._happens(f"{node} is gone")

    def _node_of(self, ordinal: int) -> str:
        return next(pod.node or "" for pod in self.quorum.members.values() if pod.ordinal == ordinal)

    def unannotate(self) -> None:
        """Run `kubectl annotate statefulset db splitter.io/replicas-`."""
        self.quorum.source.annotations.pop(ANNOTATION_REPLICAS)
        self.quorum.source.version = self.quorum.version()
        self._happens("somebody removes the annotation with N")

    def image(self, template: str) -> None:
        """Run `kubectl set image`."""
        self.quorum.change(self.quorum.source, template=template)
        self._happens(f"db gets the image of {template}")

    def vanish(self) -> None:
        """Take all spot nodes away."""
        self.quorum.vanish(*self._spot_nodes())
        self._happens("all spot nodes are gone")

    def return_spot(self) -> None:
        """Bring two spot nodes."""
        self._add_spot()
        self._happens("two spot nodes come")

    def wait(self, seconds: int) -> None:
        """Let time pass, second by second where something goes on."""
        end, idle = self.quorum.now + seconds, 0
        while self.quorum.now < end:
            idle = 0 if self._settle() else idle + 1
            self.quorum.now = min(end, self.quorum.now + (1 if idle < 90 else 60))
        self._settle()

    def _spot_nodes(self) -> list[str]:
        return [name for name, node in self.quorum.nodes.items() if node.spot]

    def _add_spot(self) -> None:
        for _ in range(2):
            self._spot += 1
            self.quorum.add_node(f"spot-{self._spot}", spot=True)

    def _happens(self, text: str) -> None:
        self.lines.append(f"{self._clock}  {text}")
        self.splitter.woken = True
        self._note()
        self._settle()

    def _settle(self) -> bool:
        """Let everybody act until nothing changes; splitter first, as a notice would wake it."""
        quorum, acted = self.quorum, False
        for _ in range(200):
            changed = self._reconcile() if self.splitter.is_due() else False
            changed = run_kubelets(quorum) or changed
            for owner in quorum.sets:
                changed = sync(quorum, owner) or changed
            changed = schedule(quorum) or changed
            self._note()
            if not changed:
                return acted
            acted = True
        raise BrokenPromiseError("\n".join(["never settles", *self.lines[-12:]]))

    def _reconcile(self) -> bool:
        counts = self._counts()
        result = self.splitter.begin()
        done: list[Action] = []
        while self.splitter.pending:
            action = self.splitter.write_next()
            if action is None:
                break
            done.append(action)
        verdict = f"{result.verdict.message} ({result.verdict.reason})"
        if done:
            self.lines += [f"{self._clock}  {counts}", f"    -> {'; '.join(map(_said, done))}"]
            why = result.verdict.message.partition(": ")[2] if verdict.startswith("scale ") else verdict
            if why:
                self.lines.append(f"       {why}")
        elif (said := f"{result.state} {result.verdict.reason}") != self._held:
            self.lines += [f"{self._clock}  {counts}", f"       {result.state}: {verdict}"]
            self._held = said
        return bool(done)

    def _note(self) -> None:
        if not self._measure:
            return
        quorum = self.quorum
        self.least = min(self.least, sum(map(quorum.serves, quorum.members.values())))
        placed = [pod for pod in quorum.members.values() if pod.active and pod.node in quorum.nodes]
        self.most = max(self.most, len(placed))
        on_spot = sum(pod.pool is Pool.SPOT for pod in placed)
        self.least_majority = min(self.least_majority, len(placed) - 2 * on_spot)

    @property
    def _clock(self) -> str:
        at = self.quorum.now - 60
        return f"{at // 60:02}:{at % 60:02}"

    def _counts(self) -> str:
        quorum = self.quorum
        return "  ".join(
            f"{owner.pool.value if owner.pool else 'source'}"
            f" {owner.replicas}/{sum(map(quorum.available, quorum.of(owner)))}"
            for owner in quorum.sets
        )


def split(title: str, replicas: int = 5, *, local_volumes: bool = False) -> Reported:
    """Return a story of a StatefulSet that is already split, told from there on."""
    story = Reported(title, replicas)
    story.quorum.local_volumes = local_volumes
    story.label()
    story.wait(600)
    story.restart()
    return story


def _said(action: Action) -> str:
    match action:
        case Scale():
            return f"scale {action.name} {action.was} -> {action.replicas} ({action.replicas - action.was:+})"
        case ApplyTwin():
            verb = "create" if action.resource_version is None else "update"
            return f"{verb} {action.pool} twin as {action.hash} at {action.replicas}"
        case _:
            return describe(action)
