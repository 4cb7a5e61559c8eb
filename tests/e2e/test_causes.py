"""Replicas that do not run, for another reason than missing nodes: nothing moves, and the reason is said."""

import pytest

from e2e.support.admission import steadily
from e2e.support.causes import outlast_grace, pods_refused, reported, split, wait_well
from lab.fixtures.shop import Shop

pytestmark = pytest.mark.e2e


ENFORCE = "pod-security.kubernetes.io/enforce"


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
