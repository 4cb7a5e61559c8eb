"""What the first view says: figures of all workloads, nodes that go, decisions, and one row a workload.

Pure but for the model that it reads: nothing here renders.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from splitter.core.names import Key
from splitter.core.nodes.facts import Health, NodeState
from splitter.core.reasons import State
from splitter.core.split_status import PastDecision, SplitStatus
from splitter.plugin.core.savings import Saving
from splitter.plugin.dashboard.history import KEPT, Moment
from splitter.plugin.dashboard.model import Model
from splitter.plugin.dashboard.workload_status import asked as asked_of

LATEST = 6
_TOGETHER = KEPT / 900
ZONE = "topology.kubernetes.io/zone"
_WORKLOADS_NAMED = 8  # of those that stand on a node that goes


@dataclass(frozen=True, slots=True)
class Figures:
    """All workloads together."""

    workloads: int
    at_rest: int
    desired: int
    ready: int
    going: int
    """Beside the ready ones, on nodes that are announced to go."""
    cover: int
    on_spot: float | None
    """The share of ready replicas on spot now."""
    saved: float | None
    """The share that was saved since it is counted, on-demand and spot at assumed prices."""
    saved_since: datetime | None


@dataclass(frozen=True, slots=True)
class Going:
    """A node that is announced to go, or gone, with replicas on it or without."""

    name: str
    pool: str
    zone: str
    gone: bool
    signal: str
    deadline: datetime | None
    on_it: Mapping[Key, int]
    """The replicas of each workload that stand there."""

    @property
    def replicas(self) -> int:
        """All of them."""
        return sum(self.on_it.values())

    @property
    def workloads(self) -> list[tuple[Key, int]]:
        """Those that are named, the largest first."""
        return sorted(self.on_it.items(), key=lambda one: (-one[1], str(one[0])))[:_WORKLOADS_NAMED]

    @property
    def more(self) -> int:
        """Workloads that are not named."""
        return max(0, len(self.on_it) - _WORKLOADS_NAMED)


@dataclass(frozen=True, slots=True)
class WorkloadDecision:
    """A decision about a workload."""

    key: Key
    decision: PastDecision


def element_id(key: Key) -> str:
    """Return a name for the row of a workload, of letters and digits only."""
    return "w" + hashlib.sha256(f"{key.kind}/{key}".encode()).hexdigest()[:16]


def figures(model: Model) -> Figures:
    """Return the sums."""
    statuses = list(model.statuses.values())
    on_demand, spot = (sum(getattr(one, pool).ready for one in statuses) for pool in ("on_demand", "spot"))
    usages = [one.usage for one in statuses if one.usage is not None]
    return Figures(
        workloads=len(statuses),
        at_rest=sum(one.state == State.STEADY for one in statuses),
        desired=sum(one.desired for one in statuses),
        ready=sum(one.ready for one in statuses),
        going=sum(one.doomed for one in statuses),
        cover=sum(one.cover for one in statuses),
        on_spot=spot / (spot + on_demand) if spot + on_demand else None,
        saved=model.saved.ratio(None),
        saved_since=min((usage.since for usage in usages), default=None),
    )


def saved(status: SplitStatus, now: datetime) -> float | None:
    """Return the share that a workload has saved since it is counted; None where nothing is."""
    return Saving(status.usage.at(now)).ratio(None) if status.usage is not None else None


def going(model: Model) -> list[Going]:
    """Return the nodes that go, those with the earliest deadline first."""
    result: dict[str, Going] = {}
    for record in model.view.troubled_nodes():
        state = record.state
        on_it = model.view.splits_on(state.name)
        if state.health is Health.GONE and not on_it:
            continue  # it was announced or not, and nobody stands there
        gone = state.health is Health.GONE
        result[state.name] = Going(
            state.name, pool_of(state), zone_of(state), gone, state.signal, state.deadline, on_it
        )
    for name, reported in _reported(model).items():
        result.setdefault(name, reported)
    last = datetime.max.replace(tzinfo=model.now.tzinfo)
    return sorted(result.values(), key=lambda one: (one.deadline or last, one.name))


def _reported(model: Model) -> dict[str, Going]:
    """Return the nodes that Splits report: also those that are gone, or may not be seen."""
    result: dict[str, Going] = {}
    on_it: dict[str, dict[Key, int]] = {}
    for key, status in model.statuses.items():
        for node in status.nodes:
            on_it.setdefault(node.name, {})[key] = node.replicas
            gone = node.state == "Lost"
            result[node.name] = Going(node.name, "", "", gone, node.signal, node.deadline, on_it[node.name])
    return result


def pool_of(state: NodeState) -> str:
    """Return the pool of a node, as it is shown."""
    return "spot" if state.is_spot else "on-demand"


def zone_of(state: NodeState) -> str:
    """Return the zone of a node; empty where it says none."""
    return state.labels.get(ZONE, "")


def recent_decisions(model: Model) -> Iterator[WorkloadDecision]:
    """Yield the decisions of the hours that are shown, in no order."""
    horizon = model.now - KEPT
    for key, status in model.statuses.items():
        yield from (WorkloadDecision(key, one) for one in status.decisions if one.at >= horizon)


def asked(model: Model) -> list[Moment]:
    """Return how many replicas were asked for in all, as the decisions of all workloads say, oldest first."""
    steps: list[tuple[datetime, int, int]] = []
    for one in model.statuses.values():
        on_demand = spot = 0
        for moment in asked_of(one):
            steps.append((moment.at, moment.on_demand - on_demand, moment.spot - spot))
            on_demand, spot = moment.on_demand, moment.spot
    begin, result = model.now - KEPT, list[Moment]()
    on_demand = spot = 0
    for at, more_on_demand, more_spot in sorted(steps):
        on_demand, spot = on_demand + more_on_demand, spot + more_spot
        # What cannot be told apart in the picture is one step of it.
        drawn = result[-1].at if result and at - result[-1].at < _TOGETHER else max(at, begin)
        if at <= begin or (result and drawn == result[-1].at):
            del result[-1:]
        result.append(Moment(drawn, 0, on_demand, spot))
    return result


def latest(model: Model) -> list[WorkloadDecision]:
    """Return the last decisions, newest first."""
    return nlargest(LATEST, recent_decisions(model), key=lambda one: (one.decision.at, str(one.key)))
