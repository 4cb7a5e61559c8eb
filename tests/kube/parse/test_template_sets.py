"""A ConfigMap as a template set: whatever it lacks, and what is wrong with it stands in the set."""

from typing import Any

import pytest

from kube.raw import metadata
from splitter.kube import parse

TEXTS = {f"deployment.{pool}.yaml.j2": "a: 1" for pool in ("on-demand", "spot")}
LABELS = {"splitter.io/template-set": "enabled"}
ALL = {"splitter.io/namespaces": "shop"}


def config_map(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return one of splitter's own namespace."""
    return {
        "metadata": metadata("lean", version=7, labels=LABELS, annotations=ALL, namespace="home"),
        **fields,
    }


def test_is_read_with_its_name_and_place() -> None:
    """What a person has to change is named by both."""
    record = parse.template_set(config_map(data=TEXTS))
    assert (record.namespace, record.version) == ("home", 7)
    made = record.template_set
    assert (made.name, made.config_map, made.namespaces, made.faults) == ("lean", "home/lean", ("shop",), ())


@pytest.mark.parametrize("fields", [{}, {"data": None, "binaryData": None}, {"data": {}}])
def test_without_templates_is_one_that_cannot_be_used(fields: dict[str, Any]) -> None:
    """It is said, and nothing raises."""
    assert parse.template_set(config_map(**fields)).template_set.faults


def test_of_a_binary_file_is_no_template() -> None:
    """Its name is told, whatever it holds."""
    faults = parse.template_set(config_map(data=TEXTS, binaryData={"x.yaml.j2": "AA=="})).template_set.faults
    assert any("x.yaml.j2" in fault for fault in faults)
