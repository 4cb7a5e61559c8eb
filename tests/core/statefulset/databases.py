"""StatefulSets, and one reconcile of them."""

from dataclasses import replace
from typing import Any

from builders import ago, free_source, observation
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Mode, Note, SourceView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.plan import PlanInput, PolicyInForce, Rules
from splitter.core.reasons import Reason
from splitter.core.stateful import StatefulView

DB = Key(STATEFUL_SET, "shop", "db")
TWINS = Policy(mode=Mode.TWINS, on_demand_base="majority")


def stateful(spec: int = 5, **fields: Any) -> StatefulView:  # noqa: ANN401 (fields of a view)
    """Return what only a StatefulSet has: one that nobody has touched."""
    return replace(StatefulView(spec, spec, spec, ago(500), service="db"), **fields)


def database(view: StatefulView | None = None, **fields: object) -> SourceView:
    """Return a labelled StatefulSet."""
    view = view or stateful()
    made = replace(free_source(view.saved if view.saved is not None else view.spec_replicas), key=DB)
    return replace(made, stateful=view, max_surge=1, max_unavailable=1, **fields)  # type: ignore[arg-type]


def plan_input(source: SourceView, **fields: object) -> PlanInput:
    """Return one reconcile of it."""
    in_force = PolicyInForce(TWINS, (), {}, valid=True)
    return PlanInput(observation(source, (), **fields), source, in_force, Note(Reason.DRIFT, ""), Rules())
