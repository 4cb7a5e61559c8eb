"""One sandbox for the end-to-end tests of the sandbox itself in a file, and a way to run something in it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.sandbox import Sandbox
from lab.sandbox.waiting import wait_until

JsonObject = dict[str, Any]
Deploy = Callable[..., str]

HOUR_S = 3600  # nobody is lost meanwhile, and machines send heartbeats
_NUMBERS = itertools.count()


# Until the file ends: one that is idle beside that of other tests costs 0.016 of a core.
@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print, node_monitor_grace_s=HOUR_S) as running:
        yield running


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    """Yield a namespace of the test's own."""
    name = f"shop-{next(_NUMBERS)}"
    sandbox.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(path), what="the service account", deadline_s=30)
    yield name
    sandbox.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def deploy(sandbox: Sandbox, namespace: str) -> Deploy:
    """Return a function that creates Deployment `web` and returns its path."""

    def create(
        replicas: int, *, nodes: JsonObject, image: str = "web:1", annotations: JsonObject | None = None
    ) -> str:
        collection = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        pod = {
            "nodeSelector": nodes,
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "web", "image": image}],
        }
        metadata = {"labels": {"app": "web"}, "annotations": annotations or {}}
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": metadata, "spec": pod},
        }
        sandbox.api.create(collection, {"metadata": {"name": "web"}, "spec": spec})
        return f"{collection}/web"

    return create


@pytest.fixture
def available(sandbox: Sandbox) -> Callable[[str, int], None]:
    """Return a function that waits until a Deployment reports so many available replicas."""

    def wait(path: str, replicas: int) -> None:
        wait_until(
            lambda: sandbox.api.get(path)["status"].get("availableReplicas", 0) == replicas,
            what=f"{replicas} available replicas of {path}",
            deadline_s=60,
        )

    return wait
