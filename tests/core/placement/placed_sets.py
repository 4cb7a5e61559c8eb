"""A StatefulSet in placement mode as a reconcile sees it, for tests."""

import json
from collections.abc import Mapping
from dataclasses import replace

from builders import ago, free_source, observation, pod, replica_set, split
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Note, Observation, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Replica
from splitter.core.stateful import StatefulView

KEY = Key(STATEFUL_SET, "shop", "db")
NO_TWINS = Note(Reason.TEMPLATE_INVALID, "nobody needs twins here", warning=True)
SPOT = {"matchExpressions": [{"key": "capacity", "operator": "In", "values": ["spot"]}]}
ON_DEMAND = {"matchExpressions": [{"key": "capacity", "operator": "NotIn", "values": ["spot"]}]}
TOLERATED = {"key": "spot", "operator": "Exists"}
RESERVATIONS = ReservationRules(NodePresets((SPOT,), (ON_DEMAND,), (TOLERATED,)), "pause:1")
MANIFEST = {
    "spec": {
        "template": {
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "containers": [
                    {
                        "name": "db",
                        "image": "db:1",
                        "env": [{"name": "A"}],
                        "resources": {"requests": {"cpu": "1"}},
                    }
                ],
                "initContainers": [
                    {"name": "once", "resources": {"requests": {"cpu": "9"}}},
                    {"name": "beside", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                ],
            }
        }
    }
}


def db(replicas: int = 5, *, labelled: bool = True, **fields: object) -> SourceView:
    """Return the StatefulSet."""
    made = replace(
        free_source(replicas),
        key=KEY,
        uid="uid-db",
        manifest_json=json.dumps(MANIFEST),
        stateful=StatefulView(replicas, replicas, replicas, ago(3600)),
    )
    if not labelled:
        made = replace(made, labels={"app": "db"})
    return replace(made, **fields)  # type: ignore[arg-type]


def members(changes: Mapping[int, Replica | None] | None = None, replicas: int = 5) -> tuple[Replica, ...]:
    """Return its pods at rest, 0-2 on on-demand, with some of them replaced or missing."""
    at_rest = {k: one(k, on_spot=k > 2) for k in range(replicas)} | dict(changes or {})
    return tuple(result for result in at_rest.values() if result is not None)


def one(
    ordinal: int, *, on_spot: bool, node_status: NodeStatus = NodeStatus.SOUND, **fields: object
) -> Replica:
    """Return one of its pods, on a node of its own."""
    node = f"{'spot' if on_spot else 'od'}-{ordinal}"
    fields = (
        {"node": node, "node_uid": f"uid-{node}"} | fields
        if node_status is not NodeStatus.UNBOUND
        else fields
    )
    return pod(f"db-{ordinal}", node_status, on_spot=on_spot, ordinal=ordinal, **fields)  # type: ignore[arg-type]


def seen(
    pods: tuple[Replica, ...],
    *,
    source: SourceView | None = None,
    in_force: object = (0, 1, 2),
    **fields: object,
) -> Observation:
    """Return a StatefulSet that is split by placement."""
    itself = replica_set("db", of=pods, attachment=Attachment.PARKED)
    made = observation(
        source or db(),
        [replace(itself, first_ordinal=0)],
        key=KEY,
        split=split(owner_uids=("uid-db",), ordinals=in_force),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def planned(observed: Observation, policy: Policy | None = None, rules: Rules | None = None) -> Plan:
    """Return the plan of one reconcile; no twin is ever rendered for it."""
    rules = rules or Rules(defaults=policy or Policy(), reservations=RESERVATIONS)
    return plan(observed, policy_in_force(observed, rules.defaults), NO_TWINS, rules)
