"""How Karmada's programs are started."""

import pytest

from lab.federation.assets import PROGRAMS
from lab.federation.hub import OPTIONS


def test_each_program_that_takes_turns_works_alone() -> None:
    """There is one of each, so nothing is elected."""
    assert {f"karmada-{name}" for name in OPTIONS} <= set(PROGRAMS)
    assert all("--leader-elect=false" in options for name, options in OPTIONS.items() if name != "webhook")


@pytest.mark.parametrize("name", OPTIONS)
def test_they_serve_no_metrics(name: str) -> None:
    """Their own default is a port on every interface."""
    assert "--metrics-bind-address=0" in OPTIONS[name]


@pytest.mark.parametrize("name", ["scheduler", "descheduler"])
def test_they_ask_estimators_whose_certificate_nothing_vouches_for(name: str) -> None:
    """It is the API server's own, made for the lab."""
    assert "--insecure-skip-estimator-verify=true" in OPTIONS[name]


def test_resource_models_are_off() -> None:
    """As docs/how-to/karmada.md says: they count a large node as few replicas."""
    gates = [one for options in OPTIONS.values() for one in options if one.startswith("--feature-gates=")]
    assert len(gates) == 2
    assert all("CustomizedClusterResourceModeling=false" in one for one in gates)
