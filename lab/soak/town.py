"""Does what a day says, on the world of chaos: nodes come and go, people scale, deploy and choose.

`suite` calls `do` for each deed, each in a thread of its own. Nodes of the trace get machines of new names
each time, as clouds give them. What is taken is noted in the world before it goes, for the judge.
"""

import threading

from lab.chaos.world import HOME, Member, World
from lab.sandbox import SandboxError
from lab.sandbox.waiting import wait_until
from lab.soak.day import Deed, What, first_nodes

_COMES_S = _LEADS_S = 30.0
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/splitter"


class Town:
    """The world of chaos, without faults."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._guard = threading.Condition()
        self._machines = dict(zip(first_nodes(), world.sandbox.fleet.names("spot"), strict=True))
        self._on_demand = list(world.sandbox.fleet.names("on-demand"))

    def do(self, deed: Deed) -> None:
        """Do one thing. Raises SandboxError when it could not be done."""
        fleet = self.world.sandbox.fleet
        part = self.world.parts[deed.part]
        match deed.what:
            case What.SCALE:
                part.scale(part.cast.least + deed.number)
            case What.DEPLOY:
                part.roll()
            case What.POLICY:
                part.policy(deed.number, deed.percent)
            case What.NODE_COMES:
                [name] = fleet.add("spot", 1)
                with self._guard:
                    self._machines[deed.node] = name
                    self._guard.notify_all()
            case What.NODE_NOTICED:
                name = self._machine(deed.node)
                self.world.takes(name)
                fleet.notice(name)
            case What.NODE_GOES:
                name = self._machine(deed.node)
                self.world.takes(name)
                fleet.kill(name)
            case What.NODE_REPLACED:
                self._replace()
            case What.RESTARTED | What.LEADER_CHANGES:
                self._strike(deed.what)

    def _replace(self) -> None:
        fleet = self.world.sandbox.fleet
        [new] = fleet.add("on-demand", 1)
        with self._guard:
            old, self._on_demand = self._on_demand[0], [*self._on_demand[1:], new]
        self.world.takes(old)
        fleet.notice(old)
        fleet.kill(old)

    def _strike(self, what: What) -> None:
        """Kill and start both splitters, or have the leader stand still until the other leads."""
        if what is What.RESTARTED:
            for member in self.world.members:
                member.controller.kill()
                member.controller.begin()
            return
        leader = self._leader()
        if leader is None:
            raise SandboxError("nobody leads")
        leader.controller.pause()
        try:
            wait_until(
                lambda: self._leader() not in (None, leader),
                what="the other splitter to lead",
                deadline_s=_LEADS_S,
            )
        finally:
            leader.controller.resume()

    def _leader(self) -> Member | None:
        lease = self.world.sandbox.api.find(_LEASE) or {}
        says = f"leading as {lease.get('spec', {}).get('holderIdentity') or '-'}"
        return next((one for one in self.world.members if says in one.controller.said()), None)

    def _machine(self, node: str) -> str:
        """Return the machine of a node; one that is just being bought is waited for."""
        with self._guard:
            if not self._guard.wait_for(lambda: node in self._machines, _COMES_S):
                raise SandboxError(f"{node} has not come")
            return self._machines[node]
