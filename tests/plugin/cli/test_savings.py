"""`splitter savings`: what it adds up, where prices come from, and what it says when they do not come."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from listening import Listening
from plugin.cli.bills import split
from splitter.plugin.cli import app

RUN = CliRunner()


def node(name: str, capacity: str, instance_type: str = "m6i.xlarge") -> dict[str, Any]:
    """Return a node of 4 vCPUs and 16 GiB."""
    labels = {
        "karpenter.sh/capacity-type": capacity,
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/zone": "eu-1a",
    }
    size = {"cpu": "4", "memory": "16Gi"}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"allocatable": size}}


SPLITS = "/apis/splitter.io/v1alpha1/namespaces/shop/splits"
QUERY = "/api/v1/query"


class Server(BaseHTTPRequestHandler):
    """An API server, OpenCost and Prometheus in one, each on its own paths."""

    def do_GET(self) -> None:
        """Answer what the test has laid down."""
        path, _, query = self.path.partition("?")
        answers: dict[str, Any] = self.server.answers  # type: ignore[attr-defined]
        raw = answers.get(f"{path}?{query}", answers.get(path))
        if path == QUERY:
            raw = answers.get("cpu" if "node_cpu_hourly_cost" in query else "memory")
        status = raw if isinstance(raw, int) else 200 if raw is not None else 404
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        text = raw if isinstance(raw, str) else json.dumps(raw if status == 200 else {"message": "no"})
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
        """Say nothing."""


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Serve on loopback, point KUBECONFIG there, and yield what is answered; `url` is where."""
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "/version": {"gitVersion": "v1.36.3"},
        SPLITS: {"items": [split("shop", "web", since=now - timedelta(hours=10))]},
        "/api/v1/nodes": {"items": [node("od", "on-demand"), node("spot", "spot")]},
    }
    server = Listening(("127.0.0.1", 0), Server)
    server.answers = values  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    values["url"] = f"http://127.0.0.1:{server.server_port}"
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": values["url"]}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield values
    server.shutdown()
    thread.join()
    server.server_close()


def asset(name: str, cpu: float, memory: float, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - a field of any kind
    """Return a node of OpenCost's assets, a day old, that costs so much an hour for a vCPU and a GiB."""
    made = {
        "type": "Node",
        "properties": {"name": name, "cluster": "here"},
        "cpuCoreHours": 96.0,
        "ramByteHours": 24.0 * 16 * 1024**3,
        "cpuCost": 96.0 * cpu,
        "ramCost": 24.0 * 16 * memory,
    }
    return {**made, **fields}


def reported(*words: str) -> tuple[dict[str, Any], str]:
    """Return what the command writes as JSON, and what it says beside."""
    invoked = RUN.invoke(app, ["savings", "-n", "shop", "-o", "json", *words])
    assert invoked.exit_code == 0, invoked.output
    answer: dict[str, Any] = json.loads(invoked.stdout)
    return answer, invoked.stderr


class TestPrices:
    def test_assumed(self, answers: dict[str, Any]) -> None:
        """Nobody is asked, not even for nodes, and it is said."""
        del answers["/api/v1/nodes"]
        result, _ = reported()
        assert result["prices"] == {"onDemand": 1.0, "spot": 0.3, "assumed": True}
        assert result["all"]["savedShare"] == pytest.approx(0.56, rel=0.01)
        assert "paid" not in result["all"]

    @pytest.mark.parametrize("listed", [True, False])
    def test_of_opencost(self, answers: dict[str, Any], *, listed: bool) -> None:
        """The assets of the last day; disks, and nodes that have only just come, have no price."""
        assets = {
            "a": asset("od", 0.04, 0.005),
            "b": asset("spot", 0.01, 0.001),
            "c": {"type": "Disk", "properties": {"name": "d"}},
            "d": asset("new", 0.0, 0.0, cpuCoreHours=0.0),
        }
        answers["/assets"] = {"code": 200, "data": [assets] if listed else assets}
        result, said = reported("--opencost", answers["url"])
        assert said == ""
        assert result["prices"]["spot"] == pytest.approx({"vcpuHour": 0.01, "gibHour": 0.001})
        whole = result["all"]
        assert whole["paid"] == pytest.approx(5 * 0.04 + 5 * 0.005 + 20 * 0.01 + 20 * 0.001, rel=0.01)
        assert whole["allOnDemand"] == pytest.approx(25 * 0.04 + 25 * 0.005, rel=0.01)
        assert whole["saved"] == pytest.approx(whole["allOnDemand"] - whole["paid"])

    def test_of_prometheus(self, answers: dict[str, Any]) -> None:
        """OpenCost's metrics, by node."""

        def metric(on_demand: float, spot: float) -> dict[str, Any]:
            result = [
                {"metric": {"node": name}, "value": [1.0, str(price)]}
                for name, price in (("od", on_demand), ("spot", spot))
            ]
            return {"status": "success", "data": {"resultType": "vector", "result": result}}

        answers["cpu"], answers["memory"] = metric(0.04, 0.01), metric(0.005, 0.001)
        outcome, said = reported("--prometheus", answers["url"])
        assert said == ""
        assert outcome["prices"]["onDemand"] == {"vcpuHour": 0.04, "gibHour": 0.005}

    def test_of_a_list(self, answers: dict[str, Any], tmp_path: Path) -> None:
        """The most precise line of a node holds, in the list's currency."""
        assert answers
        lines = [
            {"instanceType": "m6i.xlarge", "perHour": 0.2},
            {"instanceType": "m6i.xlarge", "capacityType": "spot", "perHour": 0.08},
            {"instanceType": "m6i.xlarge", "capacityType": "spot", "zone": "eu-1a", "perHour": 0.05},
            {"instanceType": "m6i.xlarge", "capacityType": "spot", "zone": "eu-1b", "perHour": 0.01},
        ]
        path = tmp_path / "prices.yaml"
        path.write_text(yaml.safe_dump({"currency": "EUR", "nodes": lines}), encoding="utf-8")
        result, said = reported("--prices", str(path))
        assert said == ""
        assert result["prices"]["currency"] == "EUR"
        on_demand, spot = result["prices"]["onDemand"], result["prices"]["spot"]
        assert 4 * on_demand["vcpuHour"] + 16 * on_demand["gibHour"] == pytest.approx(0.2)
        assert 4 * spot["vcpuHour"] + 16 * spot["gibHour"] == pytest.approx(0.05)
        shown = RUN.invoke(app, ["savings", "-n", "shop", "--prices", str(path)]).stdout
        assert "SAVED EUR" in shown
        assert "prices of " in shown

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("nodes: [{instanceType: other, perHour: 1}]", "knows no price of any on-demand node"),
            ("{", "cannot be read"),
        ],
    )
    def test_a_bad_list_is_told(self, text: str, why: str, answers: dict[str, Any], tmp_path: Path) -> None:
        """What is wrong, and that assumed prices are shown."""
        assert answers
        path = tmp_path / "prices.yaml"
        path.write_text(text, encoding="utf-8")
        result, said = reported("--prices", str(path))
        assert why in said
        assert said.endswith("assumed prices are shown\n")
        assert result["prices"]["assumed"]

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (500, "500"),
            ("[", "no prices from"),
            ("[1]", "the answer is no object"),
            ({"data": {"a": asset("od", 0.04, 0.1)}}, "no price of any spot node"),
        ],
    )
    def test_a_bad_answer_is_told(self, answer: Any, why: str, answers: dict[str, Any]) -> None:  # noqa: ANN401 - any answer
        """OpenCost is broken, or something else listens there."""
        answers["/assets"] = answer
        result, said = reported("--opencost", answers["url"])
        assert why in said
        assert result["prices"]["assumed"]

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            ([], "this is no answer of a Prometheus"),
            ("x", "this is no answer of a Prometheus"),
            ({"result": 1}, "this is no answer of a Prometheus"),
            ({"result": [{"metric": 1}]}, "no metric node_cpu_hourly_cost"),
        ],
    )
    def test_a_bad_answer_to_a_query_is_told(self, data: object, why: str, answers: dict[str, Any]) -> None:
        """Something else than a Prometheus listens there."""
        answers["cpu"] = answers["memory"] = {"status": "success", "data": data}
        result, said = reported("--prometheus", answers["url"])
        assert why in said
        assert result["prices"]["assumed"]

    @pytest.mark.parametrize("answer", [500, {"data": {n: asset(n, 0.04, 0.1) for n in ("od", "spot")}}])
    def test_a_password_is_not_shown(self, answer: object, answers: dict[str, Any]) -> None:
        """A bill is passed on: neither in the bill, nor where prices are not to be had."""
        answers["/assets"] = answer
        address = answers["url"].replace("://", "://me:hunter2@")
        for form in ("table", "json", "csv"):
            invoked = RUN.invoke(app, ["savings", "-n", "shop", "-o", form, "--opencost", address])
            assert invoked.exit_code == 0, invoked.output
            assert "hunter2" not in invoked.output
            assert form == "csv" or ("://…@127" in invoked.output.replace("\\u2026", "…"))

    def test_nobody_answers(self, answers: dict[str, Any]) -> None:
        """An address where nothing listens, and one that is none."""
        assert answers
        _, said = reported("--opencost", "http://127.0.0.1:1")
        assert "no prices from http://127.0.0.1:1/assets" in said
        _, said = reported("--prometheus", "prometheus:9090")
        assert "it begins with http:// or https://" in said

    def test_no_rights_to_list_nodes(self, answers: dict[str, Any]) -> None:
        """Which pool a price is of cannot be known then."""
        answers["/api/v1/nodes"] = 403
        result, said = reported("--opencost", answers["url"])
        assert "nodes cannot be listed" in said
        assert result["prices"]["assumed"]


@pytest.mark.usefixtures("answers")
class TestTheCommand:
    @pytest.mark.parametrize("since", ["7", "x", "-1h", "0s", "1d2h", "999999999d"])
    def test_a_bad_time(self, since: str) -> None:
        """Told what it may be."""
        invoked = RUN.invoke(app, ["savings", "-n", "shop", f"--since={since}"])
        assert invoked.exit_code == 2
        assert "90m, 12h or 7d" in invoked.output.replace("\n", " ")

    def test_one_source_of_prices(self) -> None:
        """Two would contradict each other."""
        invoked = RUN.invoke(app, ["savings", "--opencost", "http://a", "--prometheus", "http://b"])
        assert invoked.exit_code == 2

    def test_of_what_is_not_split(self) -> None:
        """As for every verb that names a workload."""
        invoked = RUN.invoke(app, ["savings", "api", "-n", "shop"])
        assert invoked.exit_code == 3
        assert invoked.stderr == "deployment shop/api is not split\n"

    def test_shows_a_table(self) -> None:
        """Of one namespace the names are short."""
        shown = RUN.invoke(app, ["savings", "-n", "shop", "--since", "5h"]).stdout.splitlines()
        assert shown[1].split()[0] == "web"
        assert shown[1].split()[-2:] == ["80.0%", "56.0%"]
