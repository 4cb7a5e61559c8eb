"""What each annotation of a user's means: the table of `docs/reference/annotations.md`.

Forms and defaults are those the parser uses, in its order; `tests/test_reference.py` keeps the page in
step (`annotations_table`), and `admission` makes of the rows what the API server refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations import words
from splitter.core.labels_annotations.policy import defaults_for
from splitter.core.model import Policy
from splitter.core.names import STATEFUL_SET


@dataclass(frozen=True, slots=True)
class _Row:
    """How an annotation is written, what it means (Markdown), and its default as one would write it."""

    annotation: str
    form: words.Form[Any]
    means: str
    default: str = ""
    for_statefulsets: str = ""


_DEFAULT: Final = Policy()
ROWS: Final = (
    _Row(
        keys.ANNOTATION_ON_DEMAND_BASE,
        words.BASE,
        "replicas always on on-demand; `majority` is N // 2 + 1",
        str(_DEFAULT.on_demand_base),
        f"StatefulSets: `{defaults_for(STATEFUL_SET, _DEFAULT).on_demand_base}`",
    ),
    _Row(
        keys.ANNOTATION_SPOT_PERCENT,
        words.PERCENT,
        "share of the replicas above the base that should be on spot",
        str(_DEFAULT.spot_percent),
    ),
    _Row(
        keys.ANNOTATION_ON_DEMAND_MAX,
        words.REPLICAS,
        "upper bound of replicas on on-demand, in an emergency too",
    ),
    _Row(keys.ANNOTATION_SPOT_MAX, words.REPLICAS, "upper bound of replicas on spot"),
    _Row(
        keys.ANNOTATION_SPOT_AFFINITY,
        words.SPOT_AFFINITY,
        "`required`: spot pods run on spot nodes only, and Pending ones ask the autoscaler for them;"
        " `preferred`: they may land anywhere",
        _DEFAULT.spot_affinity.value,
    ),
    _Row(
        keys.ANNOTATION_GRACE,
        words.GRACE,
        "how long a shortage of spot may last before on-demand covers it (a notice or a loss is covered at"
        " once); the default is longer, 10m at most, where its spot nodes were seen to take longer",
        f"{_DEFAULT.grace_s:.0f}s",
    ),
    _Row(
        keys.ANNOTATION_SOAK,
        words.SOAK,
        "how long spot must have been ready before cover goes; doubles to one hour while spot flaps;"
        " the default is longer, 1h at most, where three starts of its pods take longer",
        f"{_DEFAULT.soak_s / 60:.0f}m",
    ),
    _Row(
        keys.ANNOTATION_FREEZE,
        words.SWITCH,
        "hold all counts, in an emergency too; templates are still kept in step",
        "false",
    ),
    _Row(
        keys.ANNOTATION_DRY_RUN,
        words.SWITCH,
        "decide and report; write nothing but the report",
        "false",
    ),
    _Row(
        keys.ANNOTATION_TEMPLATE,
        words.TEMPLATE_SET,
        "the [template set](../../templates/README.md) that the twins are rendered from",
        _DEFAULT.template_set,
    ),
    _Row(
        keys.ANNOTATION_ROLLOUT_ORDER,
        words.ROLLOUT_ORDER,
        "which twin gets a new template first; `spot-first` makes spot the canary",
        _DEFAULT.rollout_order.value,
    ),
    _Row(
        keys.ANNOTATION_EVICTIONS,
        words.EVICTIONS,
        "how evictions wait for replacements: one goes at once and the others wait (`one-at-a-time`), all"
        " wait (`surge-first`), or none (`unguarded`); [how it works](../how-to/evictions.md)",
        _DEFAULT.evictions.value,
    ),
    _Row(
        keys.ANNOTATION_RANK,
        words.RANK,
        "which workloads of a namespace go first, 0 before all others, when many need on-demand replicas at"
        " once or wait to be taken over; between namespaces the priority of their pods decides",
        str(_DEFAULT.rank),
    ),
    _Row(
        keys.ANNOTATION_RESTARTED_AT,
        words.MOMENT,
        "copied into the twins' pods: a new value is a rolling restart",
    ),
    _Row(
        keys.ANNOTATION_ROLLOUT_AT,
        words.MOMENT,
        "a new value rolls a changed template set out now, instead of with the next rollout",
    ),
    _Row(
        keys.ANNOTATION_MODE,
        words.MODE,
        "of StatefulSets: `placement` [places their own pods](../how-to/placement.md), names and volumes"
        " kept; `twins` [splits them as Deployments](../how-to/split-a-statefulset.md), with pods of other"
        " names",
        for_statefulsets="StatefulSets: `placement`",
    ),
    _Row(
        keys.ANNOTATION_VOLUMES,
        words.VOLUMES,
        "a StatefulSet's volumes can be lost: its twins begin with empty ones, and those of the twins are"
        " deleted with their pods",
    ),
)


def annotations_table() -> str:
    """Return the table in Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| annotation | value | default | meaning |"
    yield "|---|---|---|---|"
    for row in ROWS:
        own = f"`{row.default}`" if row.default else ""
        default = "; ".join(filter(None, (own, row.for_statefulsets))) or "none"
        yield f"| `{row.annotation}` | {row.form.must_be} | {default} | {row.means} |"
