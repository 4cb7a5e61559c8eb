"""Does what a day says, on the world of chaos: nodes come and go, people scale, deploy and choose.

`suite` calls `do` for each deed, each in a thread of its own. Nodes of the trace get machines of new names
each time, as clouds give them. What is taken is noted in the world before it goes, for the judge.
"""

import threading

from chaos.world import World
from soak.day import Deed, What, first_nodes
from splitter.sandbox import SandboxError

_COMES_S = 30.0


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
                [new] = fleet.add("on-demand", 1)
                with self._guard:
                    old, self._on_demand = self._on_demand[0], [*self._on_demand[1:], new]
                self.world.takes(old)
                fleet.notice(old)
                fleet.kill(old)

    def _machine(self, node: str) -> str:
        """Return the machine of a node; one that is just being bought is waited for."""
        with self._guard:
            if not self._guard.wait_for(lambda: node in self._machines, _COMES_S):
                raise SandboxError(f"{node} has not come")
            return self._machines[node]
