"""Splitter in the StatefulSet explorer: one process, a judge of each of its writes, and what is at rest."""

from collections import deque

from model.quorum_world import (
    BrokenPromiseError,
    Quorum,
    StatefulSet,
    leftovers,
    lowered,
    observe,
    remaining,
    render,
    unshared,
    write,
)
from splitter.core.actions import Action, Scale
from splitter.core.division import base_replicas
from splitter.core.handover import Step
from splitter.core.labels_annotations import ANNOTATION_REPLICAS, LABEL_SPLIT
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Observation, Pool
from splitter.core.plan import Plan, PolicyInForce, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.report.status import build
from stories.cluster import LostRaceError

POLICY = Policy(on_demand_base="majority")
RULES = Rules()


class Splitter:
    """One process of splitter: reconciles, and their writes one by one."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.pending: deque[Action] = deque()
        self.last: tuple[Observation, Plan, PolicyInForce] | None = None
        self.seen = quorum
        self.woken = False

    def concerns(self) -> bool:
        """Whether anything leads here: a label, a Split, a twin, an event, or a look that is due."""
        quorum = self.quorum
        here = LABEL_SPLIT in quorum.source.labels or quorum.split is not None or bool(quorum.twins)
        again = self.last is not None and self.last[1].step is not Step.NOTHING
        return here or self.woken or again

    def begin(self) -> Plan:
        """Observe and plan; the writes come with `write_next`."""
        quorum = self.quorum
        observed = observe(quorum)
        in_force = policy_in_force(observed, RULES.defaults)
        planned = plan(observed, in_force, render(observed, in_force.policy), RULES)
        self.pending, self.last = deque(planned.actions), (observed, planned, in_force)
        self.seen = unshared(quorum)
        self.woken = bool(planned.actions)
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
        self._counted = {uid: quorum.serves(member) for uid, member in quorum.members.items()}
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
    """Return N + S, and what a shortage adds."""
    rebalance = quorum.split.status.get("rebalance", {}) if quorum.split else {}
    short = isinstance(rebalance, dict) and bool({"lost", "shortSince"} & rebalance.keys())
    waits = any(pod.unschedulable_since is not None for pod in quorum.members.values())
    return quorum.wanted + 1 + (quorum.wanted if short or waits else 0)


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
            ready = sum(quorum.serves(pod) for pod in quorum.of(twin)) if twin else 0
            if twin is None or (twin.replicas, ready) != (replicas, replicas):
                collected.append(f"{pool}: {twin.replicas if twin else None}/{ready}, wanted {replicas}")
            elif not twin.template.startswith(quorum.source.template):
                collected.append(f"{pool} runs {twin.template}")
        shown = split.replicas if split is not None else None
        return collected if shown == quorum.wanted else [*collected, f"the Split shows {shown}"]
    collected = [trace for trace in leftovers(quorum) if trace != "Split" or not conflicted]
    ready = sum(quorum.serves(pod) for pod in quorum.of(quorum.source))
    return (
        collected
        if ready == quorum.source.replicas
        else [*collected, f"source {quorum.source.replicas}/{ready}"]
    )
