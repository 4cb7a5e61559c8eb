"""A life by dice: everybody acts in any order, late, and splitter crashes; the promises hold.

`Life(seed).run()` lets the world do a number of random things, then leaves it alone with enough nodes and
checks that a steady state is reached. The same seed gives the same life.
"""

from collections import deque
from collections.abc import Callable
from random import Random

from splitter.core.division import base_replicas
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.plan import Rules
from stories import budgets
from stories.budgets import Guarded
from stories.cluster import Cluster, Pod
from stories.controllers import actors, next_due
from stories.promises import (
    CONTROLLER,
    BrokenPromiseError,
    Promises,
    check_action,
    traces,
    unsettled,
)
from stories.reconciles import Splitter

POLICY = Policy(on_demand_base=1, spot_percent=75)
SETTLED_WITHIN_S = 8 * 3600  # the longest soak is an hour, on-demand then leaves in steps


class Life:
    """One random run."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
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
        self.seen_turn = 0
        self.nodes = 0
        self.images = 1
        self.log: deque[str] = deque(maxlen=80)
        for spot in (False, False, True, True, True):
            self._add_node(spot=spot)
        self._settle()
        self.cluster.now += 30
        self._settle()

    def run(self, events: int = 18, steps_between: int = 25) -> None:
        """Live, then come to rest."""
        self.cluster.label(on=True)
        self._world("labelled", lambda: None)
        if self.dice.random() < 0.5:  # else it may begin in the middle of the hand-over
            self._settle()
            self._world("time", self._pass_time)
            self._settle()
        for _ in range(events):
            for _ in range(self.dice.randint(0, steps_between)):
                self._random_step()
            self._random_event()
        self._leave_alone()
        self._rest()

    def _tell(self, text: str) -> None:
        if not self.log or self.log[-1][7:] != text:
            self.log.append(f"{self.cluster.now:6} {text}")

    # The world.

    def _add_node(self, *, spot: bool, slots: int | None = None) -> None:
        self.nodes += 1
        self.cluster.add_node(
            f"{'spot' if spot else 'od'}-{self.nodes}",
            spot=spot,
            slots=slots or (self.dice.randint(2, 6) if spot else 12),
        )

    def _world(self, what: str, act: Callable[[], None]) -> None:
        self._tell(f"WORLD {what}")
        with self.promises.world():
            act()

    def _random_event(self) -> None:
        cluster, dice = self.cluster, self.dice
        spot = [node.name for node in cluster.nodes.values() if node.spot]
        sound = [node.name for node in cluster.nodes.values() if node.spot and node.ready]
        unready = [node.name for node in cluster.nodes.values() if not node.ready]
        labelled = "splitter.io/split" in cluster.source.labels
        if dice.random() < 0.25:
            what, act = dice.choice(self._evictions())
            self._world(what, act)
            return
        events: list[tuple[str, Callable[[], None]]] = [
            ("scaled", lambda: cluster.change_spec(cluster.source, replicas=dice.randint(0, 8))),
            ("scaled", lambda: cluster.change_spec(cluster.source, replicas=dice.randint(1, 8))),
            ("a new image", self._new_image),
            ("label flipped", lambda: cluster.label(on=not labelled)),
            ("time", self._pass_time),
            ("time", self._pass_time),
            ("a node comes", lambda: self._add_node(spot=True)),
            ("splitter crashes", self.splitter.crash),
        ]
        if spot:
            name = dice.choice(spot)
            events += [
                (f"notice for {name}", lambda: cluster.notice(name)),
                (f"{name} vanishes", lambda: cluster.vanish(name)),
                ("notice for all spot", lambda: cluster.notice(*spot)),
            ]
        if sound:
            lost = dice.choice(sound)
            events.append((f"{lost} is unready", lambda: cluster.unready(lost)))
        if unready:
            result = dice.choice(unready)
            events.append((f"{result} is ready again", lambda: cluster.ready_again(result)))
        if cluster.twins:
            pool = dice.choice(list(cluster.twins))
            events.append((f"{pool} twin deleted", lambda: cluster.delete_twin(pool)))
        if cluster.source.paused:
            events.append(("kubectl rollout resume", cluster.unpause))
        if labelled:
            events.append(("kubectl replace", self._replace))
        what, act = dice.choice(events if dice.random() < 0.5 else self._rarer_events())
        self._world(what, act)

    def _rarer_events(self) -> list[tuple[str, Callable[[], None]]]:
        """Return what people change about the workload and its surroundings, and what goes on on-demand."""
        cluster, dice = self.cluster, self.dice
        base, percent = dice.choice(["0", "1", "2", "4", "majority"]), dice.choice(["0", "50", "80", "100"])
        most, order = dice.choice(["3", "8", None, None]), dice.choice(["spot-first", "on-demand-first"])
        soak, grace = dice.choice(["1s", "60s", "10m"]), dice.choice(["0s", "30s", "180s"])
        freeze, dry_run = dice.choice(["true", None]), dice.choice(["true", None, None])
        quota = dice.choice([None, None, cluster.source.replicas, cluster.source.replicas + 2])
        answers = dice.random() < 2 / 3
        events: list[tuple[str, Callable[[], None]]] = [
            (f"on-demand-base={base}", lambda: cluster.annotate(on_demand_base=base)),
            (f"spot-percent={percent}", lambda: cluster.annotate(spot_percent=percent)),
            (f"on-demand-max={most}", lambda: cluster.annotate(on_demand_max=most)),
            (f"soak={soak} grace={grace}", lambda: cluster.annotate(soak=soak, grace=grace)),
            (f"freeze={freeze}", lambda: cluster.annotate(freeze=freeze)),
            (f"dry-run={dry_run}", lambda: cluster.annotate(dry_run=dry_run)),
            (f"rollout-order={order}", lambda: cluster.annotate(rollout_order=order)),
            ("another strategy", self._new_strategy),
            (f"a quota of {quota}", lambda: setattr(cluster, "quota", quota)),
            (f"the registry answers: {answers}", lambda: setattr(cluster, "registry_answers", answers)),
            ("writes are refused for a minute", self._refuse_writes),
            ("an on-demand node comes", lambda: self._add_node(spot=False)),
        ]
        on_demand = [node.name for node in cluster.nodes.values() if not node.spot]
        if len(on_demand) > 1:
            name = dice.choice(on_demand)
            events += [
                (f"notice for {name}", lambda: cluster.notice(name)),
                (f"{name} vanishes", lambda: cluster.vanish(name)),
            ]
        if cluster.twins and dice.random() < 0.3:
            pool = dice.choice(list(cluster.twins))
            events.append((f"{pool} twin edited", lambda: cluster.edit_twin(pool, "v666-edited")))
        return events

    def _evictions(self) -> list[tuple[str, Callable[[], None]]]:
        """Return what people do about evictions, and who evicts."""
        cluster, dice = self.cluster, self.dice
        how = dice.choice(["one-at-a-time", "surge-first", "surge-first", "unguarded", None])
        kind, back = dice.choice(["least", "all", "most", "spot", "on-demand"]), dice.random() < 0.5
        events: list[tuple[str, Callable[[], None]]] = [
            (f"evictions={how}", lambda: cluster.annotate(evictions=how)),
            (f"a user's budget, {kind}", lambda: budgets.of_a_user(cluster, kind)),
            ("budgets are refused for a minute", self._refuse_budgets),
        ]
        if cluster.budgets and dice.random() < 0.5:
            events.append(("no user's budget", self._withdraw_budgets))
        if (guard := cluster.budgets.get(budgets.GUARD)) is not None:
            events.append(("the guard loses its owner", lambda: setattr(guard, "split", "")))
        if cluster.pods:
            pod = cluster.pods[dice.choice(list(cluster.pods))]
            events += [(f"{pod.name} is evicted", lambda: self._evict(pod))] * 3
        name = dice.choice(list(cluster.nodes))
        others = [one for one in cluster.nodes.values() if one.name != name]
        if cluster.nodes[name].ready and any(not one.spot and not one.doomed for one in others):
            events += [(f"kubectl drain {name}, back: {back}", lambda: self._begin(name, back=back))] * 4
        if cluster.nodes[name].doomed:
            events.append((f"kubectl uncordon {name}", lambda: self._uncordon(name)))
        return events

    def _evict(self, pod: Pod) -> None:
        self.guarded.evict(pod)

    def _begin(self, name: str, *, back: bool) -> None:
        node = self.cluster.nodes[name]
        node.cordoned = node.cordoned or not node.doomed
        node.doomed, self.cluster.drains[name] = True, back

    def _uncordon(self, name: str) -> None:
        self.cluster.nodes[name].doomed = self.cluster.nodes[name].cordoned = False
        self.cluster.drains.pop(name, None)

    def _withdraw_budgets(self) -> None:
        for name in [one for one in self.cluster.budgets if one != budgets.GUARD]:
            del self.cluster.budgets[name]

    def _refuse_budgets(self) -> None:
        self.cluster.budgets_refused_until = self.cluster.now + 60

    def _refuse_writes(self) -> None:
        self.splitter.refused_until = self.cluster.now + 60

    def _new_strategy(self) -> None:
        surge = self.dice.randint(0, 3)
        unavailable = self.dice.randint(0, 2) if surge else self.dice.randint(1, 2)
        self.cluster.change_spec(self.cluster.source, max_surge=surge, max_unavailable=unavailable)

    def _new_image(self) -> None:
        self.images += 1
        word = dice_word(self.dice, self.images)
        self.cluster.change_spec(self.cluster.source, template=word)

    def _replace(self) -> None:
        self.cluster.source.labels.pop("splitter.io/split", None)
        self.cluster.source.annotations.clear()
        self.cluster.source.version = self.cluster.version()

    def _pass_time(self) -> None:
        self.cluster.now += self.dice.choice([10, 60, 200, 700])

    # Everybody else.

    def _random_step(self) -> None:
        if self.dice.random() < 0.25:
            self.cluster.now += self.dice.choice([0, 1, 1, 2, 5])
        if self.dice.random() < 0.4:
            self._splitter_step()
            return
        if self.cluster.drains and self.dice.random() < 0.2:
            self._drain()
            return
        act = self.dice.choice([*actors(self.cluster), *budgets.actors(self.cluster)])
        with self.promises.step(CONTROLLER):
            act()

    def _drain(self) -> bool:
        drains = dict(self.cluster.drains)
        changed = self.guarded.drain()
        if changed:
            self.promises.happened()
            self._tell(f"WORLD evicted of {list(drains)}, still drained {list(self.cluster.drains)}")
        return changed

    def _splitter_step(self) -> None:
        if not self.splitter.pending:
            self.seen_turn = self.promises.world_turns
            self.promises.look()
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
            cluster.annotate(freeze=None, dry_run=None, on_demand_max=None)
            cluster.quota, cluster.registry_answers, self.splitter.refused_until = None, True, 0
            for spot in (True, True, True, False, False, False):
                self._add_node(spot=spot, slots=12)
            if "broken" in cluster.source.template:
                self.images += 1
                cluster.change_spec(cluster.source, template=f"v{self.images}")

        self._world("left alone, with enough nodes", mend)

    def _settle(self) -> None:
        for _ in range(500):
            changed = False
            for act in [*actors(self.cluster), *budgets.actors(self.cluster)]:
                with self.promises.step(CONTROLLER):
                    changed = act() or changed
            if self.cluster.drains:
                changed = self._drain() or changed
            if not changed and not self._whole_reconcile():
                return
        raise BrokenPromiseError("never settles")

    def _whole_reconcile(self) -> bool:
        if (
            "splitter.io/split" not in self.cluster.source.labels
            and self.cluster.split is None
            and not (self.cluster.twins or self.cluster.released())
        ):
            return False
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


def dice_word(dice: Random, number: int) -> str:
    """Return a new template: one in four is broken, one in four is an old one again."""
    kind = dice.random()
    if kind < 0.25:
        return f"v{number}-broken"
    return f"v{number}" if kind < 0.75 else f"v{dice.randint(1, number)}"
