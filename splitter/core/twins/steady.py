"""Decides when a workload is Steady: every pod has the latest template and is available (H80).

`steps` asks after counts and templates have been decided. `kubectl wait` and health checks of GitOps tools
go by the word, so it comes when a rollout is through and not when its last write is (docs/how-to/helm.md).
"""

from dataclasses import replace

from splitter.core.holders.holder import is_rolling
from splitter.core.model import Note, TwinView
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State
from splitter.core.rebalance.sentences import waiting


def settled(plan: Plan, *twins: TwinView) -> Plan:
    """Return the plan, Rolling or Held while a pod of these is missing, old, not available or to go.

    What the plan says already stands, where it says more than that the counts are as wanted.
    """
    if plan.state is not State.STEADY:
        return plan
    for twin in twins:
        if is_rolling(twin):
            rolled = f"{twin.updated_replicas} of {twin.spec_replicas}"
            message = f"{rolled} replicas of {twin.name} have its new template"
            return replace(plan, state=State.ROLLING, verdict=Note(Reason.ROLLING, message))
    for twin in twins:
        available = min(sum(pod.available for pod in twin.pods), twin.available_replicas)
        leaving = sum(pod.counts for pod in twin.pods) - twin.spec_replicas
        if available < twin.spec_replicas or leaving > 0:
            there = min(available, twin.spec_replicas)
            message = f"{there} of {twin.spec_replicas} replicas of {twin.name} are available"
            message += f", and {leaving} beside them are to go" if available >= twin.spec_replicas else ""
            waits = waiting(message)
            rests = plan.verdict.reason is Reason.BALANCED
            return replace(plan, state=State.HELD, verdict=waits if rests else plan.verdict)
    return plan
