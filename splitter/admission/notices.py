"""The policy on the Events that splitter believes: accounts that may patch the object may write them.

`splitter admission notices` prints it, a validation for each row of the table (`core.nodes.believed_events`).
An account that may not write an Event may not change or delete it either, so it silences no true notice. The
policy reads both forms of an Event, core/v1 and events.k8s.io/v1. tests/e2e/test_notice_policy.py tries every
row on a real API server.
"""

from collections.abc import Sequence
from typing import Final

from splitter.admission.expressions import Manifest, literal, policy, variables
from splitter.core.nodes.believed_events import BelievedEvents

NAME: Final = "splitter-notices"
# Recorders write Events about what has no namespace here, and splitter reads no other (ADR 14).
_NAMESPACE: Final = "default"
# The Event as it is now and as it was, in either form; one of the two is null at creation and at deletion.
_ABOUT: Final = 'event.?involvedObject.?{0}.orValue(event.?regarding.?{0}.orValue(""))'
_EVENTS: Final = (
    "[dyn(object), dyn(oldObject)].filter(event, event != null).map(event, {\n"
    f'  "kind": {_ABOUT.format("kind")},\n'
    f'  "name": {_ABOUT.format("name")},\n'
    '  "reason": event.?reason.orValue("")\n})'
)


def notices_policy(rows: Sequence[BelievedEvents]) -> list[Manifest]:
    """Return the policy for the Events of a table, and its binding."""
    any_row = " ||\n".join(f"({_is_said(row)})" for row in rows)
    is_believed = f"{_EVENTS}.exists(event,\n{any_row})"
    spec: Manifest = {
        # An Event that cannot be judged is refused: taints and conditions say the same, seconds later.
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _NAMESPACE}},
            "resourceRules": [
                {
                    "apiGroups": ["", "events.k8s.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["events"],
                }
            ],
        },
        "matchConditions": [{"name": "is-believed", "expression": is_believed}],
        "variables": variables(
            events=_EVENTS,
            user="request.userInfo.username",
            groups="request.userInfo.groups",
            isKubelet='variables.user.startsWith("system:node:") || "system:nodes" in variables.groups',
        ),
        # One for each row: the API server bounds the cost of an expression, and two questions to the
        # authorizer (about the Event as it was, and as it is now) are two thirds of that.
        "validations": [_validation(row) for row in rows],
    }
    return policy("ValidatingAdmissionPolicy", NAME, spec, {"validationActions": ["Deny"]})


def _is_said(row: BelievedEvents) -> str:
    """Return whether `event` is one of a row."""
    return f"event.kind == {literal(row.kind)} && event.reason in {literal(sorted(row.reasons))}"


def _validation(row: BelievedEvents) -> Manifest:
    """Return what has to hold for each Event of a row."""
    right = f"authorizer.group({literal(row.group)}).resource({literal(row.resource)}).name(event.name)"
    own = ' || variables.user == "system:node:" + event.name' if row.of_kubelets else ""
    kubelets = f"; of kubelets, only the {row.kind}'s own may" if row.of_kubelets else "; no kubelet may"
    return {
        "reason": "Forbidden",
        "expression": (
            f"variables.events.all(event,\n!({_is_said(row)}) ||\n"
            f'(event.name != "" && (!variables.isKubelet{own}) &&\n{right}.check("patch").allowed()))'
        ),
        "message": (
            f"splitter believes an Event of this reason about a {row.kind}. Only accounts that may patch the"
            f" {row.kind} may write, change or delete it{kubelets} (docs/security.md)."
        ),
    }
