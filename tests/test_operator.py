"""The operator loads what the settings ask for, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_RELIEF = """
import json, sys
from splitter import operator
from splitter.settings import Settings

settings = Settings.model_validate(json.loads(sys.argv[1]))
before = [name for name in sys.modules if name.startswith("splitter.relief")]
operator._Operator(None, settings)
print(json.dumps([before, [name for name in sys.modules if name.startswith("splitter.relief")]]))
"""
PROMETHEUS = {"relief_source": "prometheus", "relief_prometheus": "http://prometheus:9090"}


def loaded(settings: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the modules of relief that are loaded by the import, and once an operator is made."""
    ran = subprocess.run(
        [sys.executable, "-c", _RELIEF, json.dumps({"leader_election": "off", **settings})],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    imported, started = json.loads(ran.stdout)
    return imported, started


class TestRelief:
    """Its code is loaded if the settings name a source of real use (docs/adr/0111)."""

    @pytest.mark.parametrize("settings", [{}, {"relief": "cpu=85"}, PROMETHEUS])
    def test_is_loaded_with_a_source(self, settings: dict[str, str]) -> None:
        """When the process starts, so that a term does not wait for it; a workload may ask at any time."""
        imported, started = loaded(settings)
        assert imported == []
        assert "splitter.relief.watch" in started

    @pytest.mark.parametrize("settings", [{}, {"relief": "cpu=85"}])
    def test_is_not_loaded_without(self, settings: dict[str, str]) -> None:
        """Whatever workloads ask for."""
        assert loaded({**settings, "relief_source": "off"}) == ([], [])
