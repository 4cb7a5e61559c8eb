"""Hub and members are looked at together."""

import threading
from typing import Any

from federation.pods import pod
from lab.federation.watch import Watch
from lab.sandbox import SandboxError

PATH = "/apis/apps/v1/namespaces/shop/deployments/web"


class Paper:
    """Stands in for an API server with one workload, one node and its pods."""

    def __init__(self, replicas: int, pods: int, answers: int = 10**9) -> None:
        """After so many answers it is away."""
        self.replicas, self.pods, self.left = replicas, pods, answers
        self.looked = threading.Event()

    def get(self, path: str) -> dict[str, Any]:
        """Return the workload."""
        assert path == PATH
        self.left -= 1
        if self.left < 0:
            self.looked.set()
            raise SandboxError("it does not answer")
        return {"spec": {"replicas": self.replicas}}

    def list(self, path: str) -> list[dict[str, Any]]:
        """Return the node, or the pods of the namespace."""
        if path == "/api/v1/nodes":
            return [{"metadata": {"name": "spot-0"}}]
        assert path == "/api/v1/namespaces/shop/pods"
        return [pod()] * self.pods


class TestWatch:
    """Hub and members, seen at the same time."""

    def test_adds_the_members_up(self) -> None:
        """The wish is the hub's, and the pods are all members'."""
        hub: Any = Paper(20, 0)
        members: Any = [Paper(12, 11), Paper(8, 8)]
        sample = Watch(hub, members, PATH).look()
        assert (sample.wanted, sample.serving) == (20, 19)

    def test_keeps_what_it_sees(self) -> None:
        """While a cluster is away nothing is added; the end of the block ends it."""
        hub: Any = Paper(20, 0, answers=2)
        member: Any = Paper(20, 18)
        with Watch(hub, [member], PATH) as watch:
            assert hub.looked.wait(60)
        assert [(one.wanted, one.serving) for one in watch.ledger.samples] == [(20, 18)] * 2
        assert watch.ledger.lost() > 0
