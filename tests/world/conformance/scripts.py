"""All scripts: importing this registers them."""

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
