"""A StatefulSet in placement mode, played second by second around the real planner: what people would see.

The smallest cluster in which time matters: nodes that come and go, rooms that other pods want too, pods that
take their time to end and to start, a placeholder. The StatefulSet is OrderedReady, Kubernetes' default, or
Parallel. In every second the machinery runs, then splitter's reconcile; what changed is told. The promises
are checked at every write: no eviction leaves half of the members ready or fewer, each is of a member that
can be made again (or is lost with its node in a moment), and no member is ended more often within an hour
than docs/limits.md says, whatever the cluster does.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta

from builders import NOW, free_source, observation, pod, replica_set, split
from splitter.core.actions import (
    Action,
    CreatePlaceholder,
    DeletePlaceholder,
    DeleteSplit,
    DeleteUnboundPod,
    DeleteVanishedPod,
    EnsureSplit,
    EvictPod,
    PlaceOrdinals,
)
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.model import (
    Attachment,
    NodeStatus,
    Note,
    Observation,
    PodView,
    Pool,
    RelatedObjects,
)
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.placeable import EvictionRefusal, runs
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.split_status import RebalanceState, Restart
from splitter.core.stateful import StatefulView
from splitter.plugin.core.action_messages import describe
from stories.reconciles import look_again_s

KEY = Key(STATEFUL_SET, "shop", "db")
START_S, END_S = 20, 3
GRACE_S = 30  # terminationGracePeriodSeconds, where no pod takes longer
LOST_ANYWAY_S = 15  # what ends so long before its grace would be cut off by the node's end loses nothing
SIGNALS = {"doomed": "an interruption notice", "cordoned": "cordoned"}
LIVE = frozenset({"up", "doomed", "cordoned"})
REPORTS_S = 5  # until a kubelet that registers has said how the pods of its name are
COLLECTED_S = 60  # until Kubernetes itself deletes the pods of a Node that is gone
RESTARTS_AN_HOUR = 4  # as docs/limits.md says
_TERM = {"matchExpressions": [{"key": "spot", "operator": "Exists"}]}
RULES = Rules(reservations=ReservationRules(NodePresets((_TERM,), (_TERM,)), "pause:1"))
MANIFEST = json.dumps({"spec": {"template": {"spec": {"containers": [{"name": "db"}]}}}})


@dataclass
class Node:
    """One machine: `up`, `doomed`, `cordoned`, `silent` or `gone`."""

    spot: bool
    state: str = "up"
    went_s: int | None = None
    announced: bool = False  # before it went, somebody said so, or it was not Ready
    anew_s: int | None = None  # another machine registered under this name
    ends_s: int | None = None  # when it goes, as its notice says


@dataclass
class Member:
    """One pod."""

    uid: str
    born: Pool | None
    made_at: int
    node: str = ""
    bound_at: int = 0
    ends_at: int | None = None
    waits_since: int | None = None
    unready_until: int = 0  # its readiness probe fails
    failed: bool = False  # its phase is Failed


@dataclass
class PlacementStory:
    """The cluster, the clock and the story so far."""

    replicas: int = 5
    ordered: bool = True  # podManagementPolicy OrderedReady; else Parallel
    annotations: dict[str, str] = field(default_factory=dict)
    now_s: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    ordinals: tuple[int, ...] | None = None
    state: RebalanceState = field(default_factory=RebalanceState)
    held: tuple[str, Member] | None = None
    on_demand_headroom: int = 99
    spot_headroom: int = 99  # of each spot node
    rivals: dict[str, int] = field(default_factory=dict)  # pods of others, by node
    rivals_waiting: int = 0  # pods of others that take the next room on on-demand: a placeholder's too
    start_s: int = START_S
    end_s: int = END_S
    min_ready_s: int = 0
    blocked: str = ""
    lines: list[str] = field(default_factory=list)
    fewest: int = 99
    policy_acts: bool = True  # else pods are born without label and affinity
    cordoned: bool = True  # else the scheduler takes a doomed node as any other
    headroom_lies: bool = False  # on-demand has room for a placeholder, and for no member
    spot_lies: bool = False  # the same of spot
    placeholders_fail: bool = False  # kubelets take none
    placeholders: int = 0  # that were made
    quota: bool = False  # the API server takes no more pods
    budget: bool = True  # the PodDisruptionBudget allows evictions
    answers: bool = True  # else the API server does what it is asked for, and nobody hears of it
    remembers: bool = True  # else the status of the Split cannot be written
    labelled: bool = True
    updated_s: int = -99_999  # since when pods are made of another template
    reports: bool = False  # there is a Split that only says why it is refused
    unplaceable: str = ""  # what splitter sees of the policy
    restarts: tuple[Restart, ...] = ()  # as the reconciler keeps them
    turned_down: EvictionRefusal | None = None
    ends: list[tuple[int, int]] = field(
        default_factory=list
    )  # second and ordinal of each end of ours, once a pod
    _said: str = ""
    _ended: set[str] = field(default_factory=set)  # UIDs of the pods of these
    _born: int = 0
    _looked: object = None
    _due_s: int = 0

    def __post_init__(self) -> None:
        """Begin with a workload that is split since long."""
        base = self.replicas // 2 + 1
        self.nodes |= {"od": Node(spot=False)} | {f"spot-{c}": Node(spot=True) for c in "ab"}
        for k in range(self.replicas):
            node = "od" if k < base else f"spot-{'ab'[k % 2]}"
            self.members[k] = Member(f"uid-{k}", self._pool(node), -9999, node, -9999)
        self.ordinals = tuple(range(base))
        self.tell(f"split since long: ordinals {self.ordinals} on on-demand")

    def _pool(self, node: str) -> Pool:
        return Pool.SPOT if self.nodes[node].spot else Pool.ON_DEMAND

    def tell(self, text: str) -> None:
        """Write a line of the story."""
        self.lines.append(f"{self.now_s // 60:02}:{self.now_s % 60:02}  {text}")

    # --- what the world does ----------------------------------------------------------------------

    def nodes_are(self, state: str, *names: str) -> None:
        """Change machines."""
        for name in names:
            node = self.nodes[name]
            if state == "gone" and node.state != "gone":
                node.went_s, node.announced = self.now_s, node.state != "up"
            node.state = state
            node.anew_s = node.ends_s = None
        self.tell(f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {state}")

    def notice(self, seconds: int, *names: str) -> None:
        """Have machines announce that they go in so many seconds; then they do."""
        self.nodes_are("doomed", *names)
        for name in names:
            self.nodes[name].ends_s = self.now_s + seconds
        self.tell(f"in {seconds} s")

    def registers_anew(self, name: str) -> None:
        """Let another machine take the name of one that is gone: its kubelet starts the pods bound to it."""
        self.nodes_are("up", name)
        self.nodes[name].anew_s = self.now_s
        for one in self.members.values():
            if one.node == name:
                one.bound_at = self.now_s + REPORTS_S

    def scale(self, replicas: int) -> None:
        """Scale as anybody does."""
        self.replicas = replicas
        self.tell(f"somebody scales the StatefulSet to {replicas}")

    def refused(self, why: str) -> None:
        """Have an autoscaler say that spot cannot be had, or nothing more."""
        self.blocked = why
        self.tell(why or "the autoscaler has no more to say about spot")

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            # Where nothing is under way the next thing to happen is a reconcile of splitter's own.
            self.now_s = min(end_s, max(self.now_s + 1, self._due_s)) if self._is_quiet() else self.now_s + 1
            self._machinery()
            if self._looks() != self._looked or self.now_s >= self._due_s:
                self._reconciles()
            self.fewest = min(self.fewest, self.serving)

    @property
    def serving(self) -> int:
        """How many members are ready on nodes that live."""
        return sum(self._ready(one) for one in self.members.values())

    def _is_quiet(self) -> bool:
        held = () if self.held is None else (self.held[1],)
        settled = all(
            self._is_settled(one) and one.ends_at is None for one in (*self.members.values(), *held)
        )
        whole = len(self.members) == self.replicas and not self._old() and not self.rivals_waiting
        whole = whole and all(node.ends_s is None for node in self.nodes.values())
        return settled and whole and self._looks() == self._looked

    def _is_settled(self, one: Member) -> bool:
        node = self.nodes.get(one.node)
        since = max(one.bound_at + self.start_s, one.unready_until) + self.min_ready_s
        return node is not None and node.state in LIVE and self.now_s > since

    def _ready(self, one: Member) -> bool:
        alive = one.node != "" and self.nodes[one.node].state in LIVE
        started = self.now_s >= max(one.bound_at + self.start_s, one.unready_until)
        return alive and one.ends_at is None and started

    def _available(self, one: Member) -> bool:
        since = max(one.bound_at + self.start_s, one.unready_until)
        return self._ready(one) and self.now_s >= since + self.min_ready_s

    def _machinery(self) -> None:
        for name, node in self.nodes.items():
            if node.state == "doomed" and node.ends_s is not None and self.now_s >= node.ends_s:
                self.nodes_are("gone", name)
        for k, one in list(self.members.items()):
            alive = one.node == "" or self.nodes[one.node].state in LIVE
            went_s = (
                self.nodes[one.node].went_s if one.node and self.nodes[one.node].state == "gone" else None
            )
            collected = went_s is not None and self.now_s >= went_s + COLLECTED_S
            if collected or (one.ends_at is not None and self.now_s >= one.ends_at and alive):
                del self.members[k]
        if self.ordered:
            self._controls_in_order()
        else:
            self._controls_at_once()
        self._rivals_come()
        for one in self.members.values():
            if one.node == "" and one.ends_at is None:
                self._schedule(one)
        if self.held is not None and self.held[1].node == "":
            self._schedule(self.held[1], only=Pool(self.held[0].split("/")[0]))

    def _controls_at_once(self) -> None:
        """Do what the StatefulSet controller does with podManagementPolicy Parallel."""
        for k, one in self.members.items():
            if k >= self.replicas and one.ends_at is None:
                one.ends_at = self.now_s + self.end_s
        for k in range(self.replicas):
            if k not in self.members and not self.quota:
                self._make(k)
        if (old := self._old()) and self.serving == len(self.members) == self.replicas:
            self.members[old[-1]].ends_at = self.now_s + self.end_s

    def _controls_in_order(self) -> None:
        """Do what it does with OrderedReady: nothing before all of lower ordinals are available.

        Source: `processReplica` of pkg/controller/statefulset/stateful_set_control.go.
        """
        for k in range(self.replicas):
            if k not in self.members:
                if not self.quota:
                    self._make(k)
                return
            if not self._available(self.members[k]):
                return
        extra, old = sorted(k for k in self.members if k >= self.replicas), self._old()
        last = self.members[extra[-1] if extra else old[-1]] if extra or old else None
        if last is not None and last.ends_at is None:
            last.ends_at = self.now_s + self.end_s

    def _make(self, k: int) -> None:
        born = Pool.ON_DEMAND if k in (self.ordinals or ()) else Pool.SPOT
        self._born += 1
        made_for = born if self.policy_acts else None
        self.members[k] = Member(f"uid-{k}-{self._born}", made_for, self.now_s)

    def _old(self) -> list[int]:
        """Return the members that the StatefulSet's own update has still to take."""
        return [k for k, one in sorted(self.members.items()) if one.made_at < self.updated_s]

    def _used(self, name: str) -> int:
        return sum(one.node == name for one in self.members.values()) + self.rivals.get(name, 0)

    def _has_room(self, name: str) -> bool:
        """Whether a pod finds room there, a placeholder's included: all others preempt that."""
        node = self.nodes[name]
        takes = {"up"} if self.cordoned else LIVE
        headroom = self.spot_headroom if node.spot else self.on_demand_headroom
        return node.state in takes and self._used(name) < headroom

    def _rivals_come(self) -> None:
        while self.rivals_waiting and self._has_room("od"):
            self.rivals["od"] = self.rivals.get("od", 0) + 1
            self.rivals_waiting -= 1
            self._preempt("od")

    def _preempt(self, name: str) -> None:
        """End the placeholder where a pod has taken its room."""
        if self.held is not None and self.held[1].node == name:
            headroom = self.spot_headroom if self.nodes[name].spot else self.on_demand_headroom
            if self._used(name) + 1 > headroom:
                self.held = None

    def _schedule(self, one: Member, only: Pool | None = None) -> None:
        wanted = only or one.born
        spot = [name for name, node in self.nodes.items() if node.spot and self._has_room(name)]
        lies = self.headroom_lies and only is None and wanted is not None
        if self.spot_lies and only is None:
            spot = []
        if wanted in {Pool.SPOT, None} and spot:  # without a wish, the empty machines look best
            one.node = spot[0]
        elif only is not Pool.SPOT and self._has_room("od") and not lies:
            one.node = "od"
        if one.node:
            one.bound_at, one.waits_since = self.now_s, None
            if only is None:
                self._preempt(one.node)
        elif one.waits_since is None:
            one.waits_since = self.now_s

    # --- splitter ---------------------------------------------------------------------------------

    def _looks(self) -> object:
        """Return all that an event would tell of."""
        held = () if self.held is None else (self.held[0], *vars(self.held[1]).values(), self._held_ready())
        members = [(*vars(one).values(), self._ready(one)) for one in self.members.values()]
        nodes = [(name, *vars(node).values()) for name, node in self.nodes.items()]
        return nodes, members, held, self.ordinals, self.replicas, self.blocked, self.min_ready_s

    def _held_ready(self) -> bool:
        return self.held is not None and self.held[1].node != "" and self.now_s > self.held[1].bound_at

    def _reconciles(self) -> None:
        """Reconcile until nothing is written; the next look comes with an event, or when the plan says."""
        settled = any(not self._passed() for _ in range(4))
        self._looked = self._looks() if settled else None

    def _passed(self) -> bool:
        planned = self._plan()
        evicted = next((one for one in planned.actions if isinstance(one, EvictPod)), None)
        if evicted is not None and not self.budget:  # 429: the reconcile ends there, and reports nothing
            at = NOW + timedelta(seconds=self.now_s)
            self.turned_down = EvictionRefusal(evicted.uid, "the budget allows none", at)
            return True
        if planned.rebalance is not None:
            self.restarts = planned.rebalance.restarts
            if self.remembers and (self.answers or not planned.actions):
                self.state = planned.rebalance
        self._due_s = self.now_s + look_again_s(planned)
        said = f"{planned.state}: {planned.verdict.message} ({planned.verdict.reason})"
        if planned.actions or said != self._said:
            self.tell(f"{self.serving} of {self.replicas} ready  {said}")
            self._said = said
        for action in planned.actions:
            self.lines.append(f"    -> {describe(action)}")
            self._write(action)
        return bool(planned.actions)

    def _plan(self) -> Plan:
        seen = self._observed()
        in_force = policy_in_force(seen, RULES.defaults)
        return plan(seen, in_force, Note(Reason.DRIFT, "no twins"), RULES)

    def _observed(self) -> Observation:
        now = NOW + timedelta(seconds=self.now_s)
        source = replace(
            free_source(self.replicas),
            key=KEY,
            uid="uid-db",
            annotations=self.annotations,
            manifest_json=MANIFEST,
            stateful=StatefulView(
                self.replicas,
                self.replicas,
                self.replicas,
                NOW,
                parallel=not self.ordered,
                min_ready_s=float(self.min_ready_s),
                updating=f"{len(self._old())} to go" if self._old() else "",
            ),
        )
        if not self.labelled:
            source = replace(source, labels={"app": "db"})
        pods = tuple(self._seen(f"db-{k}", one, k) for k, one in sorted(self.members.items()))
        itself = replace(replica_set("db", of=pods, attachment=Attachment.PARKED), first_ordinal=0)
        ours = split(owner_uids=("uid-db",), ordinals=self.ordinals, rebalance=self.state.to_json())
        reporting = split(owner_uids=("uid-db",), takes_over=False)
        held: tuple[PodView, ...] = ()
        if self.held is not None:
            view = replace(self._seen("db-placeholder", self.held[1], None), held_for=self.held[0])
            held = (view,)
        seen = observation(
            source,
            [itself],
            key=KEY,
            now=now,
            split=ours if self.ordinals is not None else reporting if self.reports else None,
            placeholders=held,
            blocked=self.blocked,
        )
        published = runs(self.ordinals) if self.ordinals is not None else None
        around = RelatedObjects(unplaceable=self.unplaceable)
        return replace(
            seen, published=published, related=around, refused=self.turned_down, restarts=self.restarts
        )

    def _seen(self, name: str, one: Member, ordinal: int | None) -> PodView:
        node = self.nodes.get(one.node)
        node_status = {
            None: NodeStatus.UNBOUND,
            "up": NodeStatus.SOUND,
            "doomed": NodeStatus.DOOMED,
            "cordoned": NodeStatus.DOOMED,
            "silent": NodeStatus.LOST,
            "gone": NodeStatus.LOST,
        }[node.state if node is not None else None]
        is_new = node is not None and node.anew_s is not None and self.now_s < node.anew_s + REPORTS_S
        of_old = is_new and node is not None and one.made_at < (node.anew_s or 0)
        if of_old:
            node_status = NodeStatus.LOST
        ready_at: int | None = max(one.bound_at + (1 if ordinal is None else self.start_s), one.unready_until)
        if node is None or (self.now_s < (ready_at or 0) and not of_old) or one.failed:
            ready_at = None
        return pod(
            name,
            node_status,
            uid=one.uid,
            node=one.node or None,
            node_uid=f"uid-{one.node}" if one.node else None,
            on_spot=node is not None and node.spot,
            cordoned=node is not None and node.state == "cordoned",
            vanished=node is not None and (node.state == "gone" or of_old),
            successor="uid-anew" if of_old else "",
            finished=one.failed,
            unready_since=self._at(one.bound_at) if node is not None and ready_at is None else None,
            vanished_since=self._at(node.went_s)
            if node is not None and node.state == "gone" and not node.announced
            else None,
            ready_since=self._at(ready_at),
            created=self._at(one.made_at),
            terminating=one.ends_at is not None,
            unschedulable_since=self._at(one.waits_since),
            ordinal=ordinal,
            born=one.born,
            signal=SIGNALS.get(node.state, "") if node is not None else "",
            deadline=self._at(node.ends_s) if node is not None else None,
            termination_s=max(GRACE_S, self.end_s),
        )

    @staticmethod
    def _at(second: int | None) -> object:
        return None if second is None else NOW + timedelta(seconds=second)

    def _write(self, action: Action) -> None:
        match action:
            case PlaceOrdinals():
                self.ordinals, self.reports = action.ordinals, False
            case EvictPod():
                self._end(action)
            case DeleteVanishedPod() | DeleteUnboundPod():
                self._remove(action.pod, action.uid)
            case CreatePlaceholder():
                if self.quota:
                    return
                made = Member("uid-held", None, self.now_s, failed=self.placeholders_fail)
                self.placeholders += 1
                self.held = (action.held_for, made)
                self._schedule(made, only=action.pool)
            case DeletePlaceholder():
                self.held = None
            case EnsureSplit():
                self.reports = True
            case DeleteSplit():
                self.ordinals, self.state, self.reports = None, RebalanceState(), False
            case _:
                raise AssertionError(f"not a write of placement: {action}")

    def _end(self, action: EvictPod) -> None:
        k = int(action.pod.rpartition("-")[2])
        one = self.members[k]
        assert one.uid == action.uid
        served = self._ready(one)
        if not self._is_lost_anyway(one):
            self._can_be_made_again(k, one)
        one.ends_at = self.now_s + self.end_s
        assert not served or self.serving * 2 > self.replicas, "an eviction took the majority"
        self._count_end(k, action.uid)

    def _is_lost_anyway(self, one: Member) -> bool:
        ends_s = self.nodes[one.node].ends_s if one.node else None
        grace_s = max(GRACE_S, self.end_s)
        return ends_s is not None and ends_s - self.now_s <= grace_s + LOST_ANYWAY_S

    def _can_be_made_again(self, k: int, one: Member) -> None:
        """Judge an eviction by what the StatefulSet controller and the scheduler would do next."""
        name, wanted = f"db-{k}", Pool.ON_DEMAND if k in (self.ordinals or ()) else Pool.SPOT
        lower = (j for j in range(k) if j not in self.members or not self._available(self.members[j]))
        if self.ordered and (first := next(lower, None)) is not None:
            raise AssertionError(f"{name} is not made again behind db-{first}")
        ended = {j for _, j in self.ends} & set(range(self.replicas)) - {k}
        away = [j for j in sorted(ended) if j not in self.members or self.members[j].node == ""]
        assert not away, f"{name} was evicted while db-{away[0]}, which was moved, had no node"
        if self.nodes[one.node].state == "cordoned" and wanted is Pool.ON_DEMAND:
            assert self._has_room("od"), f"{name} was evicted off a cordoned node, and there is no room"

    def _remove(self, name: str, uid: str) -> None:
        ordinal = int(name.rpartition("-")[2])
        assert self.members[ordinal].uid == uid
        del self.members[ordinal]
        self._count_end(ordinal, uid)

    def _count_end(self, ordinal: int, uid: str) -> None:
        if uid in self._ended:
            return  # one that was evicted, and whose node went before it had ended: it has one end
        self._ended.add(uid)
        self.ends.append((self.now_s, ordinal))
        within = sum(one == ordinal and at > self.now_s - 3600 for at, one in self.ends)
        assert within <= RESTARTS_AN_HOUR, f"db-{ordinal} was ended {within} times within an hour"
