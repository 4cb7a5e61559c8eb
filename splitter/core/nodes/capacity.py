"""Tells spot nodes from on-demand nodes, and builds the affinity that asks for them.

Every row may say something, and what they say must agree; but for an overriding row, which has the last
word. Nothing said, or a contradiction = unknown, counted as on-demand.
`kube.observe` classifies nodes with it (through `signals.assess`), `desired` builds the twins' affinity
and tolerations from it. Static by configuration, never guessed from the nodes of the moment: a changed
template is a rollout. Source: R1 to R3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from splitter.core.nodes.facts import CapacityClass, Taint


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """A label that must be there, with one of `values`; no values = with any value."""

    key: str
    values: tuple[str, ...] = ()
    flag: bool = False
    """It has that value or is absent: whoever excludes the value may as well exclude the label."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether a node with these labels matches."""
        return self.key in labels and (not self.values or labels[self.key] in self.values)


@dataclass(frozen=True, slots=True)
class CapacityEvidence:
    """What one label or taint of a node says about how it is paid for."""

    capacity: CapacityClass
    text: str
    """For people: "karpenter.sh/capacity-type=spot"."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table: how one provider or tool marks its nodes."""

    name: str
    on_demand: tuple[LabelMatch, ...] = ()
    spot: tuple[LabelMatch, ...] = ()
    spot_taint_key: str | None = None
    """A taint that marks spot by itself."""
    tolerated: tuple[Taint, ...] = ()
    """What the provider taints spot nodes with; an empty value tolerates any."""
    overrides: bool = False
    """What this row says counts, whatever the rows below say."""
    asked_alone: bool = False
    """Its nodes are asked for by their own label, and nothing else is excluded in the same term.

    Karpenter (1.9 and later) writes every label that a pod excludes by NotIn, with a made-up value, on the
    node it buys for it. A kubelet that is told one below node-role.kubernetes.io does not even start, and
    each node is unlike any other (docs/how-to/karpenter.md).
    """

    def marks(self, labels: Mapping[str, str], taint_keys: Iterable[str]) -> tuple[CapacityEvidence, ...]:
        """Return what a node carries of this row, on-demand first."""
        evidence = [
            CapacityEvidence(capacity, f"{label.key}={labels[label.key]}")
            for capacity, row in (
                (CapacityClass.ON_DEMAND, self.on_demand),
                (CapacityClass.SPOT, self.spot),
            )
            for label in row
            if label.matches(labels)
        ]
        if self.spot_taint_key is not None and self.spot_taint_key in taint_keys:
            evidence.append(CapacityEvidence(CapacityClass.SPOT, f"taint {self.spot_taint_key}"))
        return tuple(evidence)


PRESETS: tuple[Preset, ...] = (
    # A fallback node carries CAST AI's spot label and taint, and yet is on-demand.
    Preset(
        "cast-ai-fallback",
        on_demand=(LabelMatch("scheduling.cast.ai/spot-fallback", ("true",), flag=True),),
        overrides=True,
    ),
    Preset(
        "karpenter",
        asked_alone=True,
        on_demand=(LabelMatch("karpenter.sh/capacity-type", ("on-demand", "reserved")),),
        spot=(LabelMatch("karpenter.sh/capacity-type", ("spot",)),),
    ),
    Preset(
        "eks",
        on_demand=(LabelMatch("eks.amazonaws.com/capacityType", ("ON_DEMAND",)),),
        spot=(LabelMatch("eks.amazonaws.com/capacityType", ("SPOT",)),),
    ),
    Preset(
        "gke",
        on_demand=(LabelMatch("cloud.google.com/gke-provisioning", ("standard",)),),
        spot=(
            LabelMatch("cloud.google.com/gke-spot", ("true",)),
            LabelMatch("cloud.google.com/gke-provisioning", ("spot",)),
            LabelMatch("cloud.google.com/gke-preemptible", ("true",)),
        ),
        tolerated=(Taint("cloud.google.com/gke-spot", "true"),),
    ),
    Preset(
        "aks",
        on_demand=(
            LabelMatch("kubernetes.azure.com/scalesetpriority", ("regular",)),
            LabelMatch("kubernetes.azure.com/priority", ("regular",)),
        ),
        spot=(
            LabelMatch("kubernetes.azure.com/scalesetpriority", ("spot",)),
            LabelMatch("kubernetes.azure.com/priority", ("spot",)),
        ),
        tolerated=(Taint("kubernetes.azure.com/scalesetpriority", "spot"),),
    ),
    Preset(
        "alibaba",
        on_demand=(LabelMatch("node.alibabacloud.com/spot-strategy", ("NoSpot",)),),
        spot=(LabelMatch("node.alibabacloud.com/spot-strategy", ("SpotAsPriceGo", "SpotWithPriceLimit")),),
    ),
    # OKE sets a label of the same name as the taint (Oracle: "Using Preemptible Capacity"); affinity
    # can only speak of labels.
    Preset(
        "oke",
        spot=(LabelMatch("oci.oraclecloud.com/oke-is-preemptible", ("true",)),),
        spot_taint_key="oci.oraclecloud.com/oke-is-preemptible",
        tolerated=(Taint("oci.oraclecloud.com/oke-is-preemptible"),),
    ),
    Preset("openshift", spot=(LabelMatch("machine.openshift.io/interruptible-instance"),)),
    Preset(
        "ocean",
        on_demand=(LabelMatch("spotinst.io/node-lifecycle", ("od",)),),
        spot=(LabelMatch("spotinst.io/node-lifecycle", ("spot",)),),
    ),
    Preset(
        "cast-ai",
        spot=(LabelMatch("scheduling.cast.ai/spot"),),
        tolerated=(Taint("scheduling.cast.ai/spot"),),
    ),
    Preset(
        "conventions",
        on_demand=(
            LabelMatch("node.kubernetes.io/capacity", ("on-demand",)),
            LabelMatch("node.kubernetes.io/lifecycle", ("normal",)),
            LabelMatch("lifecycle", ("ondemand",)),
        ),
        spot=(
            LabelMatch("node.kubernetes.io/capacity", ("spot",)),
            LabelMatch("node.kubernetes.io/lifecycle", ("spot",)),
            LabelMatch("lifecycle", ("Ec2Spot",)),
            LabelMatch("node-role.kubernetes.io/spot-worker", ("true",)),
        ),
    ),
)
"""Rows 1 to 11. Tencent TKE and Volcengine VKE publish nothing usable: their users set selectors."""


_MORE_THAN_A_LABEL = frozenset(" ,!=<>()")


def parse_selector(selector: str) -> LabelMatch:
    """Read `key=value` or `key` (any value), as the settings write it.

    Raises ValueError with a sentence when it is neither.

    >>> parse_selector("cloud.example.com/pool=cheap")
    LabelMatch(key='cloud.example.com/pool', values=('cheap',), flag=False)
    """
    key, equals, value = selector.strip().partition("=")
    if not key or (equals and not value) or _MORE_THAN_A_LABEL & set(key + value):
        raise ValueError(
            f'{selector!r} is no node selector; write "key=value", or "key" for any value, one label each'
        )
    return LabelMatch(key, (value,) if equals else ())


def presets_with(
    spot: Iterable[str] = (), on_demand: Iterable[str] = (), presets: tuple[Preset, ...] = PRESETS
) -> tuple[Preset, ...]:
    """Put the user's own selectors (row 0) above the presets; without selectors, nothing changes (R2).

    Raises ValueError as `parse_selector` does.
    """
    own = Preset(
        "user",
        on_demand=tuple(parse_selector(selector) for selector in on_demand),
        spot=tuple(parse_selector(selector) for selector in spot),
        overrides=True,
    )
    return (own, *presets) if own.spot or own.on_demand else presets


def classify(
    labels: Mapping[str, str], taints: Iterable[Taint] = (), presets: tuple[Preset, ...] = PRESETS
) -> CapacityClass:
    """Say how a node is paid for; unknown when nothing says so, or when two marks contradict each other (R3).

    >>> classify({"karpenter.sh/capacity-type": "spot"})
    <CapacityClass.SPOT: 'spot'>
    """
    said = {mark.capacity for mark in _marks(labels, taints, presets)}
    return said.pop() if len(said) == 1 else CapacityClass.UNKNOWN


def spot_labels(labels: Mapping[str, str], presets: tuple[Preset, ...] = PRESETS) -> tuple[str, ...]:
    """Return the labels by which the table knows a node as spot, in its order: what one asks such nodes by.

    >>> spot_labels({"karpenter.sh/capacity-type": "spot", "team": "a"})
    ('karpenter.sh/capacity-type',)
    """
    keys = (label.key for preset in presets for label in preset.spot if label.matches(labels))
    return tuple(dict.fromkeys(keys))


def contradiction(
    labels: Mapping[str, str], taints: Iterable[Taint] = (), presets: tuple[Preset, ...] = PRESETS
) -> str:
    """Return two marks of a node that cannot both be true, for people; empty when all agree.

    >>> contradiction({"karpenter.sh/capacity-type": "on-demand", "lifecycle": "Ec2Spot"})
    'karpenter.sh/capacity-type=on-demand says on-demand, lifecycle=Ec2Spot says spot'
    """
    first: dict[CapacityClass, CapacityEvidence] = {}
    for mark in _marks(labels, taints, presets):
        first.setdefault(mark.capacity, mark)
    if len(first) == 1:
        return ""
    return ", ".join(f"{mark.text} says {mark.capacity}" for mark in first.values())


def _marks(
    labels: Mapping[str, str], taints: Iterable[Taint], presets: tuple[Preset, ...]
) -> tuple[CapacityEvidence, ...]:
    """Return all that a node carries of the table; the first mark of an overriding row is the only one."""
    taint_keys = {taint.key for taint in taints}
    evidence: list[CapacityEvidence] = []
    for preset in presets:
        marks = preset.marks(labels, taint_keys)
        if marks and preset.overrides:
            return marks[:1]
        evidence.extend(marks)
    return tuple(evidence)


def spot_node_selector_terms(presets: tuple[Preset, ...] = PRESETS) -> list[dict[str, object]]:
    """Return the nodeSelectorTerms of the spot twin: ORed, to be ANDed into each of the user's own.

    Each term leaves out the nodes that an overriding row above it calls on-demand (CAST AI's fallback
    nodes, the user's own on-demand selectors).
    """
    terms: list[dict[str, object]] = []
    overriding: list[LabelMatch] = []
    for preset in presets:
        if preset.overrides:
            overriding.extend(preset.on_demand)
        excluded = _none_of(overriding)
        terms.extend({"matchExpressions": [_one_of(label), *excluded]} for label in preset.spot)
    return terms


def on_demand_node_selector_terms(presets: tuple[Preset, ...] = PRESETS) -> list[dict[str, object]]:
    """Return the nodeSelectorTerms of the on-demand twin: ORed, to be ANDed into each of the user's own.

    First the on-demand labels of rows that are asked alone, less what a row above them calls spot; then,
    for all other nodes, no spot label at all. Unknown nodes match, as they count as on-demand. A CAST AI
    fallback node does not: it is bought for pods that ask for spot, and leaves as soon as spot is back.
    """
    terms: list[dict[str, object]] = []
    overriding: list[LabelMatch] = []
    theirs: list[LabelMatch] = []
    for preset in presets:
        if preset.overrides:
            overriding.extend(preset.spot)
        if preset.asked_alone:
            excluded = _none_of(overriding)
            terms.extend({"matchExpressions": [_one_of(label), *excluded]} for label in preset.on_demand)
            theirs.extend(LabelMatch(label.key) for label in (*preset.on_demand, *preset.spot))
    spot = [label for preset in presets for label in preset.spot]
    return [*terms, {"matchExpressions": _none_of([*theirs, *spot])}]


def spot_mark_terms(presets: tuple[Preset, ...] = PRESETS) -> list[dict[str, object]]:
    """Return terms one of which each node matches that is classified as spot by a label.

    More than `spot_node_selector_terms` ask for: a node that also says on-demand is no spot (R3).
    """
    terms: list[dict[str, object]] = []
    on_demand = [label for preset in presets for label in preset.on_demand]
    overriding: list[LabelMatch] = []
    for preset in presets:
        if preset.overrides:
            overriding.extend(preset.on_demand)
        excluded = _none_of(overriding if preset.overrides else on_demand)
        terms.extend({"matchExpressions": [_one_of(label), *excluded]} for label in preset.spot)
    return terms


def on_demand_mark_terms(presets: tuple[Preset, ...] = PRESETS) -> list[dict[str, object]]:
    """Return terms one of which each node matches that on-demand replicas ask for: none says spot."""
    spot = _none_of(label for preset in presets for label in preset.spot)
    asked = (term["matchExpressions"] for term in on_demand_node_selector_terms(presets))
    return [{"matchExpressions": [*one, *spot]} for one in asked if isinstance(one, list)]


def spot_tolerations(presets: tuple[Preset, ...] = PRESETS) -> list[dict[str, object]]:
    """Return what the spot twin must tolerate, in the order of the table."""
    return [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        if taint.value
        else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        for preset in presets
        for taint in preset.tolerated
    ]


def _one_of(label: LabelMatch) -> dict[str, object]:
    if not label.values:
        return {"key": label.key, "operator": "Exists"}
    return {"key": label.key, "operator": "In", "values": list(label.values)}


def _none_of(labels: Iterable[LabelMatch]) -> list[dict[str, object]]:
    """Return one expression for each key: NotIn (which an absent label passes) or DoesNotExist."""
    values: dict[str, list[str] | None] = {}
    for label in labels:
        known = values.get(label.key, [])
        any_value = label.flag or not label.values
        # Any value forbidden includes each of them.
        values[label.key] = None if known is None or any_value else [*known, *label.values]
    return [
        {"key": key, "operator": "DoesNotExist"}
        if forbidden is None
        else {"key": key, "operator": "NotIn", "values": list(dict.fromkeys(forbidden))}
        for key, forbidden in values.items()
    ]
