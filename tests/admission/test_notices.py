"""The policy on Events that are believed has the rows of the table, each with its right and its kubelets.

What it does is tried on a real API server (tests/e2e/test_notice_policy.py).
"""

from typing import Any

import pytest

from splitter.admission import notices_policy
from splitter.core.nodes.believed_events import BELIEVED, BelievedEvents

[POLICY, BINDING] = notices_policy(BELIEVED)
SPEC: Any = POLICY["spec"]


@pytest.mark.parametrize(("number", "row"), list(enumerate(BELIEVED)), ids=[row.kind for row in BELIEVED])
def test_a_row_has_its_reasons_its_right_and_its_kubelets(number: int, row: BelievedEvents) -> None:
    """No right stands for the whole of what an account may do: NodeRestriction holds kubelets, not RBAC."""
    expression = SPEC["validations"][number]["expression"]
    assert all(f'"{reason}"' in expression for reason in row.reasons)
    assert all(f'"{reason}"' in SPEC["matchConditions"][0]["expression"] for reason in row.reasons)
    asked = f'.group("{row.group}").resource("{row.resource}").name(event.name).check("patch")'
    assert asked in expression
    assert "!variables.isKubelet" in expression
    assert ('"system:node:" + event.name' in expression) is row.of_kubelets
    assert f"may patch the {row.kind}" in SPEC["validations"][number]["message"]


def test_every_way_to_say_it_is_judged() -> None:
    """Creation, change and deletion, in both forms, in the namespace that splitter reads."""
    [rule] = SPEC["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["operations"]) == (["", "events.k8s.io"], ["CREATE", "UPDATE", "DELETE"])
    namespaces = SPEC["matchConstraints"]["namespaceSelector"]["matchLabels"]
    assert namespaces == {"kubernetes.io/metadata.name": "default"}
    assert SPEC["failurePolicy"] == "Fail"
    assert BINDING["spec"] == {"policyName": "splitter-notices", "validationActions": ["Deny"]}
