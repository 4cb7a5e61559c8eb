"""Suggests a policy for a workload that is not split yet, and says what splitting it would change.

`splitter suggest` reads the cluster, asks `propose` once for each workload, and estimates what the policy
saves. A refusal is the one that the planner would give (`eligibility`), in the same words. Nothing is
decided about a workload that is split. Source of the rules: docs/how-to/suggest.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from splitter.core import labels_annotations as keys
from splitter.core.division import base_replicas
from splitter.core.eligibility import advice, barriers, placement_advice, refusal
from splitter.core.evictions import BudgetView
from splitter.core.labels_annotations.policy import Policy, defaults_for, parse_policy
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Note, Observation, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import NOTICE_S, SHORTEST_NOTICE_S
from splitter.core.plan import Rules
from splitter.core.planner import policy_in_force
from splitter.core.replica import NodeStatus, Replica
from splitter.core.start_times import cover_s, gap_base, learned

_DIVISION = (
    keys.ANNOTATION_ON_DEMAND_BASE,
    keys.ANNOTATION_SPOT_PERCENT,
    keys.ANNOTATION_ON_DEMAND_MAX,
    keys.ANNOTATION_SPOT_MAX,
)
_UNKNOWN_START_SHARE = 4
# As `kube.budgets` says it; the API server takes any number of digits.
_PERCENT = re.compile("minAvailable ([0-9]{1,9})%")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload without the label, and what was seen beside it."""

    observed: Observation
    cpu_m: int = 0
    """What one replica requests, in thousandths of a vCPU."""
    memory_bytes: int = 0
    budgets: tuple[BudgetView, ...] = ()
    """The PodDisruptionBudgets that select its pods."""
    scaler: str = ""
    """Who changes its count, as kind/name; empty: nobody is seen to."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What could be seen of the cluster, and what holds for all its workloads."""

    pods: bool = True
    nodes: bool = True
    notice_s: float = SHORTEST_NOTICE_S


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for one workload."""

    key: Key
    mode: Mode
    replicas: int
    cpu_m: int
    """What all replicas request together, in thousandths of a vCPU."""
    memory_bytes: int
    start_s: int | None
    """In which an on-demand replica is there, as its pods tell (`start_times.cover_s`); None: not known."""
    refusal: Note | None = None
    """Why it cannot be split now; a warning is to be mended, any other passes by itself."""
    policy: Policy = field(default_factory=Policy)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What is to be written; empty where a policy is written already."""
    why: str = ""
    to_spot: int | None = None
    """Pods on on-demand nodes that would be on spot; None: not known."""
    to_on_demand: int | None = None
    advice: tuple[Note, ...] = ()
    barred: tuple[Note, ...] = ()
    """Which pool takes none of its replicas: then no saving is promised."""

    @property
    def refused(self) -> bool:
        """Whether somebody has to mend something first."""
        return self.refusal is not None and self.refusal.warning

    @property
    def on_demand(self) -> int:
        """The replicas that the policy wants on on-demand."""
        return base_replicas(self.replicas, self.policy)

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type: the policy, then the label; nothing for a workload that is refused."""
        if self.refused:
            return ()
        target = f"{self.key.kind.lower()} {self.key.name}"
        kubectl = f"kubectl -n {self.key.namespace}"
        written = " ".join(f"{name}={value}" for name, value in self.annotations.items())
        policy = (f"{kubectl} annotate {target} {written}",) if written else ()
        return (*policy, f"{kubectl} label {target} {keys.LABEL_SPLIT}={keys.SPLIT_ENABLED}")


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which annotations, and why."""

    annotations: Mapping[str, str]
    why: str


def notice_of(providers: Sequence[str]) -> float:
    """Return the seconds of the shortest notice that these providers give; of none, the shortest of all.

    >>> notice_of(["aws"]), notice_of(["aws", "gce"]), notice_of([])
    (120.0, 30.0, 30.0)
    """
    return min((NOTICE_S.get(one, SHORTEST_NOTICE_S) for one in providers), default=SHORTEST_NOTICE_S)


def propose(candidate: Candidate, source: SourceView, rules: Rules, sight: Sight) -> Proposal:
    """Return what is proposed for a workload, or why it would be refused."""
    observed = candidate.observed
    start_s = cover_s(learned(observed))
    in_force = policy_in_force(observed, rules.defaults)
    mode = mode_of(source.key.kind, in_force.policy.mode)
    proposal = Proposal(
        key=source.key,
        mode=mode,
        replicas=source.replicas,
        cpu_m=candidate.cpu_m * source.replicas,
        memory_bytes=candidate.memory_bytes * source.replicas,
        start_s=start_s,
    )
    if not in_force.valid:
        return replace(proposal, refusal=in_force.problems[0])
    written = {**(observed.namespace_annotations or {}), **source.annotations}
    choice = _choice(candidate, source, mode=mode, start_s=start_s, sight=sight, written=written)
    asked = {**source.annotations, **choice.annotations}
    defaults = defaults_for(source.key.kind, rules.defaults)
    policy = parse_policy(asked, defaults, observed.namespace_annotations).policy or in_force.policy
    objection = keys.name_problem(source.key.kind, source.key.name, mode) or refusal(
        observed, source, policy, rules.excluded_namespaces
    )
    placed = mode is Mode.PLACEMENT
    to_spot, to_on_demand = None, None
    if sight.pods and sight.nodes:
        pods = [pod for rs in observed.replica_sets for pod in rs.pods if pod.counts and _is_placed(pod)]
        base = base_replicas(source.replicas, policy)
        to_spot, to_on_demand = (_placed if placed else _divided)(pods, source, base)
    notes = placement_advice(observed, source) if placed else advice(observed, source)
    barred = barriers(observed, source, policy)
    return replace(
        proposal,
        refusal=objection,
        policy=policy,
        annotations=choice.annotations,
        why=choice.why,
        to_spot=to_spot,
        to_on_demand=to_on_demand,
        advice=(*barred, *notes),
        barred=barred,
    )


def kept_by(budget: BudgetView, replicas: int) -> int:
    """Return how many replicas a budget says must stand: its minAvailable, of a percentage rounded up.

    A maxUnavailable says how fast evictions may go, not how many must stand: it counts for nothing here.

    >>> kept_by(BudgetView("web", "1", False, None, None, "minAvailable 50%"), 5)
    3
    """
    if budget.min_available is not None:
        return max(0, min(budget.min_available, replicas))
    if (match := _PERCENT.fullmatch(budget.says)) is None:
        return 0
    return min(replicas, ceil(int(match[1]) * replicas / 100))


def _choice(
    candidate: Candidate,
    source: SourceView,
    *,
    mode: Mode,
    start_s: int | None,
    sight: Sight,
    written: Mapping[str, str],
) -> _Choice:
    if names := [name for name in _DIVISION if name in written]:
        return _Choice({}, f"its policy is written already: {', '.join(map(_short, names))}")
    if source.key.kind == STATEFUL_SET:
        chosen = _of_members(source.replicas, mode)
    else:
        chosen = _of_replicas(candidate, source.replicas, start_s, sight)
    if not candidate.scaler:
        return chosen
    return _Choice(chosen.annotations, f"{chosen.why}; {candidate.scaler} changes the count")


def _of_members(replicas: int, mode: Mode) -> _Choice:
    chosen = {keys.ANNOTATION_ON_DEMAND_BASE: "majority"}
    if replicas == 1:
        return _Choice(chosen, "its only member stays on on-demand")
    how = (
        "placed, so names and volumes stay" if mode is Mode.PLACEMENT else "in twins, as its annotation asks"
    )
    return _Choice(chosen, f"more than half of the members stay on on-demand, for their quorum; {how}")


def _of_replicas(candidate: Candidate, replicas: int, start_s: int | None, sight: Sight) -> _Choice:
    if replicas == 0:
        return _base(0, "it is scaled to 0, so nothing is saved now")
    if replicas == 1:
        return _base(1, "its single replica stays on on-demand: no other would serve while spot is lost")
    least, name = max(((kept_by(one, replicas), one.name) for one in candidate.budgets), default=(0, ""))
    if start_s is None:
        gap = ceil(replicas / _UNKNOWN_START_SHARE)
        why = f"how long its pods take to start is not seen, so {gap} of {replicas} stay on on-demand"
    else:
        gap = gap_base(replicas, start_s, sight.notice_s)
        why = f"its pods start in {start_s} s and a notice lasts {sight.notice_s:.0f} s"
        why = (
            f"{why}, so {gap} of {replicas} on on-demand serve through the gap"
            if gap
            else f"{why}, so all can be on spot"
        )
    if least > gap or (least and least == gap):
        return _base(
            least, f"PodDisruptionBudget {name} says minAvailable {least}, so {least} stay on on-demand"
        )
    if gap and candidate.scaler:
        # A count would be a smaller share of more replicas. Rounded so that it is `gap` or more of these.
        percent = 100 - ceil(100 * gap / replicas)
        return _Choice({keys.ANNOTATION_SPOT_PERCENT: str(percent)}, why)
    return _base(gap, why)


def _short(annotation: str) -> str:
    """Return an annotation as people say it: without what all have in common."""
    return annotation.rpartition("/")[2]


def _base(count: int, why: str) -> _Choice:
    return _Choice({keys.ANNOTATION_ON_DEMAND_BASE: str(count)}, why)


def _is_placed(pod: Replica) -> bool:
    """Whether it is known on what kind of node a pod stands."""
    return pod.node_status not in {NodeStatus.UNBOUND, NodeStatus.UNSEEN}


def _divided(pods: Sequence[Replica], source: SourceView, base: int) -> tuple[int, int]:
    """Count the pods that change pool when any of them may."""
    on_spot = sum(pod.on_spot for pod in pods)
    wanted = source.replicas - base
    return min(len(pods) - on_spot, max(0, wanted - on_spot)), max(0, on_spot - wanted)


def _placed(pods: Sequence[Replica], source: SourceView, base: int) -> tuple[int, int]:
    """Count the members that change pool: the lowest ordinals are wanted on on-demand."""
    first = source.stateful.first_ordinal if source.stateful is not None else 0
    kept = range(first, first + base)
    members = [pod for pod in pods if pod.ordinal is not None]
    to_spot = sum(not pod.on_spot and pod.ordinal not in kept for pod in members)
    return to_spot, sum(pod.on_spot and pod.ordinal in kept for pod in members)
