"""A Kubernetes that lacks something: it is said once, clearly, and the workload is left alone.

Run with an older one: `SPLITTER_KUBERNETES=1.33.13 make test-e2e`.
"""

import pytest

from e2e.support.terminal import Terminal, reported
from lab.fixtures.placed import PLACES, Placed
from lab.fixtures.shop import Shop

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(PLACES, reason="this Kubernetes places pods"),
]


class TestPlacement:
    def test_is_refused_with_both_remedies(self, shop: Shop, admin: Terminal) -> None:
        """No policy can be applied there, so none is asked for; twins are named, and had when asked for."""
        db = Placed(shop)
        db.create(3)
        uids = db.uids()
        db.label()
        shop.until(lambda: db.status().get("reason") == "PlacementUnsupported", "the refusal")
        message = db.status()["message"]
        assert "this API server has no MutatingAdmissionPolicy" in message
        assert "annotate splitter.io/mode=twins" in message
        assert message in reported(admin.splitter("plan", "sts/db", "-n", shop.namespace))
        assert db.uids() == uids
        db.annotate(mode="twins")
        db.wait_split(on_demand=2, spot=1)
