"""A cluster in memory: the objects that splitter sees, the writes it may do, and what the world does to them.

`controllers` plays what Kubernetes does with these objects, `writes` what splitter does, `promises` judges
after every step. Time is whole seconds. A template is a word: `v1`, or `v1|spot` for a twin's; the image of
one with `broken` in it cannot be pulled. The workload is a Deployment `web` or a StatefulSet `db`.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from splitter.core.labels_annotations import ANNOTATION_REPLICAS
from splitter.core.labels_annotations.saved import parse_saved
from splitter.core.replica import Pool
from splitter.core.split_status import SplitStatus
from splitter.kube.orphans import bears_its_hash

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
APP = "app"
TEMPLATE_HASH = "pod-template-hash"

T = TypeVar("T")


def copied(one: T) -> T:
    """Return a shallow copy; `copy.copy` takes three times as long."""
    other: T = object.__new__(type(one))
    other.__dict__.update(one.__dict__)
    return other


class LostRaceError(Exception):
    """A precondition did not hold: another client wrote in between."""


@dataclass
class Node:
    """A node with room for so many pods."""

    name: str
    uid: str
    spot: bool
    slots: int
    doomed: bool = False
    ready: bool = True


@dataclass
class Pod:
    """One pod, as the API server would show it."""

    name: str
    uid: str
    owner: str  # the UID of its ReplicaSet
    pool: Pool | None
    template: str
    created: int
    node: str | None = None
    ready_since: int | None = None
    unschedulable_since: int | None = None
    active: bool = True  # it is not ending
    cost: str | None = None
    cost_before: str | None = None
    label: Pool | None = None  # which pool it is labelled for; `pool` is where it may stand
    hash: str = ""
    ordinal: int | None = None  # in a StatefulSet, whose name is its owner


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


@dataclass
class StatefulSet(Deployment):
    """The source or a twin whose pods have ordinals."""

    ordered: bool = False
    first: int = 0  # ordinal
    partition: int = 0
    old_template: str = ""  # what a partition keeps
    writer: str = ""  # of its count


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


class Cluster:
    """All objects, and a clock. Nothing here acts by itself."""

    def __init__(self, replicas: int, surge: int, unavailable: int, *, ordered: bool | None = None) -> None:
        """`ordered`: whether the StatefulSet `db` is OrderedReady; None: it is the Deployment `web`."""
        self.now = 0
        self.versions = 0
        self.born = 0
        self.stalls_as_kubernetes = True
        """One active ReplicaSet of the right size that bears another desired count is a scaling event in each
        pass: such a Deployment rolls no more until N changes (1.36, sync.go, `scale`)."""
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
        if ordered is not None:
            self.source = StatefulSet(
                "db", "uid-db", None, "v1", replicas, 1, 1, self.version(), ordered=ordered
            )

    def version(self) -> int:
        """Return the next resourceVersion."""
        self.versions += 1
        return self.versions

    def name(self, prefix: str) -> str:
        """Return a name that is new."""
        self.born += 1
        return f"{prefix}-{self.born}"

    @property
    def deployments(self) -> list[Deployment]:
        """The source and its twins."""
        return [self.source, *self.twins.values()]

    def instant(self, at: int) -> datetime:
        """Return a time of the story as an instant."""
        return START + timedelta(seconds=at)

    @property
    def is_stateful(self) -> bool:
        """Whether the workload is a StatefulSet."""
        return isinstance(self.source, StatefulSet)

    @property
    def wanted(self) -> int:
        """N: what was saved, or what the source says."""
        saved = parse_saved(self.source.annotations.get(ANNOTATION_REPLICAS))
        return saved.replicas if saved is not None else self.source.replicas

    def members_of(self, owner: Deployment) -> list[Pod]:
        """Return the pods of a StatefulSet, lowest ordinal first; of a deleted one of that name, too."""
        members = (pod for pod in self.pods.values() if pod.owner == owner.name)
        return sorted(members, key=lambda pod: pod.ordinal or 0)

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
        """Return the replicas without an owner."""
        return [pod for pod in self.pods.values() if pod.active and not pod.owner]

    def unowned(self) -> list[Pod]:
        """Return those of them that bear the hash of a ReplicaSet, or of their own names."""
        sets = self.replica_sets.values()
        hashes = {one for rs in sets for one in (*rs.hashes, rs.name.removeprefix("web-split"))}
        return [pod for pod in self.orphans() if pod.hash in hashes or bears_its_hash(pod.name, pod.hash)]

    def serves(self, pod: Pod) -> bool:
        """Whether a pod truly answers: ready on a node that is there and Ready, doomed or not."""
        node = self.nodes.get(pod.node or "")
        return pod.active and pod.ready_since is not None and node is not None and node.ready

    def available(self, pod: Pod) -> bool:
        """Whether a pod answers and is to stay."""
        return self.serves(pod) and not self.nodes[pod.node or ""].doomed

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
        """Create a ReplicaSet that adopts pods with these hashes that have no owner."""
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
        """Begin the end of a pod."""
        pod.active = False
        if pod.ordinal is not None:
            pod.ready_since = None

    # What people and clouds do.

    def add_node(self, name: str, *, spot: bool, slots: int) -> None:
        """Bring a node."""
        self.nodes[name] = self.seen_nodes[name] = Node(name, f"uid-{name}", spot, slots)

    def notice(self, *names: str) -> None:
        """Announce that nodes go."""
        for name in names:
            self.nodes[name].doomed = True

    def vanish(self, name: str) -> None:
        """Take a node away; its pods look as before for a while."""
        del self.nodes[name]

    def unready(self, name: str) -> None:
        """Lose a kubelet."""
        self.nodes[name].ready = False

    def ready_again(self, name: str) -> None:
        """Find a kubelet again: its pods go on."""
        self.nodes[name].ready = True

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
        for pod in self.members_of(twin):
            self.terminate(pod)

    def with_own_replica_sets(self) -> "Cluster":
        """Return the same cluster with copies of its ReplicaSets, to see what becomes of their counts."""
        other = copied(self)
        other.replica_sets = {key: copied(rs) for key, rs in self.replica_sets.items()}
        return other

    def copied(self) -> "Cluster":
        """Return a copy that shares nothing that changes."""
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
        return other
