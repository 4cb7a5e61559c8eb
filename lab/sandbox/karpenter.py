"""A real autoscaler in the sandbox: Karpenter, which buys machines for pending pods and takes them back.

A test or the command line calls it through `sandbox.karpenter`. It says what the cloud offers (NodePools) and
takes machines away as a cloud does (the deletion of a NodeClaim); which machines are bought, tainted, drained
and replaced is Karpenter's own doing, and its KWOK provider makes the Node objects. Their kubelets are played
like those of the fleet, by the label that every NodePool puts on its nodes (`stages.yaml`).
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from lab.sandbox.api import Api, JsonObject, PatchKind
from lab.sandbox.commands import KUBELET_LABEL, KUBELET_RUNNING
from lab.sandbox.instants import Instant
from lab.sandbox.machines import CAPACITY_LABEL, Pool
from lab.sandbox.waiting import wait_until

NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOL_LABEL = "karpenter.sh/nodepool"
NEVER = "Never"

_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NODE_CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
_NODE_CLASS = "sandbox"
_CPU_LABEL = "karpenter.kwok.sh/instance-cpu"
# One family and one architecture: the pods of a test shall not choose among 144 types of machine.
_ONE_KIND_OF_MACHINE = {"karpenter.kwok.sh/instance-family": "c", "kubernetes.io/arch": "amd64"}
_BOOT = (
    "2s"  # from the purchase to the Node object; a cloud takes 30 s or more, and nobody learns from waiting
)
_DEADLINE_S = 60.0


class Karpenter:
    """What Karpenter may buy, and what it has bought; made by `Sandbox.start(karpenter=True)`."""

    def __init__(self, api: Api, check: Callable[[], None]) -> None:
        self._api = api
        self._check = check

    def install(self, kinds: Iterable[Path]) -> None:
        """Make Karpenter's kinds known to the API server; it must be done before Karpenter starts."""
        for path in kinds:
            kind = yaml.safe_load(path.read_text())
            where = f"{_KINDS}/{self._api.create(_KINDS, kind)['metadata']['name']}"
            self._until_true(where, "Established")
        node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass"}
        spec = {"nodeRegistrationDelay": _BOOT}
        self._apply(_NODE_CLASSES, {**node_class, "metadata": {"name": _NODE_CLASS}, "spec": spec})

    def offer(
        self,
        pool: Pool,
        *,
        cpu: int = 4,
        machines: int | None = None,
        consolidate_after: str = NEVER,
        budget: str = "100%",
    ) -> None:
        """Offer machines of a pool, or change the offer, and return when Karpenter takes note of it.

        `cpu`: the size of each, 100m of which are its own. `machines`: how many there are, without end when
        left out; 0 is a cloud that has none left. `consolidate_after`: how long Karpenter watches before it
        empties a machine that it could do without, such as "5s", or NEVER. `budget`: how many machines it
        may disrupt by its own choice at a time, as a number or a percentage.
        """
        wanted = {CAPACITY_LABEL: pool, _CPU_LABEL: str(cpu), **_ONE_KIND_OF_MACHINE}
        reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": _NODE_CLASS}
        template = {
            "metadata": {"labels": {KUBELET_LABEL: KUBELET_RUNNING}},
            "spec": {
                "nodeClassRef": reference,
                "requirements": [
                    {"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()
                ],
                "expireAfter": NEVER,
            },
        }
        disruption = {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": consolidate_after,
            "budgets": [{"nodes": budget}],
        }
        spec: JsonObject = {"template": template, "disruption": disruption}
        if machines is not None:
            spec["limits"] = {"cpu": str(machines * cpu)}
        pool_of_nodes = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": pool}}
        self._apply(NODE_POOLS, {**pool_of_nodes, "spec": spec})
        self._until_true(f"{NODE_POOLS}/{pool}", "Ready")

    def claims(self, pool: Pool) -> dict[str, str]:
        """Return the name of each NodeClaim of a pool and of its Node, "" while it has none."""
        claims = self._api.list(NODE_CLAIMS, labels=f"{POOL_LABEL}={pool}")
        return {raw["metadata"]["name"]: raw.get("status", {}).get("nodeName", "") for raw in claims}

    def interrupt(self, claims: Iterable[str]) -> Instant:
        """Take machines away as Karpenter does on a cloud's notice; return the moment right before.

        What it makes of the notice is the deletion of the NodeClaim: the Node is tainted and drained, and
        goes when its pods have gone.
        """
        began = Instant.now()
        for name in claims:
            self._api.delete(f"{NODE_CLAIMS}/{name}", missing_ok=True)
        return began

    def _apply(self, collection: str, manifest: JsonObject) -> None:
        self._api.patch(f"{collection}/{manifest['metadata']['name']}", manifest, kind=PatchKind.APPLY)

    def _until_true(self, path: str, condition: str) -> None:
        def is_true() -> bool:
            conditions = self._api.get(path).get("status", {}).get("conditions") or []
            return any(each["type"] == condition and each["status"] == "True" for each in conditions)

        wait_until(is_true, what=f"{path} to be {condition}", deadline_s=_DEADLINE_S, check=self._check)
