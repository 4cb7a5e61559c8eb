"""A life by dice: everybody acts in any order, late, and splitter crashes; the promises hold.

`Life(seed).run()` lets the world do a number of random things, then leaves it alone with enough nodes and
checks that a steady state is reached. The same seed gives the same life.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from model import budgets
from model.budgets import Guarded
from model.cluster import Cluster, Pod, copied
from model.controllers import actors, next_due
from model.hands import Hands
from model.informers import Informers
from model.kubelets import fall_ill
from model.promises import (
    CONTROLLER,
    BrokenPromiseError,
    Promises,
    check_action,
    traces,
    unsettled,
)
from model.reconciles import Splitter
from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.plan import Rules

POLICY = Policy(on_demand_base=1, spot_percent=75)
PAST_STEPS = 8  # so far back splitter may see
SETTLED_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps


@dataclass(frozen=True)
class Habits:
    """What goes on all through a life, beside what happens once; probabilities a step, or an event."""

    by_hand: bool = False
    """People lay hands on what splitter has made, and replicas fall ill."""
    lags: bool = False
    """The controllers see late what has changed."""
    loses: float = 0
    """The answer to a write does not come."""
    stale: float = 0
    """Splitter sees the pods as they were some steps ago."""
    scales: float = 0
    """An autoscaler changes the source's count."""
    together: float = 0
    """The next thing happens at once."""

    @classmethod
    def of(cls, dice: Random) -> "Habits":
        """Return some: one life in four has none of them."""
        if dice.random() < 0.25:
            return cls()
        return cls(
            dice.random() < 0.7,
            dice.random() < 0.3,
            dice.choice([0, 0, 0, 0.05, 0.3]),
            dice.choice([0, 0, 0, 0.2, 0.6]),
            dice.choice([0, 0, 0.02, 0.1]),
            dice.choice([0, 0, 0.3]),
        )


class Life:
    """One random run."""

    def __init__(self, seed: int, habits: Habits | None = None) -> None:
        self.dice = Random(seed)
        self.habits = habits if habits is not None else Habits.of(Random(f"habits of {seed}"))
        dice = self.dice
        self.cluster = Cluster(dice.randint(0, 8), dice.choice([0, 1, 1, 2, 3]), dice.randint(0, 2))
        self.cluster.start_s, self.cluster.stop_s = dice.choice([1, 5, 20]), dice.choice([1, 5])
        self.cluster.tolerates_silence = seed % 4 == 0
        self.cluster.tolerates_everything = seed % 8 == 0
        self.cluster.stalls_as_kubernetes = False  # it would stop a life that splitter has no part in
        self.cluster.budgets_refused_until = 0
        self.cluster.min_ready_s = dice.choice([0, 0, 10, 60])
        self.cluster.notice_s = dice.choice([None, None, 30.0, 120.0])
        self.promises = Promises(self.cluster)
        self.guarded = Guarded(self.cluster)
        self.splitter = Splitter(self.cluster, Rules(defaults=POLICY))
        self.splitter.judge = lambda action: check_action(self.cluster, action)
        self.splitter.loses_answer = lambda: dice.random() < self.habits.loses
        self.seen_turn = 0
        self.past: deque[tuple[int, dict[str, Pod]]] = deque(maxlen=PAST_STEPS)
        """How the pods were, with the turn of the world."""
        self.hands = Hands(self.cluster, dice, self.splitter, self.guarded)
        self.hands.by_hand = self.habits.by_hand
        if self.habits.lags:
            self.cluster.informers = Informers(self.cluster)
        self.log: deque[str] = deque(maxlen=80)
        for spot in (False, False, True, True, True):
            self.hands.add_node(spot=spot)
        self._settle()
        self.cluster.now += 30
        self._settle()

    def run(self, events: int = 18, steps_between: int = 25) -> None:
        """Live, then come to rest."""
        self.cluster.label(on=True)
        self._world("labelled", lambda: None)
        if self.dice.random() < 0.5:  # else it may begin in the middle of the hand-over
            self._settle()
            self._world("time", self.hands.pass_time)
            self._settle()
        for _ in range(events):
            for _ in range(self.dice.randint(0, steps_between)):
                self._random_step()
            self._world(*self.hands.next())
            while self.dice.random() < self.habits.together:
                self._world(*self.hands.next())
        self._leave_alone()
        self._rest()

    def _tell(self, text: str) -> None:
        if not self.log or self.log[-1][7:] != text:
            self.log.append(f"{self.cluster.now:6} {text}")

    # The world.

    def _world(self, what: str, act: Callable[[], object]) -> None:
        self._tell(f"WORLD {what}")
        with self.promises.world():
            act()

    # Everybody else.

    def _random_step(self) -> None:
        if self.habits.stale:
            pods = {name: copied(pod) for name, pod in self.cluster.pods.items()}
            self.past.append((self.promises.world_turns, pods))
        if self.dice.random() < self.habits.scales:
            self._world(*self.hands.scaled())
        if self.dice.random() < 0.25:
            self.cluster.now += self.dice.choice([0, 1, 1, 2, 5])
        if self.dice.random() < 0.4:
            self._splitter_step()
            return
        if self.cluster.drains and self.dice.random() < 0.2:
            self._drain()
            return
        if self.dice.random() < 0.1 and self._fall_ill():
            return
        act = self.dice.choice([*actors(self.cluster), *budgets.actors(self.cluster)])
        with self.promises.step(CONTROLLER):
            act()

    def _fall_ill(self) -> bool:
        changed = fall_ill(self.cluster)
        if changed:
            self.promises.happened()
        return changed

    def _drain(self) -> bool:
        drains = dict(self.cluster.drains)
        changed = self.guarded.drain()
        if changed:
            self.promises.happened()
            self._tell(f"WORLD evicted of {list(drains)}, still drained {list(self.cluster.drains)}")
        return changed

    def _look(self) -> None:
        """Decide what splitter sees: all there is, or the pods as they were, but for its own writes."""
        self.splitter.cache, self.seen_turn = self.cluster, self.promises.world_turns
        if not self.past or self.dice.random() >= self.habits.stale:
            return
        self.seen_turn, pods = self.dice.choice(self.past)
        view = copied(self.cluster)
        view.pods = {name: copied(pod) for name, pod in pods.items()}
        for name, seen in view.pods.items():
            if (pod := self.cluster.pods.get(name)) is not None:
                seen.cost, seen.cost_before, seen.label = pod.cost, pod.cost_before, pod.label
                seen.cost_at = pod.cost_at
        self.splitter.cache = view

    def _splitter_step(self) -> None:
        if not self.splitter.pending:
            self._look()
            self.promises.look(self.splitter.cache)
            result = self.splitter.begin()
            self.guarded.look(result)
            self._tell(f"{result.step} {result.state} {result.verdict.message[:150]}")
            if not self.splitter.pending:
                self.guarded.written()
            return
        action = self.splitter.pending[0]
        # What the world did after it looked, it cannot know.
        self.promises.excused = self.seen_turn < self.promises.world_turns
        with self.promises.step(f"{self.cluster.now} {action}"):
            done = self.splitter.write_next()
        self.promises.excused = False
        if not done:
            self.guarded.missed()
        elif not self.splitter.pending:
            self.guarded.written()
        self._tell(f"  {'wrote' if done else 'LOST'} {str(action)[:150]}")

    def _leave_alone(self) -> None:
        """Give everybody what is needed, and let nothing happen from now on."""
        cluster = self.cluster

        def mend() -> None:
            for node in list(cluster.nodes.values()):
                if (node.doomed and node.name not in cluster.drains) or not node.ready:
                    cluster.vanish(node.name)
            for name in [one for one in cluster.budgets if one != budgets.GUARD]:
                budget = cluster.budgets[name]
                if budget.min_available or budget.selects or self.dice.random() < 0.5:
                    del cluster.budgets[name]
            for pod in [pod for pod in cluster.pods.values() if pod.ill or pod.taken_out]:
                cluster.terminate(pod)
            self.splitter.clock_off_s = 0
            cluster.annotate(freeze=None, dry_run=None, on_demand_max=None)
            cluster.quota, cluster.registry_answers, self.splitter.refused_until = None, True, 0
            for spot in (True, True, True, False, False, False):
                self.hands.add_node(spot=spot, slots=12)
            self.hands.mend_image()
            if cluster.source.paused and not cluster.source.paused_by_us:
                cluster.unpause()

        self.habits = Habits(lags=self.habits.lags)
        self._world("left alone, with enough nodes", mend)

    def _settle(self) -> None:
        for _ in range(500):
            changed = False
            for act in [*actors(self.cluster), *budgets.actors(self.cluster)]:
                with self.promises.step(CONTROLLER):
                    changed = act() or changed
            if self.cluster.drains:
                changed = self._drain() or changed
            changed = self._fall_ill() or changed
            if not changed and not self._whole_reconcile():
                return
        raise BrokenPromiseError("never settles")

    def _whole_reconcile(self) -> bool:
        while self.splitter.pending:
            self._splitter_step()
        self._splitter_step()
        wrote = bool(self.splitter.pending)
        while self.splitter.pending:
            self._splitter_step()
        return wrote

    def _rest(self) -> None:
        end = self.cluster.now + SETTLED_WITHIN_S
        self._settle()
        while self._unrest():
            due = next_due(self.cluster)
            if self.splitter.wake_at is not None and self.splitter.wake_at > self.cluster.now:
                due.append(self.splitter.wake_at)
            # Without anything due, the resync comes.
            self.cluster.now = min(due, default=self.cluster.now + 60)
            if self.cluster.now > end:
                raise BrokenPromiseError(f"no rest: {'; '.join(self._unrest())}")
            self._settle()

    def _unrest(self) -> list[str]:
        cluster = self.cluster
        labelled = "splitter.io/split" in cluster.source.labels
        conflict = cluster.split is not None and "conflict" in cluster.split.status
        if labelled and not conflict:
            policy = parse_policy(cluster.source.annotations, POLICY, None).policy or POLICY
            return [
                *unsettled(cluster, base_replicas(cluster.source.replicas, policy)),
                *budgets.unsettled(cluster),
            ]
        left = traces(cluster)
        guard = cluster.budgets.get(budgets.GUARD)
        # Without an owner, and with its deletion refused, it stays: that stops nothing (G12).
        if guard is not None and (guard.split or not cluster.budgets_refused_until):
            left.append(guard.name)
        left += [f"{name} is still drained" for name in cluster.drains]
        return [trace for trace in left if trace != "Split"] if conflict and labelled else left
