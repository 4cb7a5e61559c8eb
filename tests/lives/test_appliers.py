"""Whoever writes the source's manifest again and again: kubectl, a GitOps tool, Helm. Nobody is in the way.

Each test has its tool write while the workload is taken over, rolled and given back, and judges by the pods.
"""

import json
from collections.abc import Callable

import pytest

from e2e.support.appliers import (
    REPLICAS,
    SURGE,
    as_helm,
    client_side,
    generations,
    rolled_once,
    server_side,
    wanted,
)
from lab.fixtures.shop import LAST_APPLIED, POOL, JsonObject, Shop
from world.sandbox import InMemory

AT_LEAST = 5  # a GitOps tool writes every few minutes; this is several times within each step
# What the tools recognise their own objects by. On a twin it would have them adopt, count or prune it.
TRACKING_LABELS = {
    "app.kubernetes.io/instance": "shop",
    "app.kubernetes.io/managed-by": "Helm",
    "argocd.argoproj.io/instance": "shop",
    "helm.sh/chart": "web-1.0.0",
    "helm.toolkit.fluxcd.io/name": "shop",
    "kustomize.toolkit.fluxcd.io/name": "shop",
    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
}
TRACKING_ANNOTATIONS = {
    "argocd.argoproj.io/sync-wave": "3",
    "argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web",
    "helm.sh/hook": "post-install",
    "kustomize.toolkit.fluxcd.io/prune": "enabled",
    "meta.helm.sh/release-name": "shop",
    "meta.helm.sh/release-namespace": "shop",
    "reloader.stakater.com/auto": "true",
}


class Loop:
    """A tool that applies what is wanted over and over."""

    def __init__(self, shop: Shop, apply: Callable[[Shop, JsonObject], None]) -> None:
        self.wanted = wanted()
        self._times = 0
        self._shop = shop
        self._apply = apply

    def run(self) -> None:
        """Apply it once more."""
        self._apply(self._shop, self.wanted)
        self._times += 1

    def often(self) -> None:
        """Wait until it has applied what is wanted now, several times."""
        before = self._times
        self._shop.until(lambda: self._times > before + AT_LEAST, "the tool to apply again")


class TestLoop:
    def test_a_count_in_the_manifest(self, shop: Shop) -> None:
        """Whoever keeps the count in Git gets it: a count set by hand holds until the next apply."""
        shop.apply(wanted())
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        shop.scale(6)
        shop.wait_split(on_demand=1, spot=5)
        with shop.watch() as watched:
            shop.apply(wanted())
            shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS

    @pytest.mark.parametrize("apply", [client_side, server_side, as_helm])
    def test_a_whole_life(
        self, shop: Shop, sandbox: InMemory, apply: Callable[[Shop, JsonObject], None]
    ) -> None:
        """Applied over and over it is taken over, rolled and given back as ever: no pause undone, no dip."""
        apply(shop, wanted())
        shop.wait_rolled_out()
        loop = Loop(shop, apply)
        with sandbox.beside(loop.run), shop.watch() as watched:
            loop.often()
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            before = generations(shop)
            loop.often()
            assert generations(shop) == before
            loop.wanted = wanted(image="web:2")
            shop.until(lambda: shop.images() == {"web:2": REPLICAS}, "web:2 everywhere")
            shop.wait_split(on_demand=1, spot=3)
            loop.often()
            assert generations(shop) == {pool: count + 1 for pool, count in before.items()}
            shop.unlabel()
            shop.wait_given_back()
            loop.often()
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE
        assert shop.deployments() == {"web"}
        shop.wait_posted()
        assert not shop.events("ForeignWrite")


class TestTracking:
    """A tool's marks on the source stay there."""

    def test_nothing_is_copied_to_the_twins(self, shop: Shop) -> None:
        """Not when they are made, and not when a tool raises the chart's version, which changes no pod."""
        shop.apply(tracked("web-1.0.0"))
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        before, pods = generations(shop), shop.pod_uids()
        verify_untracked(shop)
        for chart, apply in (("web-1.1.0", client_side), ("web-1.2.0", server_side), ("web-1.3.0", as_helm)):
            apply(shop, tracked(chart))
            assert shop.deployment()["metadata"]["labels"]["helm.sh/chart"] == chart
        shop.scale(REPLICAS + 1)  # whatever was to be copied has been by then
        shop.wait_split(on_demand=1, spot=4)
        verify_untracked(shop)
        assert generations(shop) == {**before, "spot": before["spot"] + 1}
        assert pods < shop.pod_uids()

    def test_a_pods_own_marks_are_kept(self, shop: Shop) -> None:
        """What the chart puts on the pods is on the twins' pods too; a new checksum there is a rollout."""
        shop.apply(tracked("web-1.0.0"))
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        before = generations(shop)
        with shop.watch() as watched:
            as_helm(shop, tracked("web-1.0.0", checksum="two"))
            shop.until(lambda: checksums(shop) == ["two"] * REPLICAS, "the new checksum everywhere")
            shop.wait_split(on_demand=1, spot=3)
        assert {pod["metadata"]["labels"].get("helm.sh/chart") for pod in shop.pods()} == {"web"}
        assert generations(shop) == {pool: count + 1 for pool, count in before.items()}
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE


def tracked(chart: str, checksum: str = "one") -> JsonObject:
    """Return a Deployment as charts make them, with the marks of all tools at once."""
    result = wanted()
    result["metadata"]["labels"] |= {**TRACKING_LABELS, "helm.sh/chart": chart}
    result["metadata"]["annotations"] |= TRACKING_ANNOTATIONS
    pod = result["spec"]["template"]["metadata"]
    pod["labels"] |= {"helm.sh/chart": "web"}
    pod["annotations"] |= {"checksum/config": checksum}
    return result


def verify_untracked(shop: Shop) -> None:
    """Claim that no twin, and no ReplicaSet of one, carries a tool's mark of the source's."""
    content = json.loads(shop.kubectl("get", "deployments,replicasets", "-l", POOL, "-o", "json"))["items"]
    assert {raw["kind"] for raw in content} == {"Deployment", "ReplicaSet"}
    for raw in content:
        metadata = raw["metadata"]
        carried = {**metadata.get("labels", {}), **metadata.get("annotations", {})}
        marks = {*TRACKING_ANNOTATIONS, LAST_APPLIED, *TRACKING_LABELS}
        if raw["kind"] == "ReplicaSet":  # it carries the labels of its pods, which are the user's
            marks -= {"helm.sh/chart"}
        assert not marks & set(carried), f"{raw['kind']}/{metadata['name']}"


def checksums(shop: Shop) -> list[str]:
    """Return the checksum on each pod."""
    return [pod["metadata"]["annotations"]["checksum/config"] for pod in shop.pods()]


class TestByHand:
    """The verbs of kubectl that change a Deployment, on the source."""

    @pytest.fixture
    def shop(self, shop: Shop) -> Shop:
        """Return a namespace with `web` split into 1 + 3."""
        shop.apply(wanted())
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        return shop

    def test_patch(self, shop: Shop) -> None:
        """`kubectl patch` of every kind rolls both twins once, without a dip."""
        path = "/spec/template/spec/terminationGracePeriodSeconds"
        patches: tuple[tuple[str, int, object], ...] = (
            ("strategic", 3, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 3}}}}),
            ("merge", 4, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 4}}}}),
            ("json", 6, [{"op": "replace", "path": path, "value": 6}]),
        )
        for kind, grace, patch in patches:
            with rolled_once(shop):
                shop.kubectl("patch", "deployment", "web", f"--type={kind}", "-p", json.dumps(patch))
                shop.until(
                    lambda grace=grace: graces(shop) == [grace] * REPLICAS,  # type: ignore[misc]
                    "the new template everywhere",
                )

    def test_set_env_and_resources(self, shop: Shop) -> None:
        """`kubectl set env` and `set resources` reach every pod; two changes in a row end with both."""
        with shop.watch() as watched:
            shop.kubectl("set", "env", "deployment/web", "COLOUR=green")
            shop.kubectl("set", "resources", "deployment/web", "--requests=cpu=50m")
            shop.until(
                lambda: [*map(_asked, shop.pods())] == [("green", "50m")] * REPLICAS, "both everywhere"
            )
            shop.wait_split(on_demand=1, spot=3)
        assert watched.lowest() >= REPLICAS
        assert watched.highest_asked() <= REPLICAS + SURGE


def graces(shop: Shop) -> list[int]:
    """Return how long each pod is given to end."""
    return [pod["spec"]["terminationGracePeriodSeconds"] for pod in shop.pods()]


def _asked(pod: JsonObject) -> tuple[str, str]:
    container = pod["spec"]["containers"][0]
    colour = next((each["value"] for each in container.get("env", ()) if each["name"] == "COLOUR"), "")
    return colour, container["resources"]["requests"]["cpu"]
