"""Tools that write a source's manifest: kubectl, a GitOps tool, Helm."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox.api import PatchKind

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
POOLS = ("on-demand", "spot")


def client_side(shop: Shop, wanted: JsonObject) -> None:
    """Apply as `kubectl apply` does by default: a patch computed from what it applied last."""
    shop.apply(wanted)


def server_side(shop: Shop, wanted: JsonObject) -> None:
    """Apply as a GitOps controller does: a manager of its own, which takes what it asks for by force."""
    path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web"
    shop.sandbox.api.patch(path, wanted, kind=PatchKind.APPLY, field_manager="gitops")


def as_helm(shop: Shop, wanted: JsonObject) -> None:
    """Install or upgrade as Helm 3 does: a strategic merge patch with all that the chart says."""
    api, path = shop.sandbox.api, f"/apis/apps/v1/namespaces/{shop.namespace}/deployments"
    if api.find(f"{path}/web") is None:
        api.create(path, wanted)
    else:
        api.patch(f"{path}/web", wanted, kind=PatchKind.STRATEGIC, field_manager="helm")


def wanted(image: str = "web:1") -> JsonObject:
    """Return the manifest that lies in the repository; it says nothing about the split but the policy."""
    return manifest("web", REPLICAS, surge=SURGE, image=image, annotations=ASKED)


def generations(shop: Shop) -> dict[str, int]:
    """Return what each change of a twin's spec adds one to."""
    return {pool: shop.deployment(f"web-{pool}")["metadata"]["generation"] for pool in POOLS}


@contextmanager
def rolled_once(shop: Shop) -> Iterator[None]:
    """Claim that both twins' specs are written once meanwhile, and that nobody notices."""
    before = generations(shop)
    with shop.watch() as watched:
        yield
        shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE
    assert generations(shop) == {pool: count + 1 for pool, count in before.items()}
