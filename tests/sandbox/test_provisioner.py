"""Claims of a sandbox get volumes, as a cloud's storage driver would give them."""

import pytest

from lab.sandbox import Sandbox
from lab.sandbox.provisioner import STORAGE_CLASS, Provisioner
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

VOLUMES = "/api/v1/persistentvolumes"


def claims(namespace: str) -> str:
    """Return the path of a namespace's claims."""
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"


def claim(sandbox: Sandbox, namespace: str, name: str, **spec: object) -> None:
    """Ask for a gibibyte."""
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    sandbox.api.create(claims(namespace), {"metadata": {"name": name}, "spec": asked})


def test_a_claim_has_a_volume_for_as_long_as_it_lives(sandbox: Sandbox, namespace: str) -> None:
    """One without a class too, and one from before; those of another class are nobody's business here."""
    claim(sandbox, namespace, "early", storageClassName=STORAGE_CLASS)
    claim(sandbox, namespace, "foreign", storageClassName="by-hand")
    with Provisioner(sandbox.api):
        claim(sandbox, namespace, "plain")

        def bound() -> set[str]:
            collected = sandbox.api.list(claims(namespace))
            return {one["metadata"]["name"] for one in collected if one["status"].get("phase") == "Bound"}

        wait_until(lambda: bound() == {"early", "plain"}, what="both claims to be bound", deadline_s=30)
        volume = sandbox.api.get(f"{claims(namespace)}/plain")["spec"]["volumeName"]
        assert sandbox.api.get(f"{VOLUMES}/{volume}")["spec"]["capacity"] == {"storage": "1Gi"}
        sandbox.api.delete(f"{claims(namespace)}/plain")
        path = f"{VOLUMES}/{volume}"
        wait_until(lambda: sandbox.api.find(path) is None, what="the volume to go", deadline_s=30)
        assert bound() == {"early"}
