"""What is done to a guarded workload, and what can be seen of its guard."""

from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.nodes import NODES

N = 4
ASKED = {"splitter.io/on-demand-base": "2"}
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")


def split(shop: Shop, **annotations: str) -> None:
    """Have a workload split, and wait for its guard."""
    shop.deploy(replicas=N, annotations={**ASKED, **annotations})
    shop.label()
    shop.wait_split(on_demand=2, spot=2)


def keeps(shop: Shop, guard: str = "web-guard") -> int | None:
    """Return how many pods the guard keeps; None without one."""
    path = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets/{guard}"
    result = shop.sandbox.api.find(path)
    return None if result is None else int(result["spec"]["minAvailable"])


def under(shop: Shop) -> list[str]:
    """Return the nodes that have a pod of the workload."""
    return sorted({pod["spec"]["nodeName"] for pod in shop.pods()})


def uncordon(shop: Shop, node: str) -> None:
    """Take a node back, as `kubectl uncordon` does."""
    shop.sandbox.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})


def budget(name: str, **spec: object) -> JsonObject:
    """Return a budget of the user's."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}, **spec},
    }
