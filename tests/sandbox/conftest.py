"""One sandbox for all end-to-end tests of the sandbox itself, and a way to run something in it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from splitter.sandbox import Sandbox
from splitter.sandbox.waiting import wait_until

JsonObject = dict[str, Any]
Deploy = Callable[..., str]

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """Yield a running control plane; its logs are kept when starting or ending it fails."""
    with Sandbox.start(progress=print) as running:
        yield running


@pytest.fixture
def namespace(sandbox: Sandbox) -> Iterator[str]:
    """Yield a namespace of the test's own."""
    name = f"shop-{next(_NUMBERS)}"
    sandbox.kubectl("create", "namespace", name)
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: sandbox.api.find(path), what="the service account", deadline_s=30)
    yield name
    sandbox.kubectl("delete", "namespace", name, "--wait=false")


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
