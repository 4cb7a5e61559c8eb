"""Replicas that do not run, for another reason than missing nodes: nothing moves, and the reason is said."""

import pytest

from e2e.support.admission import steadily
from e2e.support.causes import outlast_grace, reported, wait_well
from lab.fixtures.shop import Shop, manifest

pytestmark = pytest.mark.e2e


REPLICAS, SURGE = 4, 2
ONE_BASE = {"splitter.io/on-demand-base": "1"}
ENFORCE = "pod-security.kubernetes.io/enforce"


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


class TestRefused:
    """Pods that the API server refuses."""

    def test_pod_security(self, shop: Shop) -> None:
        """The words of the policy are passed on, and nothing moves."""
        split(shop)
        shop.sandbox.kubectl("label", "namespace", shop.namespace, f"{ENFORCE}=restricted")
        shop.until(
            lambda: steadily(lambda: pods_refused(shop, "violates PodSecurity")),
            "the standard to be enforced",
        )
        shop.scale(6)
        words = "2 of 5 replicas of web-spot are refused by the API server: violates PodSecurity"
        reported(shop, "PodsRefused", words)
        outlast_grace(shop)
        assert shop.twins() == (1, 5)
        shop.sandbox.kubectl("label", "namespace", shop.namespace, f"{ENFORCE}-")
        wait_well(shop, on_demand=1, spot=5)
