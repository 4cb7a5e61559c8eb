"""What a tenant writes into objects of its own namespace to reach another's: nothing there is touched.

The attacker may write everything in `evil`, and nothing elsewhere; splitter may write everywhere.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.support.mortal import Mortal
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import JsonObject, Shop, manifest
from lab.sandbox import Sandbox

pytestmark = pytest.mark.e2e

# The parser goes 1,024 levels deep, the API server stores 10,000.
DEEP = 5000
ASKED = {"splitter.io/on-demand-base": "1"}


def names(victim: str) -> list[str]:
    """Return what leads elsewhere, when it is put into a path as it is."""
    return [
        f"../../{victim}/deployments/web",
        f"../../../../../apis/apps/v1/namespaces/{victim}/deployments/web",
        "../../../../../../api/v1/pods",
        "../../../../../../api/v1/pods?limit=100000",
        "../../../../../../api/v1/secrets#",
        f"..%2F..%2F{victim}%2Fdeployments%2Fweb",
        "web/scale",
        ".",
        "Web",
    ]


OWNERS = [
    ("apps/v1", "Deployment"),
    ("apps/v1beta1", "Deployment"),
    ("evil.example/v1", "StatefulSet"),
    ("v1", "Pod"),
]


def forged(name: str, owner: tuple[str, str], called: str, uid: str) -> JsonObject:
    """Return a Deployment of nobody's that says it is the spot twin of another's."""
    api, kind = owner
    made = manifest(name, 0, labels={"splitter.io/split": "twin", "splitter.io/pool": "spot"})
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": api, "kind": kind, "name": called, "uid": uid, "controller": True}
    ]
    return made


@contextmanager
def other_tenant(mortal: Mortal, sandbox: Sandbox) -> Iterator[Shop]:
    """Yield the attacker's namespace."""
    for number, shop in enumerate(open_shop(sandbox, mortal.controller, f"evil-{mortal.shop.namespace}")):
        assert number == 0
        yield shop


def test_forged_owners(mortal: Mortal, sandbox: Sandbox) -> None:
    """Objects that name another namespace's workload, pods, claims: none is believed, and nobody is asked."""
    shop, gateway = mortal.shop, mortal.gateway
    # On the workload itself: two watches have no order, so its label may be seen before its Namespace's.
    shop.deploy(annotations={"splitter.io/dry-run": "true"})
    shop.label()
    shop.says("DryRun")
    victim = shop.deployment()
    before = len(gateway.requests)
    assert before

    with other_tenant(mortal, sandbox) as evil:
        numbers = [
            (owner, called, uid)
            for owner in OWNERS
            for called in names(shop.namespace)
            for uid in ("unknown", victim["metadata"]["uid"])
        ]
        for number, (owner, called, uid) in enumerate(numbers):
            evil.apply(forged(f"forged-{number}", owner, called, uid))
        # Called as the other's twin is, with the other's own name and UID: it can be one of `evil`'s only,
        # where there is no such workload.
        evil.apply(forged("web-spot", OWNERS[0], "web", victim["metadata"]["uid"]))
        evil.apply(_mounting(names(shop.namespace)[2]))
        evil.label("mounting")
        evil.deploy("honest", 2, annotations=ASKED)
        evil.label("honest")
        evil.wait_split(on_demand=1, spot=1, name="honest")
        shop.until(
            lambda: mortal.controller.said().count("is not called as") >= len(numbers),
            "splitter to have read what was forged",
        )
        shop.says("DryRun")

    asked = {request.path for request in gateway.requests}
    assert not [path for path in asked if ".." in path or "%" in path or "?" in path or "secrets" in path]
    assert f"/apis/apps/v1/namespaces/{evil.namespace}/deployments/web" in asked  # all else is seen so, too
    written = [one for one in gateway.writes if one.namespace == shop.namespace and one.kind != "splits"]
    assert not written
    after = shop.deployment()
    assert after["metadata"]["resourceVersion"] == victim["metadata"]["resourceVersion"]


def _mounting(claim: str) -> JsonObject:
    """Return a Deployment whose pods mount what no claim is called."""
    made = manifest("mounting", 0)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    made["spec"]["template"]["spec"]["volumes"] = volumes
    return made


def test_nested_too_deeply(mortal: Mortal, sandbox: Sandbox, tmp_path: Path) -> None:
    """A Split that no parser reads and an API server stores hides nobody else's from who starts anew."""
    shop, controller = mortal.shop, mortal.controller
    with other_tenant(mortal, sandbox) as evil:
        controller.kill()
        path = f"/apis/splitter.io/v1alpha1/namespaces/{evil.namespace}/splits"
        source = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deep"}
        made = {
            "apiVersion": "splitter.io/v1alpha1",
            "kind": "Split",
            "metadata": {"name": "deep"},
            "spec": {"source": source},
        }
        sandbox.api.create(path, made)
        made = sandbox.api.get(f"{path}/deep")
        made["status"] = {"memory": "..."}
        file = tmp_path / "deep.json"
        file.write_text(json.dumps(made).replace('"..."', '{"a":' * DEEP + "1" + "}" * DEEP))
        evil.kubectl("replace", "--raw", f"{path}/deep/status", "-f", str(file))
        shop.deploy(replicas=4, annotations=ASKED)
        shop.label()
        controller.start()
        shop.wait_split(on_demand=1, spot=3)
        shop.wait_steady()
        assert "watch of" not in controller.said()
        evil.kubectl("delete", "split", "deep", "--ignore-not-found")  # what the tests look with is no better
