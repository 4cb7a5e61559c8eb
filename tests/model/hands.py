"""What people, their tools and clouds do in a random life: a table of hands, each with its words.

A `Hand` is what `Life` writes down and a function that does it. Which ones there are depends on what there
is just now. The dice are the life's own, so the same seed gives the same hands.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from model import budgets
from model.cluster import Cluster, Ill, Node, Pod
from model.kubelets import fail
from model.reconciles import Splitter

Hand = tuple[str, Callable[[], object]]


class Hands:
    """All that one life may be struck by."""

    def __init__(self, cluster: Cluster, dice: Random, splitter: Splitter, guarded: budgets.Guarded) -> None:
        self.cluster = cluster
        self.dice = dice
        self.splitter = splitter
        self.guarded = guarded
        self.nodes = 0
        self.images = 1
        self.by_hand = False
        """Whether people lay hands on what splitter has made, and replicas fall ill."""

    def next(self) -> Hand:
        """Return what happens next."""
        if self.dice.random() < 0.25:
            return self.dice.choice(self._evictions())
        if self.by_hand and self.dice.random() < 0.4:
            return self.dice.choice([*self._on_ours(), *self._on_pods(), *self._around()])
        frequent = self._frequent()
        return self.dice.choice(frequent if self.dice.random() < 0.5 else self._rarer())

    def scaled(self) -> Hand:
        """Return a step of an autoscaler."""
        was, step = self.cluster.source.replicas, self.dice.choice([-3, -1, 1, 2, 4])
        count = min(max(0, was + step), 9)
        return f"scaled to {count}", lambda: self.cluster.change_spec(self.cluster.source, replicas=count)

    def add_node(self, *, spot: bool, slots: int | None = None) -> None:
        """Bring a node."""
        self.nodes += 1
        self.cluster.add_node(
            f"{'spot' if spot else 'od'}-{self.nodes}",
            spot=spot,
            slots=slots or (self.dice.randint(2, 6) if spot else 12),
        )

    def mend_image(self) -> None:
        """Give the source an image that works, if it has none."""
        if {"broken", "crashing"} & set(self.cluster.source.template.split("-")):
            self.images += 1
            self.cluster.change_spec(self.cluster.source, template=f"v{self.images}")

    def pass_time(self) -> None:
        """Let time pass in which nobody acts."""
        self.cluster.now += self.dice.choice([10, 60, 200, 700])

    def _frequent(self) -> list[Hand]:
        cluster, dice = self.cluster, self.dice
        spot = [node.name for node in cluster.nodes.values() if node.spot]
        sound = [node.name for node in cluster.nodes.values() if node.spot and node.ready]
        unready = [node.name for node in cluster.nodes.values() if not node.ready]
        labelled = "splitter.io/split" in cluster.source.labels
        events: list[Hand] = [
            ("scaled", lambda: cluster.change_spec(cluster.source, replicas=dice.randint(0, 8))),
            ("scaled", lambda: cluster.change_spec(cluster.source, replicas=dice.randint(1, 8))),
            ("a new image", self._new_image),
            ("label flipped", lambda: cluster.label(on=not labelled)),
            ("time", self.pass_time),
            ("time", self.pass_time),
            ("a node comes", lambda: self.add_node(spot=True)),
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
        return events

    def _rarer(self) -> list[Hand]:
        """Return what people change about the workload and its surroundings, and what goes on on-demand."""
        cluster, dice = self.cluster, self.dice
        base, percent = dice.choice(["0", "1", "2", "4", "majority"]), dice.choice(["0", "50", "80", "100"])
        most, order = dice.choice(["3", "8", None, None]), dice.choice(["spot-first", "on-demand-first"])
        soak, grace = dice.choice(["1s", "60s", "10m"]), dice.choice(["0s", "30s", "180s"])
        freeze, dry_run = dice.choice(["true", None]), dice.choice(["true", None, None])
        quota = dice.choice([None, None, cluster.source.replicas, cluster.source.replicas + 2])
        answers = dice.random() < 2 / 3
        events: list[Hand] = [
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
            ("an on-demand node comes", lambda: self.add_node(spot=False)),
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

    def _on_ours(self) -> list[Hand]:
        """Return what people do to what splitter has made, one line of kubectl each."""
        cluster, dice, count = self.cluster, self.dice, self.dice.randint(0, 8)
        paused = not cluster.source.paused
        events: list[Hand] = [
            (
                f"kubectl rollout pause the source: {paused}",
                lambda: cluster.change_spec(cluster.source, paused=paused, paused_by_us=False),
            )
        ]
        for pool, twin in cluster.twins.items():
            events += [
                (
                    f"kubectl scale {twin.name} to {count}",
                    partial(cluster.change_spec, twin, replicas=count),
                ),
                (
                    f"kubectl rollout pause {twin.name}: {not twin.paused}",
                    partial(cluster.change_spec, twin, paused=not twin.paused),
                ),
                (f"kubectl delete {twin.name}", partial(cluster.delete_twin, pool)),
            ]
        if cluster.split is not None:
            events.append(("kubectl delete the Split", partial(setattr, cluster, "split", None)))
        if budgets.GUARD in cluster.budgets:
            events.append(("kubectl delete the guard", partial(cluster.budgets.pop, budgets.GUARD)))
        # Not while pods have no owner: then nothing but these ReplicaSets knows what the pods are made of.
        unowned = cluster.orphans() or any(rs.deleting for rs in cluster.replica_sets.values())
        if (sets := cluster.released()) and not unowned:
            rs = dice.choice(sets)
            events.append((f"kubectl delete {rs.name}", partial(cluster.remove_replica_set, rs)))
        return events

    def _on_pods(self) -> list[Hand]:
        """Return what becomes of one replica."""
        cluster, dice = self.cluster, self.dice
        active = [pod for pod in cluster.pods.values() if pod.active]
        ready = [pod for pod in active if cluster.serves(pod)]
        events: list[Hand] = []
        if active:
            pod = dice.choice(active)
            events.append((f"kubectl delete {pod.name}", partial(cluster.terminate, pod)))
            if pod.owner:
                events += [
                    (f"{pod.name} gets pod-template-hash=debug", partial(_take_out, pod, hash="debug")),
                    (f"{pod.name} loses our labels", partial(_take_out, pod, label=None)),
                ]
        if ready:
            pod, seconds = dice.choice(ready), dice.choice([2, 30, 300])
            events.append((f"{pod.name} is not ready for {seconds} s", partial(fail, cluster, pod, seconds)))
            events += [
                (f"{pod.name} is ill, {how.value}", partial(_sicken, cluster, pod, how)) for how in Ill
            ]
        return events

    def _around(self) -> list[Hand]:
        """Return what others do to what is around the workload."""
        dice = self.dice
        off_s, free = dice.choice([0, 30, -30, 300, -300, 4000, -4000]), dice.choice([0, 1, 12])
        on_demand = [node for node in self.cluster.nodes.values() if not node.spot]
        return [
            (
                f"splitter's clock is wrong by {off_s} s",
                partial(setattr, self.splitter, "clock_off_s", off_s),
            ),
            (f"others leave {free} places on on-demand", partial(_leave_room, self.cluster, on_demand, free)),
        ]

    def _evictions(self) -> list[Hand]:
        """Return what people do about evictions, and who evicts."""
        cluster, dice = self.cluster, self.dice
        how = dice.choice(["one-at-a-time", "surge-first", "surge-first", "unguarded", None])
        kind, back = dice.choice(["least", "all", "most", "spot", "on-demand"]), dice.random() < 0.5
        events: list[Hand] = [
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
            events += [(f"{pod.name} is evicted", lambda: self.guarded.evict(pod))] * 3
        name = dice.choice(list(cluster.nodes))
        others = [one for one in cluster.nodes.values() if one.name != name]
        if cluster.nodes[name].ready and any(not one.spot and not one.doomed for one in others):
            events += [(f"kubectl drain {name}, back: {back}", lambda: self.begin(name, back=back))] * 4
        if cluster.nodes[name].doomed:
            events.append((f"kubectl uncordon {name}", lambda: self._uncordon(name)))
        return events

    def begin(self, name: str, *, back: bool) -> None:
        """Begin to drain a node, which is cordoned first."""
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
        self.cluster.change_spec(self.cluster.source, template=_image(self.dice, self.images))

    def _replace(self) -> None:
        self.cluster.source.labels.pop("splitter.io/split", None)
        self.cluster.source.annotations.clear()
        self.cluster.unpause()  # the manifest does not say that it is paused


def _take_out(pod: Pod, **labels: object) -> None:
    for name, value in labels.items():
        setattr(pod, name, value)
    pod.owner, pod.taken_out = "", True


def _sicken(cluster: Cluster, pod: Pod, how: Ill) -> None:
    pod.ill = how
    if how is Ill.UNREADY:
        fail(cluster, pod, 0)


def _leave_room(cluster: Cluster, nodes: list[Node], free: int) -> None:
    for node in nodes:
        node.slots = free + sum(pod.node == node.name for pod in cluster.pods.values())


def _image(dice: Random, number: int) -> str:
    """Return a new template: one in four does not work, one in four is an old one again."""
    kind = dice.random()
    if kind < 0.25:
        return f"v{number}-{'crashing' if kind < 0.08 else 'broken'}"
    return f"v{number}" if kind < 0.75 else f"v{dice.randint(1, number)}"
