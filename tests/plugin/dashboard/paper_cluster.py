"""Splits, pods and nodes as the page shows them, in the world's API server behind a real socket."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kube.server import client_of
from splitter.core.labels_annotations import short_name
from splitter.core.labels_annotations.policy import Policy
from splitter.core.nodes.signals import assess
from splitter.core.rebalance import Tuning
from splitter.kube.client import Client
from splitter.plugin.cli.dashboard import explain_record
from splitter.plugin.dashboard import Model, Simulator, Tellers, Views, serve
from splitter.plugin.dashboard.server import Served
from splitter.plugin.kube.cluster_view import ClusterView
from world.api import Api
from world.kinds import Ref
from world.server import served

Json = dict[str, Any]
CREATED = "2026-01-05T09:00:00Z"
ZONES = ("a", "b", "c")
_POLICY = {
    "onDemandBase": 0,
    "spotPercent": 100,
    "spotAffinity": "required",
    "grace": "180s",
    "soak": "600s",
    "freeze": False,
    "dryRun": False,
    "templateSet": "default",
    "rolloutOrder": "on-demand-first",
    "evictions": "one-at-a-time",
}
_OURS = "/apis/splitter.io/v1alpha1"
_API = {"splits": _OURS, "pods": "/api/v1", "nodes": "/api/v1"}


def stamp(at: datetime) -> str:
    """Return an instant as Kubernetes writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class PaperCluster:
    """The objects that the page follows, in the world's API server."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.api = Api()

    def put(self, plural: str, *raws: Json) -> None:
        """Write objects, and tell those that watch."""
        for raw in raws:
            metadata = raw["metadata"]
            ref = Ref(f"{_API[plural]}/{plural}", metadata.get("namespace", ""), metadata["name"])
            self.api.objects.put_at(ref, raw)

    def of(self, plural: str) -> list[Json]:
        """Return the objects of a kind."""
        return self.api.objects.all(f"{_API[plural]}/{plural}")

    def find(self, plural: str, name: str, namespace: str = "shop") -> Json:
        """Return an object."""
        return self.api.objects.get(Ref(f"{_API[plural]}/{plural}", namespace, name))

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object, and tell those that watch."""
        self.api.objects.forget(Ref(f"{_API[plural]}/{plural}", namespace, name).path)


def node(name: str, pool: str, zone: str = "a", *, going: bool = False, ready: bool = True) -> Json:
    """Return a node."""
    taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}] if going else []
    return {
        "metadata": {
            "name": name,
            "labels": {"karpenter.sh/capacity-type": pool, "topology.kubernetes.io/zone": zone},
        },
        "spec": {"taints": taints},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": CREATED}
            ],
        },
    }


def pod(
    workload: str, name: str, pool: str, where: str | None, *, ready: bool = True, namespace: str = "shop"
) -> Json:
    """Return a pod of a twin; without `where` it has no node."""
    conditions = [
        {"type": "PodScheduled", "status": "True" if where else "False", "lastTransitionTime": CREATED},
        {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": CREATED},
    ]
    twin = f"{workload}-{pool}"
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"splitter.io/pool": pool, "splitter.io/source": short_name(workload)},
            "ownerReferences": [
                {"kind": "ReplicaSet", "name": twin, "uid": f"uid-rs-{namespace}-{twin}", "controller": True}
            ],
        },
        "spec": {"nodeName": where} if where else {},
        "status": {"phase": "Running" if where else "Pending", "conditions": conditions},
    }


def split(
    name: str,
    *,
    namespace: str = "shop",
    on_demand: int = 2,
    spot: int = 8,
    spot_ready: int | None = None,
    on_demand_ready: int | None = None,
    doomed: int = 0,
    state: str = "Steady",
    reason: str = "Balanced",
    message: str = "2 replicas are on on-demand and 8 on spot, as the policy wants.",
    decisions: Iterable[tuple[datetime, str, str]] = (),
    since: datetime | None = None,
    **more: object,
) -> Json:
    """Return a Split whose policy wants these counts."""
    ready = (
        on_demand if on_demand_ready is None else on_demand_ready,
        spot if spot_ready is None else spot_ready,
    )
    begin = since or datetime.now(UTC) - timedelta(hours=30)
    held = {
        "onDemand": {"replicas": on_demand, "cpu": 250 * on_demand, "memory": 512 * on_demand},
        "spot": {"replicas": spot, "cpu": 250 * spot, "memory": 512 * spot},
        "desired": {"replicas": on_demand + spot, "cpu": 250 * (on_demand + spot), "memory": 512},
    }
    status = {
        "state": state,
        "reason": reason,
        "message": message,
        "desired": on_demand + spot,
        "ready": sum(ready),
        "cover": max(0, ready[0] - on_demand),
        "onDemand": _pool(on_demand, max(on_demand, ready[0]), ready[0]),
        "spot": _pool(spot, spot, ready[1], doomed),
        "policy": _POLICY | {"onDemandBase": on_demand},
        "policyFrom": dict.fromkeys(_POLICY, "Default") | {"onDemandBase": "Source", "soak": "Namespace"},
        "conditions": [],
        "decisions": [
            {"time": stamp(at), "reason": why, "message": message} for at, why, message in decisions
        ],
        "usage": {"since": stamp(begin), "until": stamp(begin), "held": held},
        **more,
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "takeOver": True},
        "status": status,
    }


def _pool(wanted: int, spec: int, ready: int, doomed: int = 0) -> Json:
    return {"wanted": wanted, "spec": spec, "ready": ready, "doomed": doomed, "pending": 0}


def placed(cluster: PaperCluster, workload: str, on_demand: int, spot: int, namespace: str = "shop") -> None:
    """Write the pods of a workload, one after the other onto the nodes of each pool."""
    for pool, count in (("on-demand", on_demand), ("spot", spot)):
        names = [
            raw["metadata"]["name"]
            for raw in cluster.of("nodes")
            if raw["metadata"]["labels"]["karpenter.sh/capacity-type"] == pool
        ]
        for number in range(count):
            where = names[(number + len(workload)) % len(names)]
            cluster.put(
                "pods", pod(workload, f"{workload}-{pool}-{number:x}", pool, where, namespace=namespace)
            )


@dataclass(slots=True)
class Shown:
    """A page that shows a cluster on paper."""

    cluster: PaperCluster
    model: Model
    served: Served
    client: Client

    @property
    def address(self) -> str:
        """Return where the page is, with the token."""
        return self.served.address


async def _plan(key: object) -> list[str]:
    return [f"{key}  Steady", "  would write nothing"]


@asynccontextmanager
async def shown(
    cluster: PaperCluster,
    namespaces: tuple[str, ...] = (),
    tellers: Tellers | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[Shown]:
    """Serve the page of a cluster on paper."""
    async with served(cluster.api) as address, client_of(address) as client:
        model = Model(now)
        view = ClusterView(client, namespaces, assess, model.changed)
        model.look(view)
        views = Views(model, tellers or Tellers(explain_record, _plan), "sandbox · all namespaces")
        simulator = Simulator(Policy(), Tuning())
        async with view.followed(), serve(model, views, simulator) as page:
            yield Shown(cluster, model, page, client)


def shop(now: datetime | None = None, *, calm: bool = False) -> PaperCluster:
    """Return an application as people have it: nine workloads, two notices, one that is held.

    `calm`: as it was before the notices.
    """
    now = now or datetime.now(UTC)
    cluster = PaperCluster()
    for number in range(9):
        cluster.put("nodes", node(f"on-demand-{number}", "on-demand", ZONES[number % 3]))
    for number in range(18):
        cluster.put(
            "nodes", node(f"spot-{number}", "spot", ZONES[number % 3], going=number in {4, 10} and not calm)
        )

    def ago(minutes: float) -> datetime:
        return now - timedelta(minutes=minutes)

    for name, on_demand, spot in (
        ("cart", 2, 10),
        ("catalog", 3, 12),
        ("checkout", 4, 4),
        ("frontend", 4, 20),
        ("mail", 1, 2),
        ("payment", 3, 3),
        ("recommend", 0, 14),
        ("search", 2, 12),
        ("shipping", 1, 5),
    ):
        decisions = _life(name, on_demand, spot, ago)[: 6 if calm else None]
        extra: Json = {}
        moving = name in {"cart", "search"} and not calm
        if moving:
            extra = {
                "state": "Moving",
                "reason": "SpotInterrupted",
                "message": decisions[-1][2],
                "spot_ready": spot - 2,
                "doomed": 2,
                "on_demand_ready": on_demand + 1,
            }
        if name == "shipping" and not calm:
            extra = {
                "state": "Held",
                "reason": "ImagePullFailed",
                "spot_ready": 4,
                "message": "shipping-spot: 1 replica cannot pull its image (ErrImagePull).",
            }
        raw = split(name, on_demand=on_demand, spot=spot, decisions=decisions, since=ago(60 * 52), **extra)
        cluster.put("splits", raw)
        placed(cluster, name, on_demand + moving, spot)
    return cluster


def _life(name: str, on_demand: int, spot: int, ago: Any) -> list[tuple[datetime, str, str]]:  # noqa: ANN401
    more = 3
    begin = 330 - 7 * len(name)
    result = [
        (ago(begin), "TakenOver", f"{on_demand + spot} running pods were divided between the pools."),
        (
            ago(begin - 60),
            "SpotInterrupted",
            f"scale on-demand {on_demand} -> {on_demand + more} (+{more}): {more} are on doomed nodes",
        ),
        (ago(begin - 61), "SpotLost", f"scale spot {spot} -> {spot - more} (-{more}): their nodes are gone."),
        (
            ago(begin - 84),
            "Probing",
            f"scale spot {spot - more} -> {spot - more + 1} (+1): spot has a free place.",
        ),
        (
            ago(begin - 95),
            "Returning",
            f"scale spot {spot - more + 1} -> {spot} (+{more - 1}): spot has held for 10 min.",
        ),
        (
            ago(begin - 96),
            "Covered",
            f"scale on-demand {on_demand + more} -> {on_demand} (-{more}): spot was ready for 600 s",
        ),
    ]
    if name in {"cart", "search"}:
        result.append(
            (
                ago(0.6),
                "SpotInterrupted",
                f"scale on-demand {on_demand} -> {on_demand + 2} (+2): 2 spot replicas are on doomed nodes",
            )
        )
    return result
