"""A cluster in memory: the objects that splitter sees, the writes it may do, and what the world does to them.

`controllers` plays what Kubernetes does with these objects, `splitter_in_world` the reconciles of splitter,
`promises` judges after every step. Time is whole seconds since the start of the story. A template is a
word: `v1`, or `v1|spot` for a twin's; the image of one with `broken` in it cannot be pulled.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from splitter.core.model import Pool, Trouble
from splitter.core.split_status import SplitStatus
from splitter.kube.orphans import bears_its_hash

if TYPE_CHECKING:
    from model.informers import Informers

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
APP = "app"
TEMPLATE_HASH = "pod-template-hash"
LOST_PODS_STAY_S = 57  # pods of a vanished node look ready for so long (measured)


T = TypeVar("T")


def copied(one: T) -> T:
    """Return a shallow copy; `copy.copy` takes three times as long."""
    other: T = object.__new__(type(one))
    other.__dict__.update(one.__dict__)
    return other


class LostRaceError(Exception):
    """A precondition did not hold: somebody wrote in between."""


@dataclass
class Node:
    """A node with room for so many pods."""

    name: str
    uid: str
    spot: bool
    slots: int
    doomed: bool = False
    cordoned: bool = False  # and that is all that is known of its end
    ready: bool = True
    unready_since: int | None = None


class Ill(Enum):
    """What is wrong with one replica, whatever the others do."""

    UNREADY = "its readiness probe fails"
    CRASHING = "its container ends again and again"


@dataclass
class Pod:
    """One pod, as the API server would show it."""

    name: str
    uid: str
    owner: str
    pool: Pool | None
    template: str
    created: int
    node: str | None = None
    ready_since: int | None = None
    ready_due: int | None = None
    unready_since: int | None = None  # when it ceased to be ready
    ill: Ill | None = None
    restarts: int = 0
    terminating_until: int | None = None
    unschedulable_since: int | None = None
    trouble: Trouble | None = None
    cost: str | None = None
    cost_before: str | None = None
    cost_at: int | None = None  # when it was written, by the API server's clock
    label: Pool | None = None  # which pool it is labelled for; `pool` is where it may stand
    hash: str = ""
    taken_out: bool = False  # of its ReplicaSet, by its labels: a person's own pod until one adopts it
    finished: bool = False  # its containers have ended for good: by a node's shutdown, for one

    @property
    def active(self) -> bool:
        """Whether a ReplicaSet counts it."""
        return self.terminating_until is None and not self.finished


@dataclass
class ReplicaSet:
    """A ReplicaSet; `owner` stays when it is parked, `controlled` does not."""

    name: str
    uid: str
    owner: str
    template: str
    created: int
    version: int
    labels: dict[str, str]
    template_labels: dict[str, str]
    spec: int = 0
    controlled: bool = True
    desired_replicas: int | None = 0  # the annotations by which its Deployment notices that it was scaled
    max_replicas: int = 0
    status_replicas: int = 0
    status_available: int = 0
    refusal: Trouble | None = None
    marked: bool = False  # its Deployment's controller has copied the mark
    hashes: tuple[str, ...] = ()  # it selects pods with one of these, and
    selects: Pool | None = None  # of this pool; None: of any
    deleting: bool = False  # its pods are to be left running
    deleted: int = 0  # since then


@dataclass
class Deployment:
    """The source or a twin; the numbers of a roll are absolute."""

    name: str
    uid: str
    pool: Pool | None
    template: str
    replicas: int
    max_surge: int
    max_unavailable: int
    version: int
    generation: int = 1
    observed_generation: int = 0
    paused: bool = False
    paused_by_us: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    rendered_hash: str = ""
    made_of: str = ""
    robbed: bool = False  # of its owner: it counts as out of date
    edited: bool = False  # another client has written its template
    edited_at: int = 0
    lowered: bool = False  # since it was last at rest
    history_limit: int = 10
    collisions: int = 0
    status_replicas: int = 0
    status_updated: int = 0
    status_available: int = 0
    progress_at: int | None = None  # when its roll last got on; None: it is complete
    stalled: bool = False  # not for progressDeadlineSeconds


@dataclass
class Split:
    """The Split object."""

    uid: str
    owner: str
    takes_over: bool
    replicas: int | None = None  # of a StatefulSet
    status: dict[str, object] = field(default_factory=dict)
    _read: tuple[object, SplitStatus] | None = None

    def read(self) -> SplitStatus:
        """Return what the status says; each is read once, since it is replaced and never changed."""
        if self._read is None or self._read[0] is not self.status:
            self._read = (self.status, SplitStatus.from_json(self.status))
        return self._read[1]


@dataclass
class Budget:
    """A PodDisruptionBudget; `budgets` plays who acts on it."""

    name: str
    uid: str
    split: str  # the UID of the Split that controls it; empty: a user's
    min_available: int | None
    max_unavailable: int = 0
    selects: str = ""  # a label that its pods have beside the user's own; empty: none
    generation: int = 1
    observed_generation: int = 0
    allowed: int = 0
    disrupted: dict[str, int] = field(default_factory=dict)  # evicted, and not seen to end: when, by UID


class Cluster:
    """All objects, and a clock. Nothing here acts by itself."""

    def __init__(self, replicas: int, surge: int, unavailable: int) -> None:
        self.now = 0
        self.versions = 0
        self.born = 0
        self.start_s = 5
        self.stop_s = 2
        self.stalls_as_kubernetes = True
        """One active ReplicaSet of the right size that bears another desired count is a scaling event in each
        pass: such a Deployment rolls no more until N changes (1.36, sync.go, `scale`)."""
        self.quota: int | None = None
        """So many pods may be in the namespace, those that are going included."""
        self.registry_answers = True
        self.claim_is_there = True
        """The PersistentVolumeClaim that the pod template names."""
        self.notice_s: float | None = None
        """How long a notice lasts, as the nodes' provider has it; pods are given 30 s to end."""
        self.tolerates_silence = False
        """Pods tolerate for ever that their node says nothing."""
        self.tolerates_everything = False
        """Pods are bound to such a node as to any other."""
        self.spot_taint = ""
        """A taint on all spot nodes that pods do not tolerate: new ones do not go there."""
        self.min_ready_s = 0
        """The source's minReadySeconds, and the twins'."""
        self.progress_deadline_s = 600
        """The source's progressDeadlineSeconds, and the twins'."""
        self.rival = ""
        """Another controller that selects these pods: it adopts, and ends, those without an owner."""
        self.collector_lag_s = 0
        """So long the garbage collector takes to free the pods of a ReplicaSet that goes without them."""
        self.collector_refused_until = 0
        """Until then a policy lets nobody take the owner off a pod."""
        self.informers: Informers | None = None
        """What the controllers see, where that is not all there is."""
        self.budgets: dict[str, Budget] = {}
        self.budgets_refused_until: int | None = None
        """Until then nobody may write budgets; None: nobody may here at all."""
        self.drains: dict[str, bool] = {}
        """Nodes that somebody drains, by name; whether they come back afterwards."""
        self.nodes: dict[str, Node] = {}
        self.seen_nodes: dict[str, Node] = {}
        """Every node there ever was, by name (splitter remembers the vanished)."""
        self.pods: dict[str, Pod] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.split: Split | None = None
        self.twins: dict[Pool, Deployment] = {}
        self.source = Deployment(
            "web", "uid-web", None, "v1", replicas, surge, unavailable, self.version(), labels={APP: "web"}
        )
        if surge == 0 and unavailable == 0:
            self.source.max_unavailable = 1  # as the API server's own fencepost

    def version(self) -> int:
        """Return the next resourceVersion."""
        self.versions += 1
        return self.versions

    def name(self, prefix: str) -> str:
        """Return a name nobody had before."""
        self.born += 1
        return f"{prefix}-{self.born}"

    @property
    def deployments(self) -> list[Deployment]:
        """The source and its twins."""
        return [self.source, *self.twins.values()]

    def instant(self, at: int) -> datetime:
        """Return a time of the story as an instant."""
        return START + timedelta(seconds=at)

    def pods_of(self, rs: ReplicaSet) -> list[Pod]:
        """Return the pods of a ReplicaSet, terminating ones too."""
        return [pod for pod in self.pods.values() if pod.owner == rs.uid]

    def owned_by(self, deployment: Deployment) -> list[ReplicaSet]:
        """Return the ReplicaSets that a Deployment controls."""
        return [rs for rs in self.replica_sets.values() if rs.owner == deployment.uid and rs.controlled]

    def released(self) -> list[ReplicaSet]:
        """Return the source's ReplicaSets that it does not control."""
        ours = {self.source.uid, ""}
        return [rs for rs in self.replica_sets.values() if rs.owner in ours and not rs.controlled]

    def orphans(self) -> list[Pod]:
        """Return the replicas that nobody controls."""
        return [pod for pod in self.pods.values() if pod.active and not pod.owner and not pod.taken_out]

    def unowned(self) -> list[Pod]:
        """Return these and those that have finished, without those that a user took out."""
        sets = self.replica_sets.values()
        hashes = {one for rs in sets for one in (*rs.hashes, rs.name.removeprefix("web-split"))}
        pods = (pod for pod in self.pods.values() if not pod.owner and pod.terminating_until is None)
        return [pod for pod in pods if pod.hash in hashes or bears_its_hash(pod.name, pod.hash)]

    def serves(self, pod: Pod) -> bool:
        """Whether a pod truly answers: ready on a node that is there and Ready, doomed or not."""
        node = self.nodes.get(pod.node or "")
        return pod.active and pod.ready_since is not None and node is not None and node.ready

    def is_long_ready(self, pod: Pod) -> bool:
        """Whether a ReplicaSet counts it as available."""
        return pod.ready_since is not None and self.now >= pod.ready_since + self.min_ready_s

    def available(self, pod: Pod) -> bool:
        """Whether a pod answers and is to stay."""
        return self.serves(pod) and self.is_long_ready(pod) and not self.nodes[pod.node or ""].doomed

    def make_replica_set(self, deployment: Deployment, template: str, spec: int) -> ReplicaSet:
        """Create a ReplicaSet that a Deployment controls; its hash follows from the template."""
        result = template.replace("|", ".")
        if deployment.pool is not None and "|" not in template:
            result += f".as-{deployment.pool.value}"  # the label of the pool makes another template of it
        while any(rs.name == f"{deployment.name}-{result}" for rs in self.replica_sets.values()):
            result += "x"
        return self.adopting(deployment, f"{deployment.name}-{result}", template, spec, (result,))

    def adopting(
        self, deployment: Deployment, name: str, template: str, spec: int, hashes: tuple[str, ...]
    ) -> ReplicaSet:
        """Create a ReplicaSet that adopts pods with these hashes that nobody controls."""
        labels = {APP: "web", TEMPLATE_HASH: hashes[0]}
        made = ReplicaSet(
            name,
            self.name("uid-web"),
            deployment.uid,
            template,
            self.now,
            self.version(),
            labels,
            dict(labels),
            spec=spec,
            desired_replicas=deployment.replicas,
            max_replicas=deployment.replicas + deployment.max_surge,
            hashes=hashes,
            selects=deployment.pool,
        )
        self.replica_sets[made.uid] = made
        return made

    def remove_replica_set(self, rs: ReplicaSet) -> None:
        """Delete a ReplicaSet; its pods go with it."""
        del self.replica_sets[rs.uid]
        for pod in self.pods_of(rs):
            self.terminate(pod)

    def terminate(self, pod: Pod) -> None:
        """Begin the end of a pod: its kubelet stops it, or the garbage collector where there is none."""
        if pod.terminating_until is None:
            alive = pod.node is None or pod.node in self.nodes
            pod.terminating_until = self.now + (0 if pod.node is None else self.stop_s if alive else 40)

    # What people and clouds do.

    def add_node(self, name: str, *, spot: bool, slots: int) -> None:
        """Bring a node."""
        self.nodes[name] = self.seen_nodes[name] = Node(name, f"uid-{name}", spot, slots)

    def notice(self, *names: str) -> None:
        """Announce that nodes go."""
        for name in names:
            self.nodes[name].doomed, self.nodes[name].cordoned = True, False

    def vanish(self, name: str) -> None:
        """Take a node away; its pods look as before for a while."""
        del self.nodes[name]
        for pod in self.pods.values():
            if pod.node == name and pod.active:
                pod.ready_due = None

    def unready(self, name: str) -> None:
        """Lose a kubelet."""
        self.nodes[name].ready, self.nodes[name].unready_since = False, self.now

    def ready_again(self, name: str) -> None:
        """Find a kubelet again: its pods go on."""
        self.nodes[name].ready, self.nodes[name].unready_since = True, None
        for pod in self.pods.values():
            if pod.node == name and pod.active and pod.ready_since is None:
                pod.ready_due = self.now + 1

    def change_spec(self, deployment: Deployment, **changes: object) -> None:
        """Write a Deployment's spec."""
        before = deployment.replicas
        for name, value in changes.items():
            if not hasattr(deployment, name):
                raise AttributeError(name)
            setattr(deployment, name, value)
        deployment.lowered = deployment.lowered or deployment.replicas < before
        deployment.generation += 1
        deployment.version = self.version()

    def annotate(self, **annotations: str | None) -> None:
        """Annotate the source; underscores stand for dashes, None removes."""
        for key, text in annotations.items():
            name = f"splitter.io/{key.replace('_', '-')}"
            if text is None:
                self.source.annotations.pop(name, None)
            else:
                self.source.annotations[name] = text
        self.source.version = self.version()

    def label(self, *, on: bool) -> None:
        """Set the label on the source, or take it away."""
        if on:
            self.source.labels["splitter.io/split"] = "enabled"
        else:
            self.source.labels.pop("splitter.io/split", None)
        self.source.version = self.version()

    def create_anew(self, *, labelled: bool) -> None:
        """Delete the source with --cascade=orphan and apply its user's manifest again.

        Everything of ours stays without an owner; a twin without one counts as out of date. What the old
        one controlled bears the selector's labels, and the new one adopts it.
        """
        old = self.source
        labels = {key: text for key, text in old.labels.items() if labelled or key == APP}
        asked = {key: text for key, text in old.annotations.items() if key != "splitter.io/taken-over"}
        self.source = replace(
            Deployment(
                old.name,
                self.name("uid-web"),
                None,
                old.template,
                old.replicas,
                old.max_surge,
                old.max_unavailable,
                self.version(),
            ),
            labels=labels,
            annotations=asked,
        )
        for rs in [rs for rs in self.replica_sets.values() if rs.owner == old.uid]:
            rs.owner, rs.version = self.source.uid if rs.controlled else "", self.version()
        for twin in self.twins.values():
            twin.robbed, twin.version = True, self.version()
        if self.split is not None:
            self.split.owner = ""

    def unpause(self) -> None:
        """Run `kubectl rollout resume` on the source."""
        self.change_spec(self.source, paused=False, paused_by_us=False)

    def edit_twin(self, pool: Pool, template: str) -> None:
        """Write a twin's template by hand."""
        self.change_spec(self.twins[pool], template=template, edited=True, edited_at=self.now)

    def delete_twin(self, pool: Pool) -> None:
        """Delete a twin by hand: its ReplicaSets and pods go with it."""
        twin = self.twins.pop(pool)
        for rs in [rs for rs in self.replica_sets.values() if rs.owner == twin.uid]:
            self.remove_replica_set(rs)

    def with_own_replica_sets(self) -> "Cluster":
        """Return the same cluster with copies of its ReplicaSets, to see what becomes of their counts."""
        other = copied(self)
        other.replica_sets = {key: copied(rs) for key, rs in self.replica_sets.items()}
        return other

    def copied(self) -> "Cluster":
        """Return a copy; nothing in it follows the original, and what is written is written anew."""
        other = copied(self)
        other.nodes = {name: copied(node) for name, node in self.nodes.items()}
        other.seen_nodes = dict(self.seen_nodes)
        other.pods = {name: copied(pod) for name, pod in self.pods.items()}
        other.replica_sets = {uid: copied(rs) for uid, rs in self.replica_sets.items()}
        for rs in other.replica_sets.values():
            rs.labels = dict(rs.labels)
        other.twins = {pool: copied(twin) for pool, twin in self.twins.items()}
        other.source = copied(self.source)
        other.source.labels = dict(self.source.labels)
        other.source.annotations = dict(self.source.annotations)
        other.split = None if self.split is None else copied(self.split)
        other.budgets = {name: copied(budget) for name, budget in self.budgets.items()}
        return other
