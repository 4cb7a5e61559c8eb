"""`splitter status` and `explain`: what they show of Splits, and what they refuse."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from listening import Listening
from splitter.cli import app
from splitter.cli.explain import explained
from splitter.cli.splits import cells, key_of, status_of, table
from splitter.cli.status import fitted
from splitter.core.names import Key

RUN = CliRunner()


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    """Make one condition."""
    return {
        "type": kind,
        "status": status,
        "reason": "SpotInterrupted",
        "message": message,
        "lastTransitionTime": "2026-11-21T14:10:00Z",
    }


SPLIT: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    "status": {
        "state": "Moving",
        "reason": "SpotInterrupted",
        "message": "scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes",
        "desired": 10,
        "ready": 7,
        "cover": 3,
        "onDemand": {"wanted": 4, "spec": 7, "ready": 4, "doomed": 0, "pending": 1},
        "spot": {"wanted": 6, "spec": 6, "ready": 3, "doomed": 3, "pending": 0},
        "nodes": [
            {
                "name": "spot-a",
                "state": "Doomed",
                "replicas": 3,
                "signal": "event SpotInterrupted",
                "deadline": "2026-11-21T14:12:00Z",
            },
            {"name": "spot-b", "state": "Doomed", "replicas": 1, "signal": "cordoned (spec.unschedulable)"},
            {"name": "spot-c", "state": "Lost", "replicas": 2, "signal": "condition Ready=Unknown"},
        ],
        "policy": {"onDemandBase": 2, "spotPercent": 80, "soak": "600s", "freeze": False},
        "policyFrom": {"onDemandBase": "Source", "spotPercent": "Namespace", "soak": "Default"},
        "policyAnnotations": {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "80"},
        "rebalance": {"lastLoss": "2026-11-21T14:10:00Z", "lost": True, "soakSeconds": 1200.0},
        "conditions": [
            condition("Eligible", "True"),
            condition("PolicyValid", "True"),
            condition("Ready", "False", "7 of 10 replicas are available"),
            condition("Progressing", "True"),
            condition("SpotAvailable", "False", "3 of 6 wanted spot replicas are available"),
            condition("Conflict", "False"),
        ],
        "decisions": [
            {"time": "2026-11-21T14:00:00Z", "reason": "Balanced", "message": "4 on on-demand and 6 on spot"},
            {"time": "2026-11-21T14:09:00Z", "reason": "WriteDenied", "message": "no"},
            {"time": "2026-11-21T14:09:30Z", "reason": "WriteDenied", "message": "no"},
        ],
    },
}
SOURCE = {"kind": "Deployment", "metadata": {"annotations": {"splitter.io/on-demand-base": "2"}}}


def split(name: str = "web", namespace: str = "shop", **status: object) -> dict[str, Any]:
    """Return the example under another name, with some fields of its status replaced."""
    values = copy.deepcopy(SPLIT)
    values["metadata"] = {"namespace": namespace, "name": name}
    values["spec"]["source"]["name"] = name
    values["status"].update(status)
    return values


def lines_of(one: dict[str, Any]) -> list[str]:
    """Explain a Split."""
    return explained(key_of(one), status_of(one))


class TestTheTable:
    """One line for each workload."""

    def test_shows_ready_of_wanted(self) -> None:
        """All of desired; each pool's ready of what it should hold."""
        assert table([split(), split("api", state="Steady", reason="Balanced")]).plain.splitlines() == [
            "WORKLOAD  READY  ON-DEMAND  SPOT  COVER  STATE   REASON",
            "web        7/10        4/4   3/6      3  Moving  SpotInterrupted",
            "api        7/10        4/4   3/6      3  Steady  Balanced",
        ]

    def test_names_the_namespace_where_there_are_several(self) -> None:
        """As kubectl users write it."""
        assert table([split()], namespaced=True).plain.splitlines()[1].startswith("shop/web  ")

    def test_shows_the_sentence_when_wide(self) -> None:
        """The message comes last, whole."""
        line = table([split()], wide=True, width=80).plain.splitlines()[1]
        assert line.endswith("SpotInterrupted  " + SPLIT["status"]["message"])

    @pytest.mark.parametrize("reason", ["SpotInterrupted", "RolloutInProgress", "WaitingForController"])
    def test_fits_a_small_terminal(self, reason: str) -> None:
        """80 columns hold a long name, a long state and a long reason; both ends of the name stay."""
        one = split("a-very-long-name-of-a-workload", "production", state="GivingBack", reason=reason)
        shown = table([one], namespaced=True, width=80).plain.splitlines()
        assert max(map(len, shown)) <= 80
        assert shown[1].startswith("produ")
        assert "load  " in shown[1]

    def test_does_not_shorten_what_is_piped(self) -> None:
        """Without a width every name is whole, however long."""
        assert "a" * 200 in table([split("a" * 200)]).plain

    def test_says_in_words_what_it_says_in_colour(self) -> None:
        """The state alone is coloured, and an unknown state is not."""
        coloured = table([split(state="Refused"), split(state="Novel")])
        assert [(coloured.plain[span.start : span.end].strip(), span.style) for span in coloured.spans] == [
            ("Refused", "red")
        ]

    def test_survives_a_split_without_a_report(self) -> None:
        """A Split just created has no status: dashes."""
        assert cells({"metadata": {"name": "web"}}, namespaced=False) == (
            *("web", "-/-", "-/-", "-/-"),
            *("-", "-", "-"),
        )

    def test_names_the_source_of_another_kind(self) -> None:
        """The Split of a StatefulSet has another name than its source."""
        one = split("db-sts")
        one["spec"]["source"] = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        assert key_of(one) == Key("StatefulSet", "shop", "db")
        assert cells(one, namespaced=True)[0] == "shop/statefulset/db"


class TestTheScreen:
    """What -w shows where not everything fits."""

    def test_shows_all_that_fits(self) -> None:
        """A heading and four lines are a screen of five."""
        splits = [split(str(number)) for number in range(4)]
        assert fitted(splits, 5) == (splits, "")

    def test_shows_first_what_is_not_steady(self) -> None:
        """In their order; the rest is counted by state."""
        states = ["Steady", "Held", "Steady", "Moving", "Moving", "Steady"]
        splits = [split(str(number), state=state) for number, state in enumerate(states)]
        shown, rest = fitted(splits, 4)
        assert [key_of(one).name for one in shown] == ["1", "3"]
        assert rest == "... and 4 more: 3 Steady, 1 Moving"


class TestTheExplanation:
    """The whole story of one workload."""

    def test_is_told_from_what_is_to_why(self) -> None:
        """State, counts, policy with its levels, what is wrong, what was decided."""
        assert lines_of(split()) == [
            "shop/web  Moving  SpotInterrupted",
            "  scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes",
            "",
            "Replicas",
            "  all        7 ready of 10 wanted",
            "  on-demand  4 ready of 4 wanted, 7 asked for now, 1 pending, 3 cover for spot",
            "  spot       3 ready of 6 wanted, 3 doomed",
            "",
            "Nodes that go (UTC)",
            "  spot-a: 3 replicas, by 2026-11-21 14:12:00: event SpotInterrupted",
            "  spot-b: 1 replica, going: cordoned (spec.unschedulable)",
            "  spot-c: 2 replicas, gone: condition Ready=Unknown",
            "",
            "Policy in force",
            "  on-demand-base  2      on the workload",
            "  spot-percent    80     on the Namespace",
            "  soak            600s   default",
            "  freeze          false  -",
            "",
            "Spot",
            "  lost last at 2026-11-21 14:10:00, and not made good yet",
            "  flapping: replicas are trusted after 1200 s instead of the policy's soak",
            "",
            "Not as it should be",
            "  Ready is False since 2026-11-21 14:10:00: SpotInterrupted",
            "    7 of 10 replicas are available",
            "    -> Nothing; this is what splitter is for.",
            "  SpotAvailable is False since 2026-11-21 14:10:00: SpotInterrupted",
            "    3 of 6 wanted spot replicas are available",
            "    -> Nothing; this is what splitter is for.",
            "",
            "Last decisions (UTC, newest last)",
            "  2026-11-21 14:00:00  Balanced: 4 on on-demand and 6 on spot",
            "  2026-11-21 14:09:00  WriteDenied, 2 times, last at 2026-11-21 14:09:30: no",
        ]

    def test_leaves_out_what_is_as_it_should_be(self) -> None:
        """No loss, no fault, no decision: no such section."""
        calm = split(conditions=[condition("Eligible", "True")], nodes=[], rebalance={}, decisions=[])
        assert [line for line in lines_of(calm) if line and not line.startswith(" ")] == [
            "shop/web  Moving  SpotInterrupted",
            "Replicas",
            "Policy in force",
        ]

    def test_tells_the_starts_and_what_a_loss_leaves(self) -> None:
        """By pool, and the gap where a start outlasts the notice."""
        starts = {
            "until": "2026-11-21T14:00:00Z",
            "noticeSeconds": 120,
            "onDemand": {"startSeconds": [280, 300, 290], "nodeSeconds": [0, 90, 60]},
            "spot": {"startSeconds": [31]},
        }
        lines = lines_of(split(starts=starts))
        at = lines.index("Starts")
        assert lines[at + 1 : at + 6] == [
            "  on-demand  half of the last 3 within 290 s, all within 300 s; a node took 60 to 90 s",
            "  spot       half of the last 1 within 31 s, all within 31 s",
            "  ! pods need 360 s, the notice is 120 s: a loss of all spot leaves 4 of 10 for",
            "    240 s; splitter.io/on-demand-base 6 would leave 6 (NoticeTooShort)",
            "",
        ]

    def test_says_how_hot_nodes_are_relieved(self) -> None:
        """What is hot, and each move that still counts."""
        move = {
            "time": "2026-11-21T14:00:00Z",
            "pool": "spot",
            "pod": "web-spot-1",
            "podUid": "uid-1",
            "node": "node-1",
            "nodeUid": "uid-node-1",
        }
        relief = {
            "reason": "NodesHot",
            "message": "its replicas stand on hot nodes (node-1)",
            "hotNodes": ["node-1"],
            "moves": [
                {**move, "ended": "2026-11-21T14:01:00Z"},
                {**move, "ended": "2026-11-21T14:01:00Z", "takenBack": True},
                move,
            ],
        }
        lines = lines_of(split(relief=relief))
        at = lines.index("Relief")
        assert lines[at + 1 : at + 6] == [
            "  its replicas stand on hot nodes (node-1) (NodesHot)",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: moved",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: taken back",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: is being moved",
            "",
        ]
        assert "Relief" not in lines_of(split())

    def test_says_when_the_last_good_policy_is_in_force(self) -> None:
        """What is written now cannot be read."""
        bad = split(policyFrom={"onDemandBase": "LastGood"}, conditions=[condition("PolicyValid", "False")])
        lines = lines_of(bad)
        assert "  on-demand-base  2      last good annotation" in lines
        assert "  PolicyValid is False since 2026-11-21 14:10:00: SpotInterrupted" in lines

    def test_says_what_to_do(self) -> None:
        """The remedy of the reference beside what is not as it should be."""
        image = {**condition("PodsHealthy", "False", "1 replica"), "reason": "ImagePullFailed"}
        assert lines_of(split(conditions=[image]))[-7:-3] == [
            "  PodsHealthy is False since 2026-11-21 14:10:00: ImagePullFailed",
            "    1 replica",
            "    -> Correct the image, or the pull secret.",
            "",
        ]

    def test_wraps_long_sentences(self) -> None:
        """80 columns, indented; a long word stays whole, to be copied."""
        word = "x" * 90
        lines = lines_of(split(message=f"{'word ' * 40}{word}"))
        assert f"  {word}" in lines
        assert max(len(line) for line in lines if word not in line) <= 80

    def test_of_a_split_without_a_report_says_so(self) -> None:
        """A Split just created."""
        assert lines_of({"metadata": {"name": "web", "namespace": "shop"}}) == [
            "shop/web: nothing is reported yet; is the controller running?"
        ]

    @pytest.mark.parametrize(
        "broken", [{"conditions": None}, {"decisions": None}, {"rebalance": "x"}, {"spot": None}]
    )
    def test_survives_a_broken_status(self, broken: dict[str, Any]) -> None:
        """Anyone may have edited it."""
        assert lines_of(split(**broken))[0] == "shop/web  Moving  SpotInterrupted"


_NAMED = {"cluster": "c", "user": "u"}


class Server(BaseHTTPRequestHandler):
    """An API server with one Split, `shop/web`, and one Deployment that is not split, `shop/api`."""

    def do_GET(self) -> None:
        """Answer."""
        api = {"namespace": "bank", "name": "api", "uid": "1"}
        answers: dict[str, Any] = {
            "/version": {"gitVersion": "v1.36.3"},
            "/api/v1/namespaces": {"items": [{"metadata": {"name": name}} for name in ("bank", "shop")]},
            "/apis/apps/v1/deployments": {"items": [{"metadata": api}]},
            "/apis/apps/v1/statefulsets": {"items": []},
            "/apis/splitter.io/v1alpha1/splits": {"items": [split(), split("api", "bank")]},
            "/apis/splitter.io/v1alpha1/namespaces/shop/splits": {"items": [split()]},
            "/apis/splitter.io/v1alpha1/namespaces/default/splits": {"items": []},
            "/apis/apps/v1/namespaces/shop/deployments/web": SOURCE,
            "/apis/apps/v1/namespaces/shop/deployments/api": {"metadata": {"name": "api"}},
        }
        raw = answers.get(self.path.partition("?")[0])
        self.send_response(200 if raw else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(raw or {"reason": "NotFound", "message": "not there"}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
        """Say nothing."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve on loopback, and point KUBECONFIG there."""
    server = Listening(("127.0.0.1", 0), Server)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": _NAMED}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("cluster")
class TestWithACluster:
    """What is asked of the API server, and the exit codes."""

    @pytest.mark.parametrize("reported", [["web", "-n", "shop"], ["-n", "shop"], ["-A"]])
    def test_status_shows_a_table(self, reported: list[str]) -> None:
        """One workload, one namespace, all of them."""
        invoked = RUN.invoke(app, ["status", *reported])
        assert invoked.exit_code == 0
        assert "web  " in invoked.stdout

    def test_status_of_nothing_is_a_sentence(self) -> None:
        """A namespace without split workloads is no error."""
        invoked = RUN.invoke(app, ["status"])
        assert (invoked.exit_code, invoked.stdout) == (0, "no workload is split here\n")

    def test_status_writes_what_programs_read(self) -> None:
        """A named one alone, several as a List; the same in YAML."""
        assert json.loads(RUN.invoke(app, ["status", "web", "-n", "shop", "-o", "json"]).stdout) == SPLIT
        listed = yaml.safe_load(RUN.invoke(app, ["status", "-A", "-o", "yaml"]).stdout)
        assert [one["metadata"]["name"] for one in listed["items"]] == ["api", "web"]

    def test_status_of_what_is_not_split_is_3(self) -> None:
        """A named workload without a Split; -w does not wait for one."""
        for reported in (["status", "api", "-n", "shop"], ["status", "api", "-n", "shop", "-w"]):
            invoked = RUN.invoke(app, reported)
            assert (invoked.exit_code, invoked.stdout) == (3, "")
            assert invoked.stderr == "deployment shop/api is not split\n"

    def test_status_of_what_has_a_label(self) -> None:
        """-l chooses by the workloads' own labels, as the API server reads them."""
        invoked = RUN.invoke(app, ["status", "-A", "-l", "team=b", "-o", "json"])
        assert [one["metadata"]["name"] for one in json.loads(invoked.stdout)["items"]] == ["api"]

    def test_looks_in_the_namespace_of_the_context(self, tmp_path: Path) -> None:
        """As kubectl does, when -n does not say another."""
        file = tmp_path / "kubeconfig"
        kubeconfig = json.loads(file.read_text(encoding="utf-8"))
        kubeconfig["contexts"].append({"name": "there", "context": {**_NAMED, "namespace": "shop"}})
        file.write_text(json.dumps(kubeconfig), encoding="utf-8")
        assert RUN.invoke(app, ["status", "web", "--context", "there"]).exit_code == 0
        assert RUN.invoke(app, ["status", "web"]).exit_code == 3

    def test_looks_with_the_kubeconfig_that_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """--kubeconfig wins over KUBECONFIG; of several files there some may be missing."""
        file = str(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", "/nowhere")
        assert RUN.invoke(app, ["status", "-A"]).exit_code == 1
        assert RUN.invoke(app, ["status", "-A", "--kubeconfig", file]).exit_code == 0
        monkeypatch.setenv("KUBECONFIG", f"/nowhere{os.pathsep}{file}")
        assert RUN.invoke(app, ["status", "-A"]).exit_code == 0

    @pytest.mark.parametrize(
        ("typed", "offered"),
        [
            (["sta"], ["status\tShow the state of split workloads."]),
            (["status", "-n", "shop", ""], ["web\tMoving SpotInterrupted"]),
            (["status", "-n", "shop", "deploy/"], ["deploy/web\tMoving SpotInterrupted"]),
            (["explain", "-n", "shop", "x"], []),
            (["status", "-n", "s"], ["shop"]),
            (["status", "--context", ""], ["here"]),
            (["freeze", "-n", "nowhere", ""], []),
        ],
    )
    def test_completes_for_kubectl(self, typed: list[str], offered: list[str]) -> None:
        """Verbs, workloads with how they stand, namespaces, contexts; nothing where nothing can be had."""
        code = "from splitter.cli.completion import complete_for_kubectl as asked; asked()"
        ran = subprocess.run(
            [sys.executable, "-c", code, *typed], capture_output=True, text=True, check=True, timeout=60
        )
        assert ran.stdout.splitlines() == [*offered, ":4"]
        assert ran.stderr == ""

    def test_completes_in_a_shell(self) -> None:
        """What `splitter completion bash` prints offers workloads in a bash that has read it."""
        asked = {**os.environ, "_SPLITTER_COMPLETE": "complete_bash", "COMP_CWORD": "4"}
        asked["COMP_WORDS"] = "splitter status -n shop w"
        ran = subprocess.run(
            [sys.executable, "-m", "splitter"],
            env=asked,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert ran.stdout == "web\n"
        printed = subprocess.run(
            [sys.executable, "-m", "splitter", "completion", "bash"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        subprocess.run(["bash", "-n"], input=printed.stdout, text=True, check=True, timeout=60)
        assert "_SPLITTER_COMPLETE=complete_bash" in printed.stdout

    def test_explain_tells_the_story(self) -> None:
        """The Split and the source's own annotations."""
        invoked = RUN.invoke(app, ["explain", "deploy/web", "-n", "shop"])
        assert invoked.exit_code == 0
        assert invoked.stdout.splitlines() == lines_of(SPLIT)

    def test_explain_says_why_there_is_nothing(self) -> None:
        """Not labelled, or not there: exit code 3."""
        invoked = RUN.invoke(app, ["explain", "api", "-n", "shop"])
        assert invoked.exit_code == 3
        assert "is not split: kubectl label deployment" in invoked.stderr
        assert "is not there" in RUN.invoke(app, ["explain", "db", "-n", "shop"]).stderr

    def test_an_api_without_splits_is_named(self) -> None:
        """No CRD: what to do."""
        invoked = RUN.invoke(app, ["status", "-n", "elsewhere"])
        assert "knows no Splits; install splitter there" in str(invoked.exception)


class TestTheCommands:
    """Wrong usage."""

    @pytest.mark.parametrize(
        "reported",
        [
            ["status", "-w", "-o", "json"],
            ["status", "web", "-A"],
            ["status", "web", "-l", "app=web"],
            ["explain"],
            ["explain", "cronjob/db"],
            ["freeze"],
        ],
    )
    def test_are_used_wrongly(self, reported: list[str]) -> None:
        """Exit code 2, before anything is looked at."""
        assert RUN.invoke(app, reported).exit_code == 2
