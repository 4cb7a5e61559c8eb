"""How `splitter run` fails to start: exit code 1, one sentence that says what to do, never a traceback."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from e2e.support.controller import ROOT, environment
from splitter.sandbox import Sandbox
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

DEADLINE_S = 90.0
IN_A_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class Started:
    """`splitter run`, as a process that is expected to end by itself."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def sentence(self, kubeconfig: Path | None, *arguments: str, **settings: str) -> str:
        """Return the one sentence that it leaves with."""
        ended = subprocess.run(
            [sys.executable, "-m", "splitter", "run", *arguments],
            env=environment(self._home, kubeconfig, **settings),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert "Traceback" not in ended.stderr
        assert (ended.returncode, ended.stdout) == (1, "")
        [line] = ended.stderr.splitlines()
        assert line.startswith("splitter: ")
        return line


@pytest.fixture
def started(tmp_path: Path) -> Started:
    """Return a splitter with a home of its own."""
    return Started(tmp_path)


def kubeconfig(folder: Path, server: str, **user: str) -> Path:
    """Write a kubeconfig for a server, with or without credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


class TestSettings:
    """Wrong settings are found before anything is asked of anybody (more: tests/test_settings.py)."""

    def test_broken_file(self, started: Started, tmp_path: Path) -> None:
        """A settings file that is wrong is named, with what to write instead, all at once."""
        file = tmp_path / "settings.yaml"
        file.write_text("soak_s: 5m\nworkes: 4\n")
        sentence = started.sentence(None, "--settings", str(file))
        assert "InvalidSettings" in sentence
        assert f'soak_s in {file} is "5m"' in sentence
        assert 'Write "300".' in sentence
        assert f"workes in {file} is no setting; did you mean workers?" in sentence

    def test_unreadable_file(self, started: Started, tmp_path: Path) -> None:
        """A settings file that is no YAML is named, with where it breaks."""
        file = tmp_path / "settings.yaml"
        file.write_text("workers: [1\n")
        sentence = started.sentence(None, "--settings", str(file))
        assert f"the settings {file} cannot be read" in sentence
        assert "line 2" in sentence

    def test_unknown_variable(self, started: Started) -> None:
        """A variable with a slip of the pen is no setting, and the nearest one is named."""
        sentence = started.sentence(None, WORKRS="4", STEP_FRACTION="2")
        assert "SPLITTER_WORKRS is no setting; did you mean SPLITTER_WORKERS?" in sentence
        assert 'SPLITTER_STEP_FRACTION is "2"; it must be' in sentence


class TestCredentials:
    """Without usable credentials nothing is sent anywhere."""

    @pytest.mark.skipif(IN_A_POD.exists(), reason="a pod has credentials")
    def test_none_at_all(self, started: Started) -> None:
        """Outside a pod and without a kubeconfig it says what to set."""
        sentence = started.sentence(None)
        assert "there are no credentials" in sentence
        assert "Set KUBECONFIG" in sentence

    def test_kubeconfig_missing(self, started: Started, tmp_path: Path) -> None:
        """A kubeconfig that is not there is named, and said not to be there."""
        sentence = started.sentence(tmp_path / "nowhere")
        assert str(tmp_path / "nowhere") in sentence
        assert "No such file" in sentence

    def test_kubeconfig_empty(self, started: Started, tmp_path: Path) -> None:
        """A kubeconfig that holds nothing is named."""
        empty = tmp_path / "empty"
        empty.touch()
        assert str(empty) in started.sentence(empty)

    def test_wrong_token(self, started: Started, sandbox: Sandbox, tmp_path: Path) -> None:
        """A token that the API server does not know: whose it is, and that it may have expired."""
        content = yaml.safe_load(sandbox.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": "nonsense"}
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        sentence = started.sentence(path)
        assert "Forbidden" in sentence
        assert f"the API server {sandbox.url} refuses these credentials" in sentence
        assert "401" in sentence
        assert "expired" in sentence


class TestReachability:
    def test_nobody_there(self, started: Started, tmp_path: Path) -> None:
        """An address where nobody answers is named, with what to check."""
        sentence = started.sentence(kubeconfig(tmp_path, "https://127.0.0.1:1", token="x"))
        assert "ApiUnreachable" in sentence
        assert "the API server https://127.0.0.1:1 does not answer" in sentence
        assert "check its address" in sentence

    def test_unknown_certificate(self, started: Started, sandbox: Sandbox, tmp_path: Path) -> None:
        """A server whose certificate nobody vouches for is not spoken to; the reason is in the sentence."""
        sentence = started.sentence(kubeconfig(tmp_path, sandbox.url, token="x"))
        assert "ApiUnreachable" in sentence
        assert "certificate" in sentence.lower()


class Server(ThreadingHTTPServer):
    """A server that lets many connections wait, as a real one: by default the sixth must try again."""

    request_queue_size = 128


@contextmanager
def fake_api(may: Callable[[dict[str, str]], bool], paths: AbstractSet[str]) -> Iterator[str]:
    """Serve the questions that are asked at the start: version, rights, and which of `paths` exist."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer a read."""
            known = self.path in paths | {"/version"}
            self._answer(200 if known else 404, {"gitVersion": "v1.36.3", "kind": "Status"})

        def do_POST(self) -> None:
            """Answer a SelfSubjectAccessReview."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            allowed = may(review["spec"]["resourceAttributes"])
            self._answer(201, {**review, "status": {"allowed": allowed}})

        def _answer(self, status: int, body: object) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = Server(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


class TestRights:
    def test_account_without_rights(self, started: Started, sandbox: Sandbox) -> None:
        """An account that nobody gave anything: every missing right, and the file that gives them."""
        sandbox.kubectl("create", "namespace", "poor")
        sandbox.kubectl("create", "serviceaccount", "nobody", "--namespace", "poor")
        path = "/api/v1/namespaces/poor/serviceaccounts/nobody"
        wait_until(lambda: sandbox.api.find(path), what="the service account", deadline_s=DEADLINE_S)
        sentence = started.sentence(sandbox.service_account_kubeconfig("poor", "nobody"))
        assert "Forbidden" in sentence
        for right in ("list nodes", "patch deployments.apps", "create replicasets.apps", "delete pods"):
            assert right in sentence
        assert "patch splits/status.splitter.io" in sentence
        assert "Apply manifests/rbac.yaml" in sentence

    def test_one_right_missing(self, started: Started, tmp_path: Path) -> None:
        """One right that is missing is the one that is named."""

        def may(asked: dict[str, str]) -> bool:
            return (asked["verb"], asked["resource"]) != ("delete", "replicasets")

        with fake_api(may, {"/apis/splitter.io/v1alpha1"}) as address:
            sentence = started.sentence(kubeconfig(tmp_path, address))
        assert "these credentials may not delete replicasets.apps. Apply manifests/rbac.yaml" in sentence

    def test_missing_in_one_namespace(self, started: Started, tmp_path: Path) -> None:
        """Told to watch some namespaces only, it asks for rights there, and names where they are missing."""
        asked_in: set[str] = set()

        def may(asked: dict[str, str]) -> bool:
            if asked["resource"] != "nodes":
                asked_in.add(asked["namespace"])
            return (asked["namespace"], asked["verb"], asked["resource"]) != ("cart", "patch", "pods")

        with fake_api(may, {"/apis/splitter.io/v1alpha1"}) as address:
            sentence = started.sentence(kubeconfig(tmp_path, address), WATCH_NAMESPACES="shop,cart")
        assert "may not patch pods in namespace cart." in sentence
        assert asked_in == {"shop", "cart"}

    def test_crd_missing(self, started: Started, tmp_path: Path) -> None:
        """A cluster that does not know Splits: which file makes it know them."""
        with fake_api(lambda _: True, set()) as address:
            sentence = started.sentence(kubeconfig(tmp_path, address))
        assert "does not know Splits (splits.splitter.io)" in sentence
        assert "apply manifests/crd.yaml first" in sentence
