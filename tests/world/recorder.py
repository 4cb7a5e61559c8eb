"""Judges what becomes of a workload's pods, from the pods alone: it knows nothing of splitter's reasons.

It follows the API server's own events, so that nothing is between two looks.
"""

import asyncio
from collections import deque
from typing import Final

from world.cluster import Cluster
from world.kinds import PODS, Raw
from world.objects import Event
from world.pods import is_active, is_ready

_REMEMBERED: Final = 30


class Recorder:
    """Counts the pods of a namespace after each change; `broken` tells each promise that did not hold.

    Below `least` serving is a break unless machines took them: as many as served on one that went may be
    missing until all are there again. Above `most` counts what is bound to a machine that stays.
    """

    def __init__(self, cluster: Cluster, least: int, most: int, namespace: str = "shop") -> None:
        self.least, self.most = least, most
        self.lost = 0  # pods that machines took and that are not made up for
        self.doomed: set[str] = set()  # machines that are announced to go
        self.fewest = least
        self.highest = 0
        self.broken: list[str] = []
        self._cluster = cluster
        self._namespace = namespace
        self._pods: dict[str, Raw] = {
            raw["metadata"]["uid"]: raw for raw in cluster.objects.all(PODS, namespace)
        }
        self._past: deque[str] = deque(maxlen=_REMEMBERED)
        self._end = cluster.objects.follow(PODS, self._changed)

    def serving(self) -> int:
        """Return how many pods serve: ready, not ending, on a machine that is there."""
        return sum(map(self._serves, self._pods.values()))

    def vanish(self, node: str) -> None:
        """Take a machine away; what served there is its own loss, and no one's doing."""
        self.lost += sum(
            self._serves(pod) for pod in self._pods.values() if pod["spec"].get("nodeName") == node
        )
        self._cluster.vanish(node)
        self._judge()

    def stop(self) -> None:
        """Judge no further."""
        self._end()

    def _serves(self, pod: Raw) -> bool:
        return (
            is_active(pod)
            and is_ready(pod)
            and pod["spec"].get("nodeName") not in self._cluster.machines.silent
        )

    def _changed(self, event: Event) -> None:
        if event.ref.namespace != self._namespace:
            return
        uid = event.new["metadata"]["uid"]
        if event.deleted:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = event.new
        at_s = asyncio.get_running_loop().time()
        what = "gone" if event.deleted else "ready" if is_ready(event.new) else "not ready"
        ending = ", ending" if "deletionTimestamp" in event.new["metadata"] else ""
        self._past.append(
            f"{at_s:.3f} s: {event.ref.name} on {event.new['spec'].get('nodeName')}: {what}{ending}"
        )
        self._judge()

    def _judge(self) -> None:
        serving = self.serving()
        gone = self._cluster.machines.silent.keys() | self.doomed
        bound = sum(
            is_active(pod) and bool(node := pod["spec"].get("nodeName")) and node not in gone
            for pod in self._pods.values()
        )
        self.fewest, self.highest = min(self.fewest, serving), max(self.highest, bound)
        if serving >= self.least:
            self.lost = 0
        elif serving < self.least - self.lost:
            self._break(f"{serving} of {self.least} serve, and machines took {self.lost}")
        if bound > self.most:
            self._break(f"{bound} are bound, and {self.most} may be")

    def _break(self, what: str) -> None:
        self.broken.append("\n".join((what, *self._past)))
