"""Replicas that do not run, for another reason than missing nodes: what is said of them, and what ends it."""

from e2e.support.refusals import condition
from lab.fixtures.controller import SHORT
from lab.fixtures.shop import Shop, manifest
from lab.sandbox.instants import Instant

REPLICAS, SURGE = 4, 2
ONE_BASE = {"splitter.io/on-demand-base": "1"}

GRACE_S = float(SHORT["GRACE_S"])
BARE_REPLICA_SET = {**manifest("bare", 0), "kind": "ReplicaSet"}
del BARE_REPLICA_SET["spec"]["strategy"]


def healthy(shop: Shop) -> tuple[str, str, str]:
    """Return the condition about the pods: its status, reason and message."""
    return condition(shop, "PodsHealthy")


def reported(shop: Shop, reason: str, words: str) -> None:
    """Wait until the Split says it in these words, and an Event in the same one."""

    def is_said() -> bool:
        status, said, message = healthy(shop)
        return (status, said) == ("False", reason) and words in message

    shop.until(is_said, f"the condition {reason} with {words!r}")
    shop.reported(reason)


def outlast_grace(shop: Shop) -> None:
    """Wait until whatever would be done after the grace has been done."""
    began = Instant.now().monotonic_s
    shop.until(lambda: Instant.now().monotonic_s > began + GRACE_S + 5, "the grace to pass")


def wait_well(shop: Shop, on_demand: int, spot: int) -> None:
    """Wait until the trouble is over, and everybody says so."""
    shop.wait_split(on_demand, spot)
    shop.until(lambda: healthy(shop)[0] == "True", "the pods to be healthy")


def quota(shop: Shop, pods: int) -> None:
    """Allow so many pods in the namespace."""
    spec = {"hard": {"pods": str(pods)}}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": spec}
    shop.apply(body)
    path = f"/api/v1/namespaces/{shop.namespace}/resourcequotas/small"
    shop.until(lambda: shop.sandbox.api.get(path).get("status", {}).get("hard") == spec["hard"], "the quota")


def quota_used(shop: Shop) -> bool:
    """Whether the quota of ReplicaSets is counted, and no more of them are let pass."""
    raw = shop.sandbox.api.get(f"/api/v1/namespaces/{shop.namespace}/resourcequotas/few")
    if not raw.get("status", {}).get("used"):
        return False
    return "exceeded quota" in shop.refusal(BARE_REPLICA_SET)  # the API server follows quotas by a watch


def split(shop: Shop) -> None:
    """Have a workload split: one replica on on-demand, three on spot."""
    shop.deploy(replicas=REPLICAS, annotations=ONE_BASE)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    shop.wait_steady()  # a twin that its controller has not seen yet would be rolled first


def pods_refused(shop: Shop, words: str) -> bool:
    """Whether the API server refuses a pod that is like those of `web`, in these words."""
    template = manifest("web", 1)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "tried"}}
    return words in shop.refusal(pod)
