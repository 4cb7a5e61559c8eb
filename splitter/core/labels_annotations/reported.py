"""The policy in force as a Split reports it: each field, its value, and where that comes from.

A Split's status and its readers (`explain`, the page) go by it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations.policy import ANNOTATIONS, Level, Policy
from splitter.core.labels_annotations.words import reported
from splitter.core.split_status import Scalar, SplitStatus

_ROWS: Final = {row.reported_as: row for row in ANNOTATIONS if row.reported_as}
_ORIGINS: Final = {
    Level.SOURCE: "on the workload",
    Level.NAMESPACE: "on the Namespace",
    Level.DEFAULT: "default",
    Level.LEARNED: "default, as learned from its starts",
    Level.LAST_GOOD: "last good annotation",
}


def values_of(policy: Policy) -> dict[str, Scalar]:
    """Return what is reported of a policy, by field."""
    values = {name: reported(getattr(policy, row.field)) for name, row in _ROWS.items()}
    return {name: value for name, value in values.items() if value is not None}


def levels_of(values: Mapping[str, Scalar], levels: Mapping[str, Level]) -> dict[str, str]:
    """Return where each value comes from, by field; `levels` are by annotation."""
    return {field: levels.get(_ROWS[field].key, Level.DEFAULT).value for field in values}


def policy_in_words(status: SplitStatus) -> Iterator[tuple[str, str, str]]:
    """Yield what a Split says of its policy: an annotation without its prefix, its value, its origin.

    The origin is empty where none is said.
    """
    for field, row in _ROWS.items():
        if (value := status.policy.get(field)) is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            level = status.policy_from.get(field)
            origin = _ORIGINS[Level(level)] if level in set(Level) else ""
            yield row.key.removeprefix(keys.PREFIX), text, origin
