"""All scripts: importing this registers them.

A script is a function of a scene, named in the field's words; its docstring is the rule of Kubernetes that
it is about. What is noted in it, the lives of its pods and what is there at its end are recorded of a real
control plane (tests/e2e/test_conformance.py, with SPLITTER_REGENERATE=1) and compared on both sides.
"""

from world.conformance import (
    scripts_api,
    scripts_deployments,
    scripts_evictions,
    scripts_nodes,
    scripts_owners,
    scripts_replicasets,
    scripts_statefulsets,
)
from world.conformance.scene import SCRIPTS

FAMILIES = (
    scripts_deployments,
    scripts_replicasets,
    scripts_owners,
    scripts_statefulsets,
    scripts_nodes,
    scripts_evictions,
    scripts_api,
)

__all__ = ["FAMILIES", "SCRIPTS"]
