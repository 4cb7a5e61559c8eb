"""What is said about a workload that is refused, and that nobody has touched it."""

from typing import Any

from lab.fixtures.shop import Shop

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS = 3


class Untouched:
    """A workload that must stay exactly as it is, but for the Split that reports on it."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._deployment = identity(shop.deployment())
        self._replica_sets = [identity(rs) for rs in shop.replica_sets()]
        self._pods = shop.pod_uids()
        self._deployments = shop.deployments()

    def verify(self) -> None:
        """Compare with now: neither it nor anything beside it was written by splitter."""
        shop = self._shop
        assert identity(shop.deployment()) == self._deployment
        assert [identity(rs) for rs in shop.replica_sets()] == self._replica_sets
        assert shop.pod_uids() == self._pods
        assert shop.deployments() == self._deployments


def identity(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what its own controllers and the user's kubectl write in passing."""
    metadata = {
        name: value
        for name, value in raw["metadata"].items()
        if name not in {"resourceVersion", "managedFields"}
    }
    managers = sorted({entry["manager"] for entry in raw["metadata"].get("managedFields", ())})
    return {"metadata": metadata, "spec": raw["spec"], "managers": managers}


def condition(shop: Shop, kind: str) -> tuple[str, str, str]:
    """Return a condition of the Split: its status, reason and message."""
    for one in shop.status().get("conditions", ()):
        if one["type"] == kind:
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def refused(shop: Shop, reason: str) -> str:
    """Wait until Split and Event say that web is refused for a reason, alike, and return their sentence."""
    shop.until(lambda: condition(shop, "Eligible")[:2] == ("False", reason), f"the condition {reason}")
    message: str = shop.reported(reason)
    status = shop.status()
    assert (status["state"], status["reason"], status["message"]) == ("Refused", reason, message)
    assert condition(shop, "Eligible")[2] == message
    shop.wait_posted()
    assert shop.events(reason) == [message]
    return message
