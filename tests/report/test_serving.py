"""What is served, probes and metrics: answered at once, whatever others do with their connections."""

import select
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from gzip import decompress
from http import HTTPStatus

import pytest

from splitter.report import scrapes
from splitter.report.health import Check, Health, serve
from splitter.report.serving import Answer, Limits, Request, default_address, listen

CROWD = 400
DEADLINE_S = 10.0


def echo(request: Request) -> Answer:
    """Answer with what was asked for."""
    return Answer(HTTPStatus.OK, "text/plain", f"{request.path} {sorted(request.headers)}".encode())


def connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    """Return a connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S, source_address=(source, 0))


def said(port: int, asked: bytes) -> bytes:
    """Return the whole answer to some bytes."""
    with connected(port) as connection:
        connection.sendall(asked)
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes, nothing when it throws the connection away."""
    result = b""
    try:
        while piece := connection.recv(65536):
            result += piece
    except ConnectionResetError:
        pass
    return result


def health_port() -> int:
    """Serve probes of a process that is well."""
    health = Health()
    health.show([Check("one", "is well")])
    return serve(health, 0)


@pytest.fixture(params=[health_port, lambda: scrapes.serve(0)], ids=["probes", "metrics"])
def served(request: pytest.FixtureRequest) -> tuple[int, str]:
    """Return a port, and a path that is answered there."""
    make: Callable[[], int] = request.param
    return make(), "/healthz" if make is health_port else "/metrics"


@pytest.fixture
def crowd() -> Iterator[Callable[[int], list[socket.socket]]]:
    """Yield what opens very many connections and says nothing."""
    with ExitStack() as stack:
        yield lambda port: [stack.enter_context(connected(port)) for _ in range(CROWD)]


class TestCrowd:
    def test_idle_connections(
        self, served: tuple[int, str], crowd: Callable[[int], list[socket.socket]]
    ) -> None:
        """While somebody holds hundreds of connections others are answered, and nothing grows."""
        port, path = served
        threads = threading.active_count()
        idle = crowd(port)
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=DEADLINE_S) as answer:
                assert answer.status == HTTPStatus.OK
        assert threading.active_count() == threads
        # Those that came first had to go: they were asked for nothing, and are closed.
        assert rest(idle[0]) == b""

    def test_nobody_waits_for_them(self, crowd: Callable[[int], list[socket.socket]]) -> None:
        """Others are connected while it is busy, and answered before a silent one has had its time."""
        is_asked, is_free = threading.Event(), threading.Event()

        def answer(request: Request) -> Answer:
            is_asked.set()
            is_free.wait()
            return echo(request)

        port = listen("test", 0, answer, Limits(head_s=10 * DEADLINE_S))
        with connected(port) as first, ExitStack() as stack:
            stack.callback(is_free.set)
            first.sendall(b"GET /first HTTP/1.1\r\n\r\n")
            assert is_asked.wait(DEADLINE_S)
            crowd(port)
            kubelet = stack.enter_context(connected(port))
            kubelet.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            is_free.set()
            assert rest(kubelet).endswith(b"/healthz []")

    def test_half_a_request(
        self, served: tuple[int, str], crowd: Callable[[int], list[socket.socket]]
    ) -> None:
        """Requests that never end hold nobody up either."""
        port, path = served
        for one in crowd(port):
            with suppress(ConnectionError):  # it was let go
                one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=DEADLINE_S) as answer:
            assert answer.status == HTTPStatus.OK

    def test_answers_that_nobody_reads(self) -> None:
        """Who asks for much and reads nothing is let go, and others are answered meanwhile."""
        answers = {"/much": b"x" * 50_000_000, "/little": b"y"}
        # Longer than a busy machine lets a test wait between two lines: both are looked at before their end.
        limits = Limits(connections=2, whole_s=3.0)
        port = listen("test", 0, lambda asked: Answer(HTTPStatus.OK, body=answers[asked.path]), limits)
        with connected(port) as greedy, connected(port) as other:
            for one in (greedy, other):
                one.sendall(b"GET /much HTTP/1.1\r\n\r\n")
                assert one.recv(12) == b"HTTP/1.1 200"
            assert said(port, b"GET /little HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\ny")
            ended = select.poll()
            ended.register(other, 0)  # nothing is read, only its end is waited for
            assert ended.poll(DEADLINE_S * 1000)

    def test_others_connections_are_kept(self) -> None:
        """Of one who opens very many its own are let go, and not that of somebody who has one."""
        port = listen("test", 0, echo, Limits(connections=8, head_s=DEADLINE_S))
        with connected(port, "127.0.0.2") as patient, ExitStack() as stack:
            patient.sendall(b"GET /slow HTTP/1.1\r\n")
            idle = [stack.enter_context(connected(port)) for _ in range(50)]
            assert rest(idle[0]) == b""
            patient.sendall(b"\r\n")
            assert rest(patient).endswith(b"/slow []")


class TestTimeOut:
    @pytest.mark.parametrize("begun", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n"])
    def test_ends_what_says_nothing(self, begun: bytes) -> None:
        """A connection without a whole request is closed after a few seconds."""
        port = listen("test", 0, echo, Limits(head_s=0.2))
        with connected(port) as connection:
            connection.sendall(begun)
            assert rest(connection) == b""

    def test_is_short(self) -> None:
        """An installation waits for a few seconds only, and holds few."""
        assert Limits().head_s <= 5
        assert Limits().connections <= 64


class TestRequests:
    def test_is_answered(self) -> None:
        """Path, without the question, and headers are what the answer is made of; the connection ends."""
        port = listen("test", 0, echo)
        answer = said(port, b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: y\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"Connection: close" in head
        assert body == b"/a ['accept', 'host']"

    @pytest.mark.parametrize(
        ("asked", "status"),
        [
            (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
            (b"\r\n\r\n", b"400"),
            (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
            (b"GET /\xff HTTP/1.1\r\n\xff: \xff\r\n\r\n", b"200"),
            (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9000 + b"\r\n", b"431"),
            (b"x" * 60_000, b"431"),
        ],
    )
    def test_takes_anything(self, asked: bytes, status: bytes) -> None:
        """What is no request gets a status, whatever it is, and the next one is answered."""
        port = listen("test", 0, echo)
        assert said(port, asked)[:12] in {b"HTTP/1.1 " + status, b""}  # reset while it still sends
        assert said(port, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")

    def test_a_fault_in_the_answer(self) -> None:
        """An answer that fails is a 500 without details, and the next one is tried."""

        def fail(_: Request) -> Answer:
            raise ValueError("hunter2")

        port = listen("test", 0, fail)
        for _ in range(2):
            answer = said(port, b"GET / HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 500")
            assert b"hunter2" not in answer

    def test_who_may_ask(self) -> None:
        """Only this machine, unless another address is given."""
        own, all_of_them = listen("test", 0, echo), listen("test", 0, echo, address="0.0.0.0")  # noqa: S104
        for port, is_heard in ((own, False), (all_of_them, True)):
            assert said(port, b"GET / HTTP/1.1\r\n\r\n").endswith(b"/ []")
            # Another address of this machine, as the kubelet and Prometheus use the pod's.
            with socket.socket() as other:
                assert (other.connect_ex(("127.0.0.2", port)) == 0) is is_heard

    def test_ipv6(self) -> None:
        """An address of IPv6 is listened on as one."""
        port = listen("test", 0, echo, address="::1")
        with socket.create_connection(("::1", port), timeout=DEADLINE_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert rest(connection).endswith(b"/ []")

    def test_a_port_that_is_taken(self) -> None:
        """Whoever listens there already is heard of at once."""
        with pytest.raises(OSError, match="in use"):
            listen("test", listen("test", 0, echo), echo)


class TestAddress:
    def test_all_in_a_pod_and_loopback_elsewhere(self) -> None:
        """The kubelet and Prometheus ask from outside the pod; on a laptop only its user does."""
        assert default_address({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == "0.0.0.0"  # noqa: S104
        assert default_address({}) == "127.0.0.1"


class TestMetrics:
    def test_as_prometheus_asks(self) -> None:
        """Compressed, and in the form of OpenMetrics, for who can read that."""
        port = scrapes.serve(0)
        asks = b"Accept: application/openmetrics-text;version=1.0.0\r\nAccept-Encoding: deflate, gzip;q=1\r\n"
        head, _, body = said(port, b"GET /metrics HTTP/1.1\r\n" + asks + b"\r\n").partition(b"\r\n\r\n")
        assert b"Content-Type: application/openmetrics-text" in head
        assert b"Content-Encoding: gzip" in head
        assert decompress(body).endswith(b"# EOF\n")
