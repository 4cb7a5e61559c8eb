"""Observations, made readable: what a test does not say is the least surprising.

A workload `shop/web`, N = 10, maxSurge 3, maxUnavailable 2, at `NOW`. Pods are ready since long on sound
nodes, controllers have seen everything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.labels_annotations.label import ownership_mark_value
from splitter.core.model import Attachment, Observation, Rendered, ReplicaSetView, SourceView, TwinView
from splitter.core.names import Key
from splitter.core.placeable import runs
from splitter.core.replica import NodeStatus, Pool, Replica, Trouble
from splitter.core.split_status import Memory, RebalanceState, SplitStatus
from splitter.core.split_status.view import SplitView

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
KEY = Key("Deployment", "shop", "web")
TEMPLATE = "v1"
LONG_AGO_S = 3600


def ago(seconds: float) -> datetime:
    """Return the instant so many seconds before NOW."""
    return NOW - timedelta(seconds=seconds)


def pod(
    name: str = "pod", node_status: NodeStatus = NodeStatus.SOUND, *, ready: bool = True, **fields: object
) -> Replica:
    """Return a pod; one that is not bound is not ready."""
    bound = node_status is not NodeStatus.UNBOUND
    made = Replica(
        name=name,
        uid=f"uid-{name}",
        node_status=node_status,
        node="node-1" if bound else None,
        node_uid="uid-node-1" if bound else None,
        ready_since=ago(LONG_AGO_S) if ready and bound else None,
        created=ago(LONG_AGO_S),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def pods(
    ready: int = 0, *, starting: int = 0, stuck: int = 0, doomed: int = 0, lost: int = 0
) -> tuple[Replica, ...]:
    """Return so many pods of each kind; the stuck ones are unschedulable for an hour."""
    waiting = ago(LONG_AGO_S)
    return (
        *(pod(f"ready-{number}") for number in range(ready)),
        *(pod(f"starting-{number}", ready=False) for number in range(starting)),
        *(pod(f"stuck-{n}", NodeStatus.UNBOUND, unschedulable_since=waiting) for n in range(stuck)),
        *(pod(f"doomed-{number}", NodeStatus.DOOMED, on_spot=True) for number in range(doomed)),
        *(pod(f"lost-{number}", NodeStatus.LOST, on_spot=True) for number in range(lost)),
    )


def replica_set(
    name: str = "web-1",
    spec: int | None = None,
    of: Sequence[Replica] = (),
    *,
    attachment: Attachment = Attachment.PARKED,
    template: str = TEMPLATE,
    age_s: float = LONG_AGO_S,
    refusal: Trouble | None = None,
) -> ReplicaSetView:
    """Return a ReplicaSet whose status has seen its pods; without `spec` it wants what it has."""
    counted = [one for one in of if one.counts]
    return ReplicaSetView(
        name=name,
        uid=f"uid-{name}",
        resource_version=f"rv-{name}",
        template_hash=template,
        spec_replicas=len(counted) if spec is None else spec,
        status_replicas=len(counted),
        available_replicas=sum(1 for one in counted if one.ready_since is not None),
        created=ago(age_s),
        template_labels={"app": "web", "pod-template-hash": name.rpartition("-")[2]},
        hashes=(name.rpartition("-")[2],),
        attachment=attachment,
        refusal=refusal,
        pods=tuple(of),
    )


def twin(
    pool: Pool,
    of: Sequence[Replica] = (),
    *,
    spec: int | None = None,
    template: str = TEMPLATE,
    **fields: object,
) -> TwinView:
    """Return a twin with one ReplicaSet that runs its template."""
    only = replica_set(f"web-{pool.value}-1", spec, of, attachment=Attachment.ATTACHED, template=template)
    return twin_of(pool, [only], template=template, updated=only.status_replicas, **fields)


def twin_of(
    pool: Pool, sets: Sequence[ReplicaSetView], *, template: str = TEMPLATE, updated: int, **fields: object
) -> TwinView:
    """Return a twin with these ReplicaSets."""
    name = f"web-{pool.value}"
    made = TwinView(
        pool=pool,
        name=name,
        uid=f"uid-{name}",
        resource_version=f"rv-{name}",
        rendered_hash=f"{template}|{pool.value}",
        template_hash=template,
        spec_replicas=sum(rs.spec_replicas for rs in sets),
        status_replicas=sum(rs.status_replicas for rs in sets),
        available_replicas=sum(rs.available_replicas for rs in sets),
        updated_replicas=updated,
        observed=True,
        max_surge=3,
        max_unavailable=0,
        replica_sets=tuple(sets),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def source(
    replicas: int = 10,
    *,
    labelled: bool = True,
    marked: bool = True,
    annotations: Mapping[str, str] | None = None,
    **fields: object,
) -> SourceView:
    """Return the source, taken over and paused unless said otherwise."""
    mark = {"splitter.io/taken-over": ownership_mark_value("uid-web", ago(LONG_AGO_S))} if marked else {}
    made = SourceView(
        key=KEY,
        uid="uid-web",
        resource_version="rv-web",
        generation=7,
        replicas=replicas,
        max_surge=3,
        max_unavailable=2,
        paused=True,
        observed=True,
        template_hash=TEMPLATE,
        labels={"app": "web", LABEL_SPLIT: "enabled"} if labelled else {"app": "web"},
        annotations={**mark, **(annotations or {})},
        selector_keys=("app",),
        manifest_json="{}",
        paused_by_us=True,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def free_source(replicas: int = 10, **fields: object) -> SourceView:
    """Return a labelled source that nobody has touched yet."""
    untouched = replace(source(replicas, marked=False), paused=False, paused_by_us=False)
    annotations = fields.pop("annotations", untouched.annotations)
    return replace(untouched, annotations=annotations, **fields)  # type: ignore[arg-type]


# Fields of a Split's status that its spec has not, and what is remembered there.
STATUS = frozenset(one.name for one in fields_of(SplitStatus)) - {"replicas"}
MEMORY = frozenset(one.name for one in fields_of(Memory))


def split(**fields: object) -> SplitView:
    """Return a Split that takes over, with nothing to remember; fields of its status are given as its own."""
    made = SplitView(
        uid="uid-split",
        owner_uids=("uid-web",),
        takes_over=True,
        generation=3,
    )
    if isinstance(remembered := fields.get("rebalance"), dict):
        fields["rebalance"] = RebalanceState.from_json(remembered)
    memory = Memory(**{name: fields.pop(name) for name in MEMORY & fields.keys()})  # type: ignore[arg-type]
    reported = {name: fields.pop(name) for name in STATUS & fields.keys()}
    status = replace(made.status, **{"memory": memory, **reported})  # type: ignore[arg-type]
    return replace(made, **{"status": status, **fields})  # type: ignore[arg-type]


def observation(
    of: SourceView | None = None, sets: Sequence[ReplicaSetView] = (), **fields: object
) -> Observation:
    """Return what one reconcile sees: by default a source that is ours, its Split, and no twins.

    The admission policy has been told what the Split says, where nothing else is given.
    """
    made = Observation(
        unguardable="not here",
        key=KEY,
        now=NOW,
        source=of or source(),
        split=split(),
        replica_sets=tuple(sets),
    )
    seen: Observation = replace(made, **fields)  # type: ignore[arg-type]
    if "published" in fields or seen.split is None or seen.split.ordinals is None:
        return seen
    return replace(seen, published=runs(seen.split.ordinals))


def rendered(template: str = TEMPLATE) -> dict[Pool, Rendered]:
    """Return both twins as their templates render them."""
    return {pool: Rendered("{}", f"{template}|{pool.value}") for pool in Pool}
