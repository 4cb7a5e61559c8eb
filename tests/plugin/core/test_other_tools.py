"""Which neighbour is named, by the field managers of a source."""

from pathlib import Path
from typing import Any

import pytest

from splitter.plugin.core.other_tools import _APPLIERS, _REPLACERS, neighbour
from splitter.plugin.kube.field_managers import writers

ROOT = Path(__file__).parents[3]
KAPP = "kapp writes this workload whole, which takes splitter's pause away unless it is told to keep it"


def entry(manager: str, *fields: str, at: int = 1, **more: str) -> dict[str, Any]:
    """Return what the API server keeps of a writer."""
    spec: dict[str, Any] = {f"f:{name}": {} for name in fields}
    time = f"2026-01-05T10:00:{at:02d}Z"
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:spec": spec}, **more}


def said(*entries: dict[str, Any]) -> str:
    """Return the line about a workload that these have written."""
    return neighbour(writers({"metadata": {"managedFields": list(entries)}}))


@pytest.mark.parametrize(
    ("manager", "field", "beginning"),
    [
        ("kapp", "replicas", KAPP),
        ("kapp-server-side-apply", "paused", KAPP),
        ("karmada-controller-manager", "replicas", "Karmada writes this workload whole"),
        ("argocd-controller", "paused", "Argo CD applies spec.paused"),
        ("kustomize-controller", "paused", "Flux applies spec.paused"),
        ("helm-controller", "paused", "Flux applies spec.paused"),
        ("helm", "paused", "Helm applies spec.paused"),
        ("Helm", "paused", "Helm applies spec.paused"),
        # Nothing is undone by these.
        ("helm", "replicas", ""),
        ("argocd-controller", "replicas", ""),
        ("kubectl-edit", "paused", ""),
        ("splitter", "paused", ""),
        ("kapp", "template", ""),
    ],
)
def test_who_is_named(manager: str, field: str, beginning: str) -> None:
    """One that replaces the whole, and one whose manifest has the pause."""
    line = said(entry(manager, field))
    assert line.startswith(beginning)
    assert bool(line) is bool(beginning)


def test_two_that_write_the_count() -> None:
    """A manifest with replicas, and an autoscaler: each undoes the other's."""
    hpa = entry("kube-controller-manager", "replicas", subresource="scale")
    assert said(entry("helm", "replicas"), hpa).startswith("Helm applies spec.replicas, and an autoscaler")
    assert said(hpa) == ""


def test_the_last_three() -> None:
    """Whoever wrote before three others is no neighbour any more; the last is named first."""
    others = [entry(f"person-{number}", "replicas", at=10 + number) for number in range(3)]
    assert said(entry("kapp", "replicas", at=9), *others) == ""
    assert said(entry("kapp", "replicas", at=11), *others).startswith("kapp")
    both = (entry("kapp", "replicas", at=1), entry("karmada", "replicas", at=2))
    assert said(*both).startswith("Karmada")


@pytest.mark.parametrize("manager", ["kapp\x1b[2J\nall is well", "kapp" + "x" * 10_000])
def test_a_name_that_a_tenant_chose(manager: str) -> None:
    """It is compared, and not shown: what is printed is the table's own word."""
    assert said(entry(manager, "replicas")) == f"{KAPP}: docs/how-to/beside-other-tools.md"


def test_what_cannot_be_read() -> None:
    """Entries without fields, without a time or a manager, and very many of them."""
    assert said({}, {"fieldsV1": None}, {"fieldsV1": {"f:spec": None}}) == ""
    assert said({"fieldsV1": {"f:spec": {"f:replicas": {}}}}) == ""
    assert said(*[entry("nobody") for _ in range(100)], entry("kapp", "replicas")) == ""
    assert neighbour(writers({"metadata": {}})) == ""


@pytest.mark.parametrize("page", sorted({page for _, page in (*_REPLACERS.values(), *_APPLIERS.values())}))
def test_the_pages_are_there(page: str) -> None:
    """What is advised can be read."""
    assert (ROOT / page).is_file()
