"""A storm over an API server that only takes notes."""

import threading
from collections import Counter
from typing import Any

from lab.chaos.storm import STORM_NODES, STORM_TAINT, Storm
from lab.sandbox import ApiError
from lab.sandbox.machines import CAPACITY_LABEL
from lab.sandbox.waiting import wait_until


class Notes:
    """What was asked for; every third status is refused, as a server under fire does."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.said: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._asked = 0

    def create(self, _path: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Take a node."""
        with self._guard:
            self.nodes[manifest["metadata"]["name"]] = manifest
        return manifest

    def patch(self, path: str, patch: dict[str, Any], **_: object) -> dict[str, Any]:
        """Take what a node says of itself."""
        with self._guard:
            self._asked += 1
            if self._asked % 3 == 0:
                raise ApiError(500, "InternalError", "no")
            assert path.split("/")[-2] in self.nodes
            [condition] = patch["status"]["conditions"]
            self.said[condition["status"]] += 1
        return {}

    def delete(self, path: str, **_: object) -> None:
        """Take a node away."""
        with self._guard:
            self.nodes.pop(path.rpartition("/")[2], None)


def test_a_storm() -> None:
    """Hundreds of nodes of both kinds, on which nothing may stand, turn until it is over, and are gone."""
    api = Notes()
    storm = Storm(api)  # type: ignore[arg-type]  # as much of an Api as it uses
    storm.begin()
    assert len(api.nodes) == STORM_NODES
    kinds = Counter(node["metadata"]["labels"][CAPACITY_LABEL] for node in api.nodes.values())
    assert kinds == {"spot": STORM_NODES // 2, "on-demand": STORM_NODES // 2}
    assert all(node["spec"]["taints"] == [STORM_TAINT] for node in api.nodes.values())
    wait_until(lambda: api.said["False"] > STORM_NODES // 2, what="nodes to turn", deadline_s=30)
    storm.end()
    assert api.nodes == {}
    assert storm.flaps == api.said.total() > STORM_NODES


def test_a_storm_that_did_not_begin() -> None:
    """It ends as well: another event may have stopped the API server."""
    api = Notes()
    Storm(api).end()  # type: ignore[arg-type]  # as above
    assert api.said.total() == 0
