"""How `splitter run` fails to start: exit code 1, one sentence that says what to do, never a traceback.

The verb runs in the tests' own process, with an environment of its own; one test starts a real process.
"""

import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
import yaml

from lab.checkout import ROOT
from lab.fixtures.controller import environment
from listening import Listening
from splitter.command import main

DEADLINE_S = 90.0
CERTIFICATE = Path(__file__).with_name("worthless.pem")
SPLITS = frozenset({"/apis/splitter.io"})
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# What a real API server answers to a token that it does not know.
UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


class Ended(NamedTuple):
    """What somebody sees of a command that has ended."""

    code: object
    stdout: str
    stderr: str

    def sentence(self) -> str:
        """Return the one sentence that it left with."""
        assert "Traceback" not in self.stderr
        assert (self.code, self.stdout) == (1, "")
        [line] = self.stderr.splitlines()
        assert line.startswith("splitter: ")
        return line


class Started:
    """`splitter run`, in this process, which is expected to end by itself."""

    def __init__(self, home: Path, written: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._written = written
        self.variables: dict[str, str] = {}  # of its environment, besides its settings

    def sentence(self, kubeconfig: Path | None, *arguments: str, **settings: str) -> str:
        """Return the one sentence that it leaves with."""
        return self._ended(kubeconfig, *arguments, **settings).sentence()

    def lines(self, kubeconfig: Path | None, **settings: str) -> list[str]:
        """Return what it has logged, and the sentence that it leaves with."""
        ended = self._ended(kubeconfig, **settings)
        assert (ended.code, ended.stdout) == (1, "")
        return ended.stderr.splitlines()

    def _ended(self, kubeconfig: Path | None, *arguments: str, **settings: str) -> Ended:
        with (
            patch.dict(
                os.environ, environment(self._home, kubeconfig, **settings) | self.variables, clear=True
            ),
            patch.object(sys, "argv", ["splitter", "run", *arguments]),
            log_of_its_own(),
        ):
            code = exit_code()
        return Ended(code, *self._written.readouterr())


@contextmanager
def log_of_its_own() -> Iterator[None]:
    """Let splitter set up the log as it likes; afterwards it is pytest's again."""
    names = (None, "kopf", "asyncio", "aiohttp", "kubernetes")
    levels = [(logger, logger.level) for logger in map(logging.getLogger, names)]
    try:
        with patch.object(logging.getLogger(), "handlers", []):
            yield
    finally:
        for logger, level in levels:
            logger.setLevel(level)


def exit_code() -> object:
    """Run the command line and return its exit code: in a thread, for which one can wait with a deadline."""
    codes: list[object] = []

    def run() -> None:
        try:
            main()
        except SystemExit as end:
            codes.append(end.code)

    running = threading.Thread(target=run, daemon=True)
    running.start()
    running.join(DEADLINE_S)
    assert not running.is_alive(), f"splitter runs after {DEADLINE_S:g} s"
    [code] = codes
    return code


@pytest.fixture
def started(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Started:
    """Return a splitter with a home of its own."""
    return Started(tmp_path, capfd)


def kubeconfig(folder: Path, server: str, *, authority: Path | None = None, **user: str) -> Path:
    """Write a kubeconfig for a server, with or without credentials and somebody who vouches for it."""
    vouched = {} if authority is None else {"certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server, **vouched}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


class Api(NamedTuple):
    """An API server that answers the questions of the start, and what it was asked."""

    url: str
    asked: list[str]


@contextmanager
def fake_api(
    may: Callable[[dict[str, str]], bool] = lambda _: True,
    paths: AbstractSet[str] = SPLITS,
    *,
    token: str | None = None,
    certificate: Path | None = None,
    unheard: int = 0,
) -> Iterator[Api]:
    """Serve the questions that are asked at the start: version, rights, and which of `paths` exist.

    With `token` whoever has another one is unauthorized; with `certificate` it speaks TLS. So many requests
    as are `unheard` come to nothing first.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer a read."""
            known = self.path in paths | {"/version"}
            ours = {"version": "v1alpha1"}
            answer = {"gitVersion": "v1.36.3", "versions": [ours], "preferredVersion": ours, "kind": "Status"}
            self._answer(200 if known else 404, answer)

        def do_POST(self) -> None:
            """Answer a SelfSubjectAccessReview."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, review["kind"]) == (REVIEWS, "SelfSubjectAccessReview")
            allowed = may(review["spec"]["resourceAttributes"])
            self._answer(201, {**review, "status": {"allowed": allowed}})

        def _answer(self, status: int, body: object) -> None:
            asked.append(self.path)
            if len(asked) <= unheard:
                self.close_connection = True
                return
            if token is not None and self.headers["Authorization"] != f"Bearer {token}":
                status, body = 401, UNAUTHORIZED
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = Listening(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield Api(f"{scheme}://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@pytest.fixture
def pod(started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Api], None]:
    """Return what makes it a pod beside an API server, with an account of its own."""

    def placed(api: Api) -> None:
        token = tmp_path / "token"
        token.write_text("a pod's")
        monkeypatch.setattr("splitter.kube.connect._SERVICE_ACCOUNT", token)
        library = "kubernetes.aio.config.incluster_config"
        monkeypatch.setattr(f"{library}.SERVICE_TOKEN_FILENAME", str(token))
        monkeypatch.setattr(f"{library}.SERVICE_CERT_FILENAME", str(CERTIFICATE))
        host, _, port = api.url.removeprefix("https://").partition(":")
        started.variables |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    return placed


class TestPorts:
    @pytest.mark.parametrize(
        ("listen_address", "in_pod", "expected"),
        [("", False, "127.0.0.1"), ("", True, "0.0.0.0"), ("127.0.0.2", True, "127.0.0.2")],  # noqa: S104
    )
    def test_are_open_to_others_only_in_a_pod(
        self, started: Started, tmp_path: Path, listen_address: str, in_pod: bool, expected: str
    ) -> None:
        """Or as a setting says."""
        if in_pod:
            started.variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
        with fake_api() as api, socket.create_server((expected, 0)) as taken:
            settings = {"HTTP_PORT": str(taken.getsockname()[1]), "LISTEN_ADDRESS": listen_address}
            [*_, sentence] = started.lines(kubeconfig(tmp_path, api.url), **settings)
        assert sentence.startswith("splitter: InvalidSettings: cannot serve (")
        assert f"in use (while attempting to bind on address ('{expected}'" in sentence


class TestProcess:
    def test_ends_with_one_sentence(self, tmp_path: Path) -> None:
        """A real process, which finds the last thing missing that it asks for, leaves as all others do."""
        with fake_api(paths=frozenset()) as api:
            ended = subprocess.run(
                [sys.executable, "-m", "splitter", "run"],
                env=environment(tmp_path, kubeconfig(tmp_path, api.url)),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        sentence = Ended(ended.returncode, ended.stdout, ended.stderr).sentence()
        assert "does not know Splits (splits.splitter.io)" in sentence


# A bug, in the place of the controller. A traceback shows its lines, so the value is in none of them.
_BUG = """
import sys
from splitter import command, operator

async def run(_):
    raise ValueError(f"invalid literal: {''.join(('hun', 'ter2'))!r}")

operator.run = run
sys.argv = ["splitter", "run"]
command.main()
"""


class TestBug:
    @pytest.mark.parametrize("form", ["text", "json"])
    def test_is_in_the_log_without_values(self, tmp_path: Path, form: str) -> None:
        """A process that ends by a bug says where, in its log, and repeats nothing that it had read."""
        ended = subprocess.run(
            [sys.executable, "-c", _BUG],
            env=environment(tmp_path, None, LOG_FORMAT=form),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert ended.returncode == 1
        assert "splitter ends, this is a bug of splitter's" in ended.stderr
        reported = json.loads(ended.stderr)["exc_info"] if form == "json" else ended.stderr
        assert "ValueError: invalid literal: …" in reported
        assert "hunter2" not in ended.stderr


class TestSettings:
    """Wrong settings are found before anything is asked of anybody (more: tests/settings)."""

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
        sentence = started.sentence(None, WORKRS="4", TUNING_STEP_FRACTION="2")
        assert "SPLITTER_WORKRS is no setting; did you mean SPLITTER_WORKERS?" in sentence
        assert 'SPLITTER_TUNING_STEP_FRACTION is "2"; it must be' in sentence


class TestCredentials:
    """Without usable credentials nothing is sent anywhere."""

    def test_none_at_all(self, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Outside a pod and without a kubeconfig it says what to set."""
        monkeypatch.setattr("splitter.kube.connect._SERVICE_ACCOUNT", tmp_path / "token")
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

    def test_wrong_token(self, started: Started, tmp_path: Path) -> None:
        """A token that the API server does not know: whose it is, and that it may have expired."""
        with fake_api(token="known") as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url, token="nonsense"))
        assert "Forbidden" in sentence
        assert f"the API server {api.url} refuses these credentials" in sentence
        assert "401" in sentence
        assert "expired" in sentence


class TestReachability:
    def test_nobody_there(self, started: Started, tmp_path: Path) -> None:
        """An address where nobody answers is named, with what to check."""
        sentence = started.sentence(kubeconfig(tmp_path, "https://127.0.0.1:1", token="x"))
        assert "ApiUnreachable" in sentence
        assert "the API server https://127.0.0.1:1 does not answer" in sentence
        assert "check its address" in sentence

    @pytest.mark.parametrize("unheard", [0, 9])
    def test_from_a_pod(self, started: Started, pod: Callable[[Api], None], unheard: int) -> None:
        """A pod that starts before anybody answers asks on, and goes on as if nothing had been."""
        with fake_api(paths=frozenset(), certificate=CERTIFICATE, unheard=unheard) as api:
            pod(api)
            lines = started.lines(None)
        assert "does not know Splits" in lines[-1]
        assert len(lines) == (2 if unheard else 1)
        if unheard:
            assert f"the API server {api.url} does not answer" in lines[0]
            assert "it is asked again for 20 s" in lines[0]
        assert api.asked.count("/version") == unheard + 1

    def test_for_ever_from_a_pod(
        self, started: Started, pod: Callable[[Api], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After that it ends with the sentence that a person reads at once."""
        monkeypatch.setattr("splitter.operator._PATIENCE_S", 5.0)  # one answer at least, however busy it is
        with fake_api(certificate=CERTIFICATE, unheard=10**6) as api:
            pod(api)
            waits, sentence = started.lines(None)
        assert "it is asked again for 5 s" in waits
        assert f"the API server {api.url} does not answer" in sentence

    def test_unknown_certificate(self, started: Started, tmp_path: Path) -> None:
        """A server whose certificate nobody vouches for is not spoken to; the reason is in the sentence."""
        with fake_api(certificate=CERTIFICATE) as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url, token="x"))
        assert "ApiUnreachable" in sentence
        assert "certificate" in sentence.lower()
        assert not api.asked

    def test_known_certificate(self, started: Started, tmp_path: Path) -> None:
        """The same server is spoken to when the kubeconfig vouches for it: nothing else was wrong with it."""
        with fake_api(paths=frozenset(), certificate=CERTIFICATE) as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url, authority=CERTIFICATE, token="x"))
        assert "does not know Splits" in sentence


class TestRights:
    def test_account_without_rights(self, started: Started, tmp_path: Path) -> None:
        """An account that nobody gave anything: every missing right, and the file that gives them."""
        with fake_api(lambda _: False, token="poor") as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url, token="poor"))
        assert "Forbidden" in sentence
        for right in ("list nodes", "patch deployments.apps", "create replicasets.apps", "delete pods"):
            assert right in sentence
        assert "patch splits/status.splitter.io" in sentence
        assert "Apply manifests/rbac.yaml" in sentence

    def test_one_right_missing(self, started: Started, tmp_path: Path) -> None:
        """One right that is missing is the one that is named."""

        def may(asked: dict[str, str]) -> bool:
            return (asked["verb"], asked["resource"]) != ("delete", "replicasets")

        with fake_api(may) as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url))
        assert "these credentials may not delete replicasets.apps. Apply manifests/rbac.yaml" in sentence

    def test_missing_in_every_namespace(self, started: Started, tmp_path: Path) -> None:
        """Told to watch some namespaces only, it asks for rights there, and names what is missing in each."""
        asked_in: set[str] = set()

        def may(asked: dict[str, str]) -> bool:
            if asked["resource"] != "nodes":
                asked_in.add(asked["namespace"])
            return (asked["verb"], asked["resource"]) != ("patch", "pods")

        with fake_api(may) as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url), WATCH_NAMESPACES="shop,cart")
        assert "may not patch pods in namespace cart; patch pods in namespace shop." in sentence
        assert asked_in == {"shop", "cart"}

    def test_crd_missing(self, started: Started, tmp_path: Path) -> None:
        """A cluster that does not know Splits: which file makes it know them."""
        with fake_api(paths=frozenset()) as api:
            sentence = started.sentence(kubeconfig(tmp_path, api.url))
        assert "does not know Splits (splits.splitter.io)" in sentence
        assert "apply manifests/crd.yaml first" in sentence
