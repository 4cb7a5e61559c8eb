"""A Prometheus is asked by its query API: what it says is bounded, and what cannot be read counts as none."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from listening import Listening
from splitter.core.relief.model import Amounts, Sample
from splitter.kube import prometheus
from splitter.kube.prometheus import NoAnswerError, series
from splitter.kube.real_use import Queries, used_by_prometheus

AT = 1767607200.0
NOON = datetime.fromtimestamp(AT, UTC)
GIB = 1024.0**3
QUERIES = Queries("node-cpu", "node-memory", "pod-cpu", "pod-memory")


class Served:
    """A stand-in that answers each query with these series, as a Prometheus does; or as one that does not."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.status = 200
        self.raw: bytes | None = None
        self.hangs = Event()
        self.asked: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                query = parse_qs(asked.query)["query"][0]
                served.asked.append(f"{asked.path} {query}")
                if served.hangs.is_set():
                    served.ended.wait(20)
                result = served.answers.get(query, [])
                body = {"status": "success", "data": {"resultType": "vector", "result": result}}
                self.send_response(served.status)
                self.end_headers()
                self.wfile.write(served.raw if served.raw is not None else json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.ended = Event()
        self._server = Listening(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Answer nobody any more."""
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def served() -> Iterator[Served]:
    """Yield one that tells the use of a node and of a pod."""
    stand_in = Served()
    pod = {"namespace": "shop", "pod": "web-1"}
    stand_in.answers = {
        "node-cpu": [one({"nodename": "node-1"}, "1.5")],
        "node-memory": [one({"nodename": "node-1"}, str(2 * GIB))],
        "pod-cpu": [one(pod, "0.25")],
        "pod-memory": [one(pod, str(GIB))],
    }
    yield stand_in
    stand_in.end()


def one(labels: object, value: object, at: object = AT) -> dict[str, object]:
    """Return a series."""
    return {"metric": labels, "value": [at, value]}


async def test_real_use_is_read(served: Served) -> None:
    """Cores are thousandths here; the samples are of the time that it says."""
    used = await used_by_prometheus(served.address, QUERIES, ())
    assert used.nodes == {"node-1": Sample(NOON, Amounts(1500.0, 2 * GIB))}
    assert used.pods == {("shop", "web-1"): Sample(NOON, Amounts(250.0, GIB))}
    assert used.missing == ""
    queries = ("node-cpu", "node-memory", "pod-cpu", "pod-memory")
    assert served.asked == [f"/api/v1/query {query}" for query in queries]


async def test_of_pods_only_in_its_namespaces(served: Served) -> None:
    """A namespaced install takes no note of others."""
    assert (await used_by_prometheus(served.address, QUERIES, ("till",))).pods == {}


async def test_the_label_node_comes_first(served: Served) -> None:
    """A query of one's own may name nodes as Kubernetes does."""
    served.answers["node-cpu"] = [one({"node": "node-1", "nodename": "ip-1"}, "1.5")]
    assert list((await used_by_prometheus(served.address, QUERIES, ())).nodes) == ["node-1"]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        {},
        one({"nodename": "node-2"}, None),
        one({"nodename": "node-2"}, "much"),
        one({"nodename": "node-2"}, "1", at="noon"),
        one({"nodename": "node-2"}, "1", at=1e300),
        one(["nodename"], "1"),
        one({"instance": "10.0.0.7:9100"}, "1"),
        {"metric": {"nodename": "node-2"}, "histogram": [AT, {}]},
    ],
)
async def test_what_cannot_be_read_counts_as_none(served: Served, odd: object) -> None:
    """It hides no other node."""
    for query in ("node-cpu", "node-memory"):
        served.answers[query].append(odd)
    assert list((await used_by_prometheus(served.address, QUERIES, ())).nodes) == ["node-1"]


async def test_two_values_of_one_node_are_none(served: Served) -> None:
    """A query that does not add up: nobody knows which one is meant."""
    served.answers["node-cpu"] += [one({"nodename": "node-2"}, "1"), one({"nodename": "node-2"}, "7")]
    served.answers["node-memory"].append(one({"nodename": "node-2"}, "1"))
    assert list((await used_by_prometheus(served.address, QUERIES, ())).nodes) == ["node-1"]


@pytest.mark.parametrize("value", ["-5", "NaN", "+Inf"])
async def test_an_impossible_value_is_left_to_who_judges(served: Served, value: str) -> None:
    """`relief.samples` says of it that it is no amount."""
    served.answers["node-cpu"] = [one({"nodename": "node-1"}, value)]
    used = await used_by_prometheus(served.address, QUERIES, ())
    assert not used.nodes["node-1"].used.cpu >= 0 or used.nodes["node-1"].used.cpu == float("inf")


async def test_without_nodes_it_is_said(served: Served) -> None:
    """Node exporter may not be there, or name nodes otherwise."""
    served.answers = {}
    assert "look at relief_node_cpu_query" in (await used_by_prometheus(served.address, QUERIES, ())).missing


@pytest.mark.parametrize(
    ("status", "raw", "said"),
    [
        (200, b"[]", "the answer is no object"),
        (200, b"<html>", "unexpected"),
        (200, b"{}", "this is no answer of a Prometheus"),
        (200, b'{"status": "success", "data": {"result": 7}}', "this is no answer of a Prometheus"),
        (200, b'{"status": "error", "error": "too many\\nsamples"}', "too many samples"),
        (422, b'{"status": "error", "error": "many-to-many matching"}', "422 many-to-many matching"),
        (503, b"down", "503 Service Unavailable"),
    ],
)
async def test_another_answer_is_said(served: Served, status: int, raw: bytes, said: str) -> None:
    """With the address, and in its own words where it has some."""
    served.status, served.raw = status, raw
    missing = (await used_by_prometheus(served.address, QUERIES, ())).missing
    assert missing.startswith(f"real use cannot be read: {served.address}/api/v1/query: ")
    assert said in missing


async def test_one_that_hangs_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again at the next look."""
    monkeypatch.setattr(prometheus, "_TIMEOUT_S", 0.2)
    served.hangs.set()
    assert "no answer within" in (await used_by_prometheus(served.address, QUERIES, ())).missing


async def test_a_very_long_answer_is_none(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's memory is filled by it."""
    monkeypatch.setattr(prometheus, "_MOST_BYTES", 1000)
    served.raw = b"x" * 5000
    with pytest.raises(NoAnswerError, match="answers with more than"):
        await series(served.address, "up")


async def test_nobody_answers() -> None:
    """No credentials are said."""
    with pytest.raises(NoAnswerError) as refused:
        await series("http://me:secret@127.0.0.1:1", "up")
    assert "secret" not in str(refused.value)
