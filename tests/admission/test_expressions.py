"""Pieces of CEL: values as the API server reads them, and policies in pairs."""

import pytest

from splitter.admission.expressions import lines, literal, policy, variables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ('"\\\n', '"\\"\\\\\\n"'),  # nothing of a text ends it
        (5, "5"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        (("a", "b"), '["a", "b"]'),
        ([1, 2], "[dyn(1), dyn(2)]"),
        (["a", 1], '[dyn("a"), dyn(1)]'),
        ({"a": "b"}, '{"a": "b"}'),
        ({"a": ["b"], "c": 1}, '{"a": dyn(["b"]), "c": dyn(1)}'),
        ([["a"]], '[dyn(["a"])]'),
    ],
)
def test_a_value_is_of_one_type_or_of_any(value: object, text: str) -> None:
    """CEL wants all of a list or map alike."""
    assert literal(value) == text


def test_a_long_list_has_a_line_each() -> None:
    """An empty one is of anything, else CEL does not know of what."""
    assert lines(["a", "b"]) == '[\n  "a",\n  "b"\n]'
    assert lines([1]) == "[\n  dyn(1)\n]"
    assert lines([]) == "dyn([])"


def test_a_policy_is_in_force_by_its_binding() -> None:
    """Under the same name, which the binding names."""
    made, binding = policy("MutatingAdmissionPolicy", "p", {"a": 1}, {"matchResources": {}})
    assert (made["kind"], binding["kind"]) == ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert made["metadata"] == binding["metadata"]
    assert binding["spec"] == {"policyName": "p", "matchResources": {}}
    assert made["spec"] == {"a": 1}


def test_variables_keep_their_order() -> None:
    """A later one may name an earlier one."""
    assert variables(b="1", a="variables.b") == [
        {"name": "b", "expression": "1"},
        {"name": "a", "expression": "variables.b"},
    ]
