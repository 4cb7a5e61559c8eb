"""`splitter estimator` as a process: what it asks for, what it starts, and how it ends."""

import asyncio
import sys
from pathlib import Path
from types import ModuleType

import pytest

from estimator.member import with_nodes
from estimator.requests import max_replicas
from leaping import passing
from splitter import estimator
from splitter.core.errors import SplitterError
from splitter.estimator.answers import Estimator
from splitter.exits import MendableError
from splitter.settings import Settings
from world.api import Api
from world.cluster import Cluster


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
    settings = Settings(estimator_cluster="m1", listen_address="::", kubeconfig=Path("there"))
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


async def test_says_what_it_may_not_list(serving: Serving, cluster: Cluster) -> None:
    """Without rights there is no answer: it ends with a sentence, and serves nothing."""
    cluster.api.user = "a stranger"
    with pytest.raises(SplitterError, match="rights of the estimator"):
        await estimator.follow(Settings(estimator_cluster="m1", kubeconfig=Path("there")))
    assert serving.serves == []
