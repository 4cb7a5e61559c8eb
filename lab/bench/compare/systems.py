"""The systems that are compared: splitter, and the two ways Kubernetes itself offers.

`arena` gives each the same Deployment, written as its user would write it (`dress`). None is told anything
else; what happens to it is the same for all.
"""

import copy
from collections.abc import Mapping
from typing import Any, Protocol

from lab.bench.compare.scenario import ANNOTATIONS, ON_DEMAND_WANTED, SPOT_WANTED, N
from lab.fixtures.shop import CAPACITY, LABEL, Shape, Shop

JsonObject = dict[str, Any]


class System(Protocol):
    """One way to run a Deployment on spot nodes."""

    @property
    def key(self) -> str:
        """Its name on the command line and in namespaces."""

    @property
    def title(self) -> str:
        """Its row in the table."""

    @property
    def returns(self) -> bool:
        """Whether it claims to move back to spot by itself; if so, we wait for it."""

    def dress(self, manifest: JsonObject) -> JsonObject:
        """Return the user's Deployment with what the system needs."""

    def has_accepted(self, shop: Shop, name: str) -> bool:
        """Say whether it has taken charge of a Deployment without replicas."""

    def stands(self, shop: Shop, name: str) -> bool:
        """Say whether all replicas run, none beside, each where the system means it to be."""


class Splitter:
    """The Deployment with splitter's label, 80 % on spot."""

    key = "splitter"
    title = "**splitter**"
    returns = True

    def dress(self, manifest: JsonObject) -> JsonObject:
        """Return the Deployment with label and annotations; its pods stay as they are."""
        dressed = copy.deepcopy(manifest)
        dressed["metadata"]["labels"][LABEL] = "enabled"
        dressed["metadata"]["annotations"] |= ANNOTATIONS
        return dressed

    def has_accepted(self, shop: Shop, name: str) -> bool:
        """Say whether both twins exist."""
        return shop.twins(name) is not None

    def stands(self, shop: Shop, name: str) -> bool:
        """Say whether 4 + 16 are ready where they belong, and no pod is beside."""
        wanted = (ON_DEMAND_WANTED, SPOT_WANTED)
        return shop.twins(name) == wanted and shop.shape(name) == Shape(*wanted, N)


class Plain:
    """A Deployment that says where its pods should be, and a scheduler that listens when it places them."""

    returns = False

    def __init__(self, key: str, title: str, placement: Mapping[str, object]) -> None:
        self.key = key
        self.title = title
        self._placement = placement

    def dress(self, manifest: JsonObject) -> JsonObject:
        """Return the Deployment with a wish in its pods."""
        dressed = copy.deepcopy(manifest)
        dressed["spec"]["template"]["spec"] |= copy.deepcopy(dict(self._placement))
        for constraint in dressed["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
            constraint["labelSelector"] = dressed["spec"]["selector"]
        return dressed

    def has_accepted(self, shop: Shop, name: str) -> bool:
        """Say whether the Deployment is there: nobody else has to notice it."""
        return name in shop.deployments()

    def stands(self, shop: Shop, name: str) -> bool:
        """Say whether the Deployment's own controller calls its rollout complete."""
        raw = shop.deployment(name)
        status = raw.get("status", {})
        counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
        return status.get("observedGeneration") == raw["metadata"]["generation"] and counts == {N}


PREFERRED = Plain(
    "affinity",
    "plain Deployment, preferred spot affinity",
    {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "preference": {
                            "matchExpressions": [{"key": CAPACITY, "operator": "In", "values": ["spot"]}]
                        },
                    }
                ]
            }
        }
    },
)

# ScheduleAnyway: with DoNotSchedule nothing is replaced while tainted spot nodes still count as a domain.
# matchLabelKeys: without it the pods of the old template skew the placement of the new one.
SPREAD = Plain(
    "spread",
    "plain Deployment, topology spread over capacity type",
    {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": CAPACITY,
                "whenUnsatisfiable": "ScheduleAnyway",
                "matchLabelKeys": ["pod-template-hash"],
            }
        ]
    },
)

SYSTEMS: tuple[System, ...] = (PREFERRED, SPREAD, Splitter())
