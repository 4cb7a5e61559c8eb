"""The policy in force as a Split reports it: each field, its annotation, and its value.

A Split's status and its readers (`explain`, the page) go by this one table.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations.policy import Level
from splitter.core.model import Policy
from splitter.core.split_status import Scalar, SplitStatus

# By field of `status.policy`: the annotation, and the value; None: not reported.
_FIELDS: Final[Mapping[str, tuple[str, Callable[[Policy], Scalar | None]]]] = {
    "onDemandBase": (keys.ANNOTATION_ON_DEMAND_BASE, lambda policy: policy.on_demand_base),
    "spotPercent": (keys.ANNOTATION_SPOT_PERCENT, lambda policy: policy.spot_percent),
    "onDemandMax": (keys.ANNOTATION_ON_DEMAND_MAX, lambda policy: policy.on_demand_max),
    "spotMax": (keys.ANNOTATION_SPOT_MAX, lambda policy: policy.spot_max),
    "spotAffinity": (keys.ANNOTATION_SPOT_AFFINITY, lambda policy: policy.spot_affinity.value),
    "grace": (keys.ANNOTATION_GRACE, lambda policy: f"{policy.grace_s:.0f}s"),
    "soak": (keys.ANNOTATION_SOAK, lambda policy: f"{policy.soak_s:.0f}s"),
    "freeze": (keys.ANNOTATION_FREEZE, lambda policy: policy.freeze),
    "dryRun": (keys.ANNOTATION_DRY_RUN, lambda policy: policy.dry_run),
    "templateSet": (keys.ANNOTATION_TEMPLATE, lambda policy: policy.template_set),
    "rolloutOrder": (keys.ANNOTATION_ROLLOUT_ORDER, lambda policy: policy.rollout_order.value),
    "evictions": (keys.ANNOTATION_EVICTIONS, lambda policy: policy.evictions.value),
    "rank": (keys.ANNOTATION_RANK, lambda policy: policy.rank),
}
_ORIGINS: Final = {
    Level.SOURCE: "on the workload",
    Level.NAMESPACE: "on the Namespace",
    Level.DEFAULT: "default",
    Level.LAST_GOOD: "last good annotation",
}


def values_of(policy: Policy) -> dict[str, Scalar]:
    """Return what is reported of a policy, by field."""
    values = {field: value(policy) for field, (_, value) in _FIELDS.items()}
    return {field: value for field, value in values.items() if value is not None}


def levels_of(values: Mapping[str, Scalar], levels: Mapping[str, Level]) -> dict[str, str]:
    """Return where each value comes from, by field; `levels` are by annotation."""
    return {field: levels.get(_FIELDS[field][0], Level.DEFAULT).value for field in values}


def policy_in_words(status: SplitStatus) -> Iterator[tuple[str, str, str]]:
    """Yield what a Split says of its policy: an annotation without its prefix, its value, its origin.

    The origin is empty where none is said.
    """
    for field, (annotation, _) in _FIELDS.items():
        if (value := status.policy.get(field)) is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            level = status.policy_from.get(field)
            origin = _ORIGINS[Level(level)] if level in set(Level) else ""
            yield annotation.removeprefix(keys.PREFIX), text, origin
