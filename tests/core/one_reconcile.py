"""One reconcile of a split workload, for the tests of the planner and of its steps."""

from dataclasses import replace

from builders import observation, pods, rendered, replica_set, twin
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Attachment, Observation
from splitter.core.plan import Plan, Rules
from splitter.core.planner import plan, policy_in_force
from splitter.core.replica import Pool

ATTACHED = replica_set("web-1", of=pods(10), attachment=Attachment.ATTACHED)
DEFAULTS = Policy(on_demand_base=2, spot_percent=80)


def planned(observed: Observation, template: str = "v1", **rules: float) -> Plan:
    """Return the plan of one reconcile."""
    asked = replace(Rules(defaults=DEFAULTS), **rules)  # type: ignore[arg-type]
    return plan(observed, policy_in_force(observed, DEFAULTS), rendered(template), asked)


def kinds(result: Plan) -> list[type]:
    """Return the kinds of the writes, in order."""
    return [type(action) for action in result.actions]


def at_rest(**fields: object) -> Observation:
    """Return a workload split 4 + 6 and at rest, on on-demand and sound spot nodes."""
    made = observation(
        sets=[replica_set(spec=0)],
        on_demand=twin(Pool.ON_DEMAND, pods(4)),
        spot=twin(Pool.SPOT, pods(6)),
    )
    return replace(made, **fields)  # type: ignore[arg-type]
