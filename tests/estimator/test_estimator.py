"""`splitter estimator` as a process: what it asks for, what it starts, and how it ends."""

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from estimator.member import with_nodes
from estimator.requests import max_replicas
from leaping import passing
from rbac import rules
from splitter import estimator
from splitter.bundled import bundled_path
from splitter.core.errors import SplitterError
from splitter.estimator.answers import Estimator
from splitter.exits import MendableError
from splitter.settings import Settings
from splitter.settings.loading import load_settings
from world.api import Api
from world.cluster import Cluster

MANIFEST = "karmada/estimator.yaml"
_VERBS = {"GET": "list", "WATCH": "watch"}


def one(file: str, kind: str) -> dict[str, Any]:
    """Return the only object of a kind in a manifest."""
    text = bundled_path(f"manifests/{file}").read_text(encoding="utf-8")
    [collected] = [raw for raw in yaml.safe_load_all(text) if raw["kind"] == kind]
    return dict(collected)


class Serving(ModuleType):
    """The server, without gRPC."""

    def __init__(self) -> None:
        super().__init__("splitter.estimator.server")
        self.serves: list[tuple[Estimator, str, Path | None, Path | None]] = []
        self.stopped: list[float | None] = []

    async def serve(
        self, answers: Estimator, address: str, tls: Path | None, client_ca: Path | None
    ) -> tuple["Serving", int]:
        """Take note."""
        self.serves.append((answers, address, tls, client_ca))
        return self, 10352

    async def stop(self, grace_s: float | None) -> None:
        """Take note."""
        self.stopped.append(grace_s)


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Have a server that takes note in place of the real one."""
    made = Serving()
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(estimator, "server", made, raising=False)
    return made


@pytest.fixture
async def cluster(one_clock: None, monkeypatch: pytest.MonkeyPatch) -> Cluster:  # noqa: ARG001 - its time
    """Have the process connect to a cluster of the world."""
    made = with_nodes(on_demand=4, spot=1)

    async def connected(*_: object) -> Api:
        return made.api

    async def closed(_: Api) -> None:
        pass

    monkeypatch.setattr(estimator, "connect", connected)
    monkeypatch.setattr(Api, "close", closed)
    return made


def test_needs_grpcio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, a sentence says what to install."""
    monkeypatch.delitem(sys.modules, "splitter.estimator.server", raising=False)
    monkeypatch.delattr(estimator, "server", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MendableError, match=r"pip install 'splitter\[karmada\]'"):
        estimator.run(None)


@pytest.mark.usefixtures("serving")
def test_needs_the_name_of_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Karmada's requests name it, and an estimator of another cluster would mislead."""
    monkeypatch.setattr(estimator, "configured", lambda _: Settings())
    with pytest.raises(SplitterError, match="estimator_cluster is empty"):
        estimator.run(None)


async def test_answers_when_its_caches_are_full(serving: Serving, cluster: Cluster) -> None:
    """It reads, and writes nothing. When it is told to go, the server stops."""
    named = {"estimator_cluster": "m1", "listen_address": "::", "watch_namespaces": ("shop",)}
    settings = Settings.model_validate({**named, "kubeconfig": "there"})
    process = asyncio.create_task(estimator.follow(settings))
    async with asyncio.timeout(60):
        while not serving.serves:
            await passing(0.1)
    [(answers, address, tls, client_ca)] = serving.serves
    assert (address, tls, client_ca) == ("[::]:10352", None, None)
    assert answers.answer("MaxAvailableReplicas", max_replicas(cpu="1")) == b"\x08\x14"
    process.cancel()
    await asyncio.wait((process,))
    assert serving.stopped == [2.0]
    assert set(cluster.api.rates(0)) == {"GET", "WATCH"}
    assert not [path for _, _, path in cluster.api.asked if "/shop/" in path], (
        "pods of all namespaces take room"
    )


async def test_says_what_it_may_not_list(serving: Serving, cluster: Cluster) -> None:
    """Without rights there is no answer: it ends with a sentence, and serves nothing."""
    cluster.api.user = "a stranger"
    with pytest.raises(SplitterError, match="rights of the estimator"):
        await estimator.follow(Settings(estimator_cluster="m1", kubeconfig=Path("there")))
    assert serving.serves == []


async def test_has_the_rights_that_it_uses_and_no_other(serving: Serving, cluster: Cluster) -> None:
    """What it asks of an API server, with the settings of its manifest, is what the manifest lets it ask."""
    container = one(MANIFEST, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    settings = load_settings(environment={**variables, "SPLITTER_KUBECONFIG": "there"})
    process = asyncio.create_task(estimator.follow(settings))
    async with asyncio.timeout(60):
        while not serving.serves:
            await passing(0.1)
    process.cancel()
    await asyncio.wait((process,))
    assert serving.serves[0][2:] == (Path("/etc/splitter-tls"), Path("/etc/splitter-tls/ca.crt"))
    asked = {
        (_VERBS[verb], path.partition("&")[0].rpartition("/")[2])
        for _, verb, path in cluster.api.asked
        if path != "/version"
    }
    given = {(verb, name) for rule in rules(MANIFEST) for name in rule.resources for verb in rule.verbs}
    assert asked | {("watch", "nodeclaims")} == given, "Karpenter is not installed in this member"


def test_is_reached_where_it_listens() -> None:
    """Service, container and settings name one port, and the Service selects the pods."""
    deployment, service = one(MANIFEST, "Deployment")["spec"], one(MANIFEST, "Service")["spec"]
    [container], [port] = deployment["template"]["spec"]["containers"], service["ports"]
    assert container["ports"] == [{"name": port["targetPort"], "containerPort": Settings().estimator_port}]
    labels = deployment["template"]["metadata"]["labels"]
    assert port["port"] == Settings().estimator_port
    assert service["selector"] == deployment["selector"]["matchLabels"] == labels
    assert container["args"][0] == "estimator"
