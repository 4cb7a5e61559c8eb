"""Each fault, done to a server that answers well."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml
from aiohttp import web

from lab.chaos.faults import RIGHTS, Fault, Stroke
from lab.chaos.proxy import FaultProxy, NotLoopbackError, check_loopback
from lab.fixtures.gateway import let_pass

PODS = "/api/v1/pods"
WATCH = f"{PODS}?watch=true"
DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"
LINE = json.dumps({"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "9"}}}).encode() + b"\n"


class Server:
    """An API server of three answers; `writes` counts what it has carried out."""

    def __init__(self) -> None:
        self.writes = 0
        self.version = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer lists with a version that rises, watches with one line after another, writes with 200."""
        if request.method == "PATCH":
            self.writes += 1
            return web.json_response({"metadata": {"resourceVersion": str(self.writes)}})
        if "watch" not in request.query:
            self.version += 1
            text = f'{{"kind":"PodList","metadata":{{"resourceVersion":"{self.version}"}},"items":[]}}'
            return web.Response(text=text, content_type="application/json")
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(LINE)
            await let_pass(0.02)


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, str]]:
    """Yield a running server and its address."""
    reported = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", reported.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield reported, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def kubeconfig(path: Path, server: str) -> Path:
    """Write the least that a gateway reads."""
    cluster = {"name": "it", "cluster": {"server": server, "certificate-authority-data": ""}}
    path.write_text(yaml.safe_dump({"clusters": [cluster]}))
    return path


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server speaks plain HTTP here: no certificate is looked at."""
    monkeypatch.setattr("lab.fixtures.gateway.ssl.create_default_context", lambda **_: False)


@pytest.fixture
def proxy(trusting: None, server: tuple[Server, str], tmp_path: Path) -> Iterator[FaultProxy]:
    """Yield a proxy before the server."""
    assert trusting is None
    with FaultProxy(kubeconfig(tmp_path / "kubeconfig", server[1])) as running:
        yield running


@pytest.fixture
async def session(proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client of the proxy."""
    reported = yaml.safe_load(proxy.kubeconfig(tmp_path / "through").read_text())
    url = reported["clusters"][0]["cluster"]["server"]
    async with aiohttp.ClientSession(url, timeout=aiohttp.ClientTimeout(total=5)) as running:
        yield running


class TestOnlyLoopback:
    @pytest.mark.parametrize(
        "server", ["https://10.0.0.1:6443", "https://localhost", "https://k8s.example", ""]
    )
    def test_refuses_all_else(self, server: str, tmp_path: Path) -> None:
        """Whatever is not an address of this machine is refused before anything is sent."""
        with pytest.raises(NotLoopbackError, match="only for the sandbox that it starts itself"):
            FaultProxy(kubeconfig(tmp_path / "kubeconfig", server))

    @pytest.mark.parametrize("server", ["https://127.0.0.1:6443", "https://[::1]:1"])
    def test_takes_its_own(self, server: str) -> None:
        """An address of this machine is fine."""
        check_loopback(server)


class TestAnswers:
    @pytest.mark.parametrize(
        ("fault", "status"),
        [
            (Fault.THROTTLED, 429),
            (Fault.SERVER_ERROR, 500),
            (Fault.UNAVAILABLE, 503),
            (Fault.CONFLICT, 409),
            (Fault.UNAUTHORIZED, 401),
        ],
    )
    async def test_refused(
        self,
        proxy: FaultProxy,
        session: aiohttp.ClientSession,
        server: tuple[Server, str],
        fault: Fault,
        status: int,
    ) -> None:
        """A write is refused in Kubernetes' form, never reaches the server, and passes when it is mended."""
        stroke = Stroke(fault, seed=2)
        proxy.strike(stroke)
        collected = set()
        for _ in range(20):
            async with session.patch(DEPLOYMENT, json={}) as answer:
                collected.add(answer.status)
                if answer.status == status:
                    assert (await answer.json())["code"] == status
                    assert ("Retry-After" in answer.headers) == (fault is Fault.THROTTLED)
        assert status in collected <= {status, 200}
        assert proxy.struck_by[fault] == 20 - server[0].writes
        proxy.mend(stroke)
        async with session.patch(DEPLOYMENT, json={}) as answer:
            assert answer.status == 200

    async def test_forbidden(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """One verb on one kind is taken away, and nothing else."""
        proxy.strike(Stroke(Fault.FORBIDDEN, seed=1, right=RIGHTS.index(("PATCH", "/deployments/"))))
        async with session.patch(DEPLOYMENT, json={}) as answer:
            assert answer.status == 403
        async with session.get(DEPLOYMENT) as answer:
            assert answer.status == 200

    @pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.ANSWER_CUT])
    async def test_lost(
        self, proxy: FaultProxy, session: aiohttp.ClientSession, server: tuple[Server, str], fault: Fault
    ) -> None:
        """A write is carried out all the same, and its sender does not learn of it."""
        proxy.strike(Stroke(fault, seed=2))
        lost = 0
        for _ in range(20):
            try:
                async with session.patch(DEPLOYMENT, json={}) as answer:
                    await answer.read()
            except aiohttp.ClientError:
                lost += 1
        assert server[0].writes >= 20  # a client may send again by itself what it had no answer to
        assert 0 < lost <= proxy.struck_by[fault]

    async def test_slow(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """It is answered all the same."""
        proxy.strike(Stroke(Fault.SLOW, seed=7))
        async with session.get(PODS) as answer:
            assert answer.status == 200

    async def test_server_away(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """Connections are refused, and taken again."""
        stroke = Stroke(Fault.REFUSED, seed=1)
        proxy.strike(stroke)
        with pytest.raises(aiohttp.ClientError):
            await session.get(PODS)
        proxy.mend(stroke)
        async with session.get(PODS) as answer:
            assert answer.status == 200

    async def test_stale(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """A list is answered as it was before."""

        async def version() -> str:
            async with session.get(PODS) as answer:
                return str((await answer.json())["metadata"]["resourceVersion"])

        stroke = Stroke(Fault.STALE_LIST, seed=1)
        assert [await version(), await version()] == ["1", "2"]
        proxy.strike(stroke)
        assert await version() == "1"
        proxy.mend(stroke)
        assert await version() == "4"


class TestWatches:
    async def read(self, session: aiohttp.ClientSession) -> bytes:
        """Return all that a watch says until it ends. Raises as it breaks."""
        async with session.get(WATCH) as answer:
            return await answer.read()

    async def silent(self, answer: aiohttp.ClientResponse) -> bool:
        """Whether a watch falls silent, once what was under way has come."""
        for _ in range(20):
            try:
                await asyncio.wait_for(answer.content.readline(), 0.5)
            except TimeoutError:
                return True
        return False

    async def test_cut(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """It ends well-behaved, in the middle of a line."""
        proxy.strike(Stroke(Fault.WATCH_CUT, seed=1))
        said = await self.read(session)
        assert not said.endswith(b"\n")

    async def test_broken(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """It is reset in the middle of a line."""
        proxy.strike(Stroke(Fault.WATCH_BROKEN, seed=1))
        with pytest.raises(aiohttp.ClientError):
            await self.read(session)

    async def test_gone(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """It ends with the server's own word for a version that is too old."""
        proxy.strike(Stroke(Fault.WATCH_GONE, seed=1))
        last = json.loads((await self.read(session)).splitlines()[-1])
        assert (last["type"], last["object"]["code"]) == ("ERROR", 410)

    async def test_silent(self, proxy: FaultProxy, session: aiohttp.ClientSession) -> None:
        """It says nothing any more, although it is mended: only another watch does."""
        stroke = Stroke(Fault.WATCH_SILENT, seed=1)
        async with session.get(WATCH) as answer:
            await answer.content.readline()
            proxy.strike(stroke)
            assert await self.silent(answer)
            proxy.mend(stroke)
            assert await self.silent(answer)
        async with session.get(WATCH) as answer:
            assert await answer.content.readline() == LINE


def test_nobody_there(trusting: None, tmp_path: Path) -> None:
    """While the server is killed a client is cut off, and gets no answer that a server never gave."""
    assert trusting is None
    with FaultProxy(kubeconfig(tmp_path / "server", "http://127.0.0.1:1")) as proxy:
        written = yaml.safe_load(proxy.kubeconfig(tmp_path / "proxy").read_text())
        address = urlsplit(written["clusters"][0]["cluster"]["server"]).netloc
        with closing(HTTPConnection(address, timeout=10)) as connection:
            connection.request("GET", "/api/v1/pods")
            with pytest.raises(ConnectionError):
                connection.getresponse()
