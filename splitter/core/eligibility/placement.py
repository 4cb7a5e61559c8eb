"""What stands in the way of splitting a StatefulSet by placement: little, since nothing is written to it.

Its count, its owner, its update strategy and its autoscalers are free. What has to be there is the policy
inside the API server, and an on-demand node for the volumes of the members that are to be on on-demand.
"""

import json

from splitter.core.desired.manifest import mapping_at
from splitter.core.division import base_replicas
from splitter.core.eligibility.checks import Check, objection
from splitter.core.eligibility.pools import no_cover
from splitter.core.labels_annotations import LABEL_POOL, split_name
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Note, Observation, SourceView
from splitter.core.nodes.capacity import classify, spot_labels
from splitter.core.nodes.facts import CapacityClass
from splitter.core.placeable import FEW_REMEDY, FEWEST
from splitter.core.reasons import Reason


def why_unplaceable(observed: Observation, source: SourceView) -> str:
    """Say why a new pod of this StatefulSet would not be placed; empty when it would."""
    return observed.related.unplaceable or _kept_by_template(source)


def _kept_by_template(source: SourceView) -> str:
    template = mapping_at(mapping_at(json.loads(source.manifest_json), "spec"), "template")
    if LABEL_POOL in mapping_at(mapping_at(template, "metadata"), "labels"):
        return (
            f"its pod template has the label {LABEL_POOL}, so the policy takes its pods for placed already;"
            " remove it from spec.template.metadata.labels"
        )
    selector = mapping_at(mapping_at(template, "spec"), "nodeSelector")
    chosen = {key: value for key, value in selector.items() if isinstance(value, str)}
    if classify(chosen) is not CapacityClass.SPOT:
        return ""
    return (
        f"its pod template asks for spot nodes ({', '.join(sorted(spot_labels(chosen)))} in nodeSelector), so"
        " none of its pods can start on on-demand; remove that, the policy prefers spot by itself"
    )


def _unsupported(observed: Observation, source: SourceView, _: Policy) -> Note | None:
    why = why_unplaceable(observed, source)
    return objection(Reason.PLACEMENT_UNSUPPORTED, why) if why else None


def _no_volume_can_move(observed: Observation, source: SourceView, policy: Policy) -> Note | None:
    """Object when not one of the members can be on on-demand; fewer are a matter of advice."""
    reach = observed.related.reach
    wanted = base_replicas(source.replicas, policy)
    kept = [k for k in _reached(observed, source) if not reach[k].on_demand]
    if not wanted or len(kept) < source.replicas:
        return None
    return objection(
        Reason.VOLUME_ZONE_CONFLICT,
        f"{wanted} of its {source.replicas} pods are wanted on on-demand, and none can be there:"
        f" {reach[kept[0]].why}; bring on-demand nodes where the volumes are",
    )


def advice(observed: Observation, source: SourceView) -> tuple[Note, ...]:
    """Say which members stay where they are, for their volumes or as they are few, and what does nothing."""
    reach = observed.related.reach
    few = (
        Note(
            Reason.QUORUM_HELD,
            f"of {source.replicas} no majority is left while one restarts: none is moved, not even on notice;"
            f" it starts in the right pool when it is made again. {FEW_REMEDY}",
            warning=True,
        ),
    )
    return (
        (few if 0 < source.replicas < FEWEST else ())
        + _scaled_in_vain(observed, source)
        + tuple(
            Note(
                Reason.VOLUME_ZONE_CONFLICT,
                f"{source.key.name}-{k} is not moved: {reach[k].why}",
                warning=True,
                about=f"{source.key.name}-{k}",
            )
            for k in _reached(observed, source)
            if reach[k].why
        )
    )


def _scaled_in_vain(observed: Observation, source: SourceView) -> tuple[Note, ...]:
    """Say that somebody has scaled the Split, as one scales twins: an autoscaler of those days, perhaps."""
    asked = observed.split.replicas if observed.split is not None else None
    if asked is None or asked == source.replicas:
        return ()
    name = split_name(source.key)
    message = (
        f"the Split {name} was scaled to {asked}, which does nothing in placement mode: the StatefulSet"
        f" {source.key.name} has {source.replicas} replicas; scale that, and aim autoscalers at it"
    )
    return (Note(Reason.FOREIGN_WRITE, message, warning=True, about=name),)


def _reached(observed: Observation, source: SourceView) -> list[int]:
    """Return the members of which it is known where their volumes reach, lowest first."""
    first = source.stateful.first_ordinal if source.stateful is not None else 0
    return [k for k in sorted(observed.related.reach) if first <= k < first + source.replicas]


CHECKS: tuple[Check, ...] = (_unsupported, no_cover, _no_volume_can_move)
CHECKS_WHILE_SPLIT: tuple[Check, ...] = (_unsupported, _no_volume_can_move)
