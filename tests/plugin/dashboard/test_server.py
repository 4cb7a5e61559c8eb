"""What the page answers, with a real client over HTTP, of a cluster on paper."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from plugin.dashboard.paper_cluster import PaperCluster, Shown, node, placed, pod, shop, shown, split
from splitter.core.names import DEPLOYMENT, Key
from splitter.plugin.dashboard import Tellers, server
from splitter.plugin.dashboard.fleet import element_id
from splitter.plugin.dashboard.guard import HEADERS

SCRIPT = "<script>alert(1)</script>"
WEB = Key(DEPLOYMENT, "shop", "web")
DEADLINE_S = 10.0


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a browser without a screen."""
    async with aiohttp.ClientSession() as session:
        yield session


def small() -> PaperCluster:
    """Return a cluster with one workload."""
    cluster = PaperCluster()
    cluster.put("nodes", node("on-demand-0", "on-demand"), node("spot-0", "spot"))
    cluster.put("splits", split("web", on_demand=1, spot=2))
    placed(cluster, "web", 1, 2)
    return cluster


class Stream:
    """The events of one stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Return the next event that says something: its name and what it says."""
        name = ""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                line = (await self._answer.content.readline()).decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    return name, json.loads(line.removeprefix("data: "))

    async def until(self, words: str) -> dict[str, Any]:
        """Return the next event with these words."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                _, message = await self.next()
                if words in json.dumps(message):
                    return message


@asynccontextmanager
async def stream(http: aiohttp.ClientSession, address: str) -> AsyncIterator[Stream]:
    """Yield an open stream."""
    async with http.get(address) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        yield Stream(answer)


async def text(http: aiohttp.ClientSession, it: Shown, path: str = "", status: int = 200) -> str:
    """Return what is answered."""
    async with http.get(it.address + path, allow_redirects=False) as answer:
        result = await answer.text()
        assert answer.status == status, result
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        return result


class TestViews:
    """Each view is a whole page before any script has run."""

    async def test_fleet(self, http: aiohttp.ClientSession) -> None:
        """Figures of all, each workload, the nodes that go."""
        async with shown(shop()) as it:
            result = await text(http, it)
        assert "<dd>78 %</dd>" in result
        assert '<a href="workload/shop/deployment/cart">' in result
        assert "spot-10</th>" in result
        assert "taint karpenter.sh/<wbr>disrupted" in result

    async def test_workload(self, http: aiohttp.ClientSession) -> None:
        """Nodes with their replicas, decisions, policy and the words of explain."""
        async with shown(shop()) as it:
            result = await text(http, it, "workload/shop/deployment/cart")
        assert result.count('class="box doomed"') == 2
        assert "cart-spot-1: ready" in result
        assert "its node is going" in result
        assert "<td>on the workload</td>" in result
        assert "Policy in force" in result.split('<div id="explain">')[1]

    async def test_hot_nodes(self, http: aiohttp.ClientSession) -> None:
        """A node that is hot by real use says so beside its replicas, and explain says what comes of it."""
        cluster = small()
        relief = {
            "reason": "NodesMeasured",
            "message": "its replicas stand on hot nodes",
            "hotNodes": ["spot-0"],
        }
        cluster.put("splits", split("web", on_demand=1, spot=2, relief=relief))
        async with shown(cluster) as it:
            result = await text(http, it, "workload/shop/deployment/web")
        assert result.count("hot by real use") == 1
        assert "its replicas stand on hot nodes" in result.split('<div id="explain">')[1]

    async def test_plan_is_asked_for(self, http: aiohttp.ClientSession) -> None:
        """It is read when somebody wants it: it lists a whole namespace."""
        async with shown(small()) as it:
            assert "would write nothing" not in await text(http, it, "workload/shop/deployment/web")
            assert "would write nothing" in await text(http, it, "plan/workload/shop/deployment/web")

    @pytest.mark.parametrize(
        "path",
        [
            "workload/shop/deployment/other",
            "workload/shop/statefulset/web",
            "workload/shop/secret/web",
            "workload/%2e%2e/deployment/web",
            "plan/workload/shop/deployment/other",
            "events/workload/shop/deployment/other",
            "static/../server.py",
            "static/%2e%2e%2fserver.py",
            "static/other.js",
            "nothing",
        ],
    )
    async def test_what_is_not_there(self, http: aiohttp.ClientSession, path: str) -> None:
        """It is a 404 with the same protection as everything else; no other file is served."""
        async with shown(small()) as it:
            await text(http, it, path, 404)

    async def test_a_workload_that_is_not_there_leads_back(self, http: aiohttp.ClientSession) -> None:
        """A page as any other, with the name that was asked for and the way to the fleet."""
        async with shown(small()) as it:
            result = await text(http, it, "workload/shop/deployment/other", 404)
        assert "shop/deployment/other is not shown here" in result
        assert '<a href="../../../">the fleet</a>' in result

    async def test_nothing_is_split(self, http: aiohttp.ClientSession) -> None:
        """An empty page says how to begin."""
        async with shown(PaperCluster()) as it:
            result = await text(http, it)
        assert "splitter.io/split=enabled" in result
        assert "nothing is counted yet" in result

    async def test_static_files(self, http: aiohttp.ClientSession) -> None:
        """What the page needs comes from the page, and names no other host."""
        async with shown(small()) as it:
            for name in ("page.css", "page.js", "icon.svg"):
                result = await text(http, it, f"static/{name}")
                assert "//" not in result.replace("// ", "").replace("http://www.w3.org/2000/svg", "")


class TestSecurity:
    """Nobody else gets anything, and nobody gets what is secret."""

    async def test_refusals_are_protected_too(self, http: aiohttp.ClientSession) -> None:
        """Whatever is refused has all headers, and says nothing of the cluster."""
        async with shown(small()) as it:
            root = f"http://127.0.0.1:{it.served.guard.port}"
            for address, headers, method in (
                (f"{root}/", {}, "GET"),
                (it.address, {"Host": "evil.example"}, "GET"),
                (it.address, {"Origin": "http://evil.example"}, "GET"),
                (it.address, {}, "POST"),
                (it.address, {}, "DELETE"),
            ):
                async with http.request(method, address, headers=headers) as answer:
                    assert answer.status in {403, 405, 421}
                    assert "web" not in await answer.text()
                    for name, value in HEADERS.items():
                        assert answer.headers[name] == value

    async def test_listens_on_loopback_only(self) -> None:
        """The socket is bound to 127.0.0.1."""
        async with shown(small()) as it:
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.2", it.served.guard.port)

    async def test_everything_is_escaped(self, http: aiohttp.ClientSession) -> None:
        """Whoever can write a sentence, a label, a taint or a name writes no markup."""
        cluster = small()
        hostile = node("spot-0", "spot", SCRIPT, going=True)
        hostile["spec"]["taints"].append({"key": SCRIPT, "effect": "NoSchedule"})
        cluster.put("nodes", hostile)
        decisions = [(datetime.now(UTC), SCRIPT, f"scale spot 1 -> 2 (+1): {SCRIPT}")]
        going = [{"name": SCRIPT, "state": "Doomed", "replicas": 1, "signal": SCRIPT}]
        cluster.put(
            "splits",
            split(
                "web",
                state=SCRIPT,
                reason=SCRIPT,
                message=SCRIPT,
                decisions=decisions,
                nodes=going,
                policy={SCRIPT: SCRIPT},
                policyFrom={SCRIPT: SCRIPT},
                guard=SCRIPT,
            ),
        )
        cluster.put("pods", pod("web", SCRIPT, "spot", "spot-0"))
        cluster.put("splits", split(SCRIPT))
        async with shown(cluster) as it:
            assert "<script>a" not in await text(
                http, it, f"workload/shop/deployment/{quote(SCRIPT, '')}", 404
            )
            for path in (
                "",
                "workload/shop/deployment/web",
                "simulator?workload=shop/deployment/web",
                f"simulator?workload=shop/deployment/web&soak={SCRIPT}",
                f"replay?soak={SCRIPT}&every={SCRIPT}",
                f"replay?soak={SCRIPT}",
            ):
                result = await text(http, it, path)
                assert "<script>a" not in result, path
                assert "onerror" not in result
            async with stream(http, f"{it.address}events/workload/shop/deployment/web") as events:
                _, message = await events.next()
                assert all("<script" not in part for part in message["parts"].values())

    async def test_asks_for_nothing_secret(self, http: aiohttp.ClientSession) -> None:
        """Splits, pods and nodes are all that is asked for; no value of a pod's template is shown."""
        cluster = small()
        secret = pod("web", "web-spot-9", "spot", "spot-0")
        secret["spec"]["containers"] = [{"name": "web", "env": [{"name": "PASSWORD", "value": "hunter2"}]}]
        secret["metadata"]["annotations"] = {"note": "hunter2"}
        cluster.put("pods", secret)
        async with shown(cluster) as it:
            for path in ("", "workload/shop/deployment/web"):
                assert "hunter2" not in await text(http, it, path)
        asked = {path.partition("?")[0].rpartition("/")[2] for _, _, path in cluster.api.asked}
        assert asked == {"splits", "pods", "nodes"}

    async def test_a_fault_is_no_traceback(
        self, http: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A bug is told in the terminal and not to the browser."""

        async def plan(_: object) -> list[str]:
            raise ValueError("hunter2")

        async with shown(small(), tellers=Tellers(lambda _: [], plan)) as it:
            result = await text(http, it, "plan/workload/shop/deployment/web", 500)
        assert "hunter2" not in result
        assert "this is a bug of splitter's" in caplog.text


class TestWhatIsNoRequest:
    """Any local user may send anything: the terminal of `splitter dashboard` shows none of it."""

    LONG = "a" * 9000

    @pytest.mark.parametrize(
        ("head", "status"),
        [
            ("GET {path} HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n", 431),
            ("GET {path} HTTP/1.1\r\nHost: {host}\r\n{long}: x\r\n", 431),
            ("GET {path}?{long} HTTP/1.1\r\nHost: {host}\r\n", 431),
            ("GET {path} HTTP/1.1\r\nHost: {host}\r\n" + "X: y\r\n" * 500, 431),
            ("GET {path} HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\n", 400),
            ("GET {path} HTTP/1.1\r\nHost: {host}\r\nno header\r\n", 400),
            ("GET {path} HTTP/9\r\nHost: {host}\r\n", 400),
            ("\x1b[31mGET {path} HTTP/1.1\r\nHost: {host}\r\n", 400),
            ("GET http:// HTTP/1.1\r\nHost: {host}\r\n", 400),
            ("GET http://[ HTTP/1.1\r\nHost: {host}\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: {host}\r\n", 400),
            ("GET x HTTP/1.1\r\nHost: {host}\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
            ("GET /{path} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            ("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n", 405),
            ("POST {path} HTTP/1.1\r\nHost: {host}\r\nExpect: other\r\n", 417),
        ],
        ids=range(16),
    )
    async def test_is_refused_without_a_word(
        self, head: str, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The answer repeats nothing of it, and has the same protection as every other."""
        async with shown(small()) as it:
            _, _, host, path = it.address.split("/", 3)
            reader, writer = await asyncio.open_connection("127.0.0.1", it.served.guard.port)
            with caplog.at_level("INFO"):
                writer.write(head.format(path=f"/{path}", host=host, long=self.LONG).encode() + b"\r\n")
                async with asyncio.timeout(DEADLINE_S):
                    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
            writer.close()
        assert int(answer.split()[1]) == status
        assert not caplog.records
        for name, value in HEADERS.items():
            assert f"{name}: {value}\r\n" in answer


class TestStreams:
    """What changes is sent, and nothing else."""

    async def test_a_change_is_one_row(self, http: aiohttp.ClientSession) -> None:
        """Of many workloads only the one that has changed is sent again."""
        cluster = shop()
        cluster.put("splits", split("web"))
        async with shown(cluster) as it, stream(http, f"{it.address}events/fleet?after=0") as events:
            _, first = await events.next()
            assert len(first["rows"]) == 10
            assert len(first["order"]) == 10
            cluster.put("splits", split("web", state="Moving", reason="SpotLost", spot_ready=3))
            message = await events.until("SpotLost")
            assert list(message["rows"]) == [element_id(WEB)]
            assert "order" not in message

    async def test_who_comes_back_is_told_what_was_missed(self, http: aiohttp.ClientSession) -> None:
        """A page that was rendered at a change is told what has changed after it."""
        cluster = shop()
        cluster.put("splits", split("web"))
        async with shown(cluster) as it:
            before = it.model.last_change
            cluster.put("splits", split("web", state="Held", reason="NotReady"))
            async with stream(http, f"{it.address}events/fleet?after={before}") as events:
                message = await events.until("NotReady")
            assert list(message["rows"]) == [element_id(WEB)]

    @pytest.mark.parametrize("after", ["999999999", "x", "-1", "9" * 50, ""])
    async def test_an_odd_place_is_the_beginning(self, http: aiohttp.ClientSession, after: str) -> None:
        """A number of another run of the command, or none, begins anew."""
        async with shown(small()) as it, stream(http, f"{it.address}events/fleet?after={after}") as events:
            _, message = await events.next()
            assert list(message["rows"]) == [element_id(WEB)]

    async def test_workloads_come_and_go(self, http: aiohttp.ClientSession) -> None:
        """Their order is sent when one comes or goes."""
        cluster = small()
        async with shown(cluster) as it, stream(http, f"{it.address}events/fleet?after=0") as events:
            await events.next()
            cluster.put("splits", split("api"))
            message = await events.until("shop/deployment/api")
            assert message["order"] == [element_id(Key(DEPLOYMENT, "shop", "api")), element_id(WEB)]
            cluster.delete("splits", "shop", "api")
            async with asyncio.timeout(DEADLINE_S):
                while "order" not in (message := (await events.next())[1]):
                    pass
            assert message["order"] == [element_id(WEB)]

    async def test_a_notice_is_seen_at_once(self, http: aiohttp.ClientSession) -> None:
        """A taint reaches both views before splitter has said anything."""
        cluster = small()
        async with (
            shown(cluster) as it,
            stream(http, f"{it.address}events/fleet?after=0") as fleet,
            stream(http, f"{it.address}events/workload/shop/deployment/web") as one,
        ):
            await fleet.next()
            await one.next()
            cluster.put("nodes", node("spot-0", "spot", going=True))
            assert "spot-0" in (await fleet.until("disrupted"))["parts"]["going"]
            assert "box doomed" in (await one.until("disrupted"))["parts"]["nodes"]

    async def test_ends_with_the_workload(self, http: aiohttp.ClientSession) -> None:
        """A view of a workload that is given back says so."""
        cluster = small()
        async with (
            shown(cluster) as it,
            stream(http, f"{it.address}events/workload/shop/deployment/web") as events,
        ):
            await events.next()
            cluster.delete("splits", "shop", "web")
            async with asyncio.timeout(DEADLINE_S):  # a message comes every few seconds, if only of ages
                while (await events.next())[0] != "ended":
                    pass

    async def test_a_browser_that_goes_away_ends_its_stream(self, http: aiohttp.ClientSession) -> None:
        """Nobody is written to who is not there."""
        async with shown(small()) as it:
            async with stream(http, f"{it.address}events/fleet?after=0") as events:
                await events.next()
                assert it.model.listeners == 1
            async with asyncio.timeout(DEADLINE_S):
                while it.model.listeners:
                    await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.01)

    async def test_there_are_few(self, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
        """One too many is told so, and comes in when another has gone."""
        monkeypatch.setattr(server, "STREAMS", 1)
        async with shown(small()) as it:
            address = f"{it.address}events/fleet?after=0"
            async with stream(http, address) as events:
                await events.next()
                async with http.get(address) as answer:
                    assert answer.status == 503
                    assert "1 views are open already" in await answer.text()


class TestRights:
    """What may not be seen is said, and the rest is shown."""

    @pytest.mark.parametrize(
        ("plural", "lost", "shown_still"),
        [
            ("nodes", "nodes are shown by name only", "web-spot-0: ready"),
            ("pods", "replicas are not shown on their nodes", "on the workload"),
        ],
    )
    async def test_one_kind_is_forbidden(
        self, http: aiohttp.ClientSession, plural: str, lost: str, shown_still: str
    ) -> None:
        """These credentials may not list it: the page says what is lost by that."""
        cluster = small()
        cluster.api.forbidden.add(plural)
        async with shown(cluster) as it:
            for path in ("", "workload/shop/deployment/web"):
                assert f"these credentials may not list {plural}: {lost}" in await text(http, it, path)
            assert shown_still in await text(http, it, "workload/shop/deployment/web")

    async def test_without_nodes_the_pool_is_what_a_pod_was_made_for(
        self, http: aiohttp.ClientSession
    ) -> None:
        """Boxes stand in the right pool, though nobody can say what their nodes are."""
        cluster = small()
        cluster.api.forbidden.add("nodes")
        async with shown(cluster) as it:
            result = await text(http, it, "workload/shop/deployment/web")
        assert "<small>1 replica</small>" in result
        assert "<small>2 replicas</small>" in result

    async def test_no_splits(self, http: aiohttp.ClientSession) -> None:
        """Nothing is shown then, and the page says why."""
        cluster = small()
        cluster.api.forbidden.add("splits")
        async with shown(cluster) as it:
            result = await text(http, it)
        assert "these credentials may not list splits: no workload is shown" in result
        assert "No workload is split here" not in result

    async def test_no_nodes(self, http: aiohttp.ClientSession) -> None:
        """Whether one goes is not known, and not denied."""
        cluster = small()
        cluster.api.forbidden.add("nodes")
        async with shown(cluster) as it:
            result = await text(http, it)
        assert "Not known: these credentials may not list nodes." in result
        assert "announced to go." not in result

    async def test_one_namespace(self, http: aiohttp.ClientSession) -> None:
        """With -n only that namespace is asked for, and named where it is refused."""
        cluster = small()
        cluster.api.forbidden.add("pods")
        async with shown(cluster, namespaces=("shop",)) as it:
            assert "may not list pods in namespace shop" in await text(http, it)
