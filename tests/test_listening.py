"""The server of other tests keeps quiet when its client does not wait for the answer."""

import socket
import struct
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread

import pytest

from listening import Listening

AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: hang up without a farewell
DEADLINE_S = 30.0


@pytest.mark.parametrize(("fault", "said"), [(None, ""), (ValueError("broken"), "ValueError: broken")])
def test_tells_of_faults_and_not_of_clients(
    fault: Exception | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client that hangs up is nobody's fault; what goes wrong in a handler is written."""
    gone, ended = Event(), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer when nobody listens any more."""
            gone.wait(DEADLINE_S)
            if fault is not None:
                raise fault
            self.rfile.read(1)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    class Server(Listening):
        def shutdown_request(self, request: object) -> None:
            """Note the end of an answer, which comes after what is told of it."""
            super().shutdown_request(request)  # type: ignore[arg-type] # a socket, as in the base class
            ended.set()

    with Server(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        with socket.create_connection(("127.0.0.1", server.server_port)) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        gone.set()
        assert ended.wait(DEADLINE_S)
        server.shutdown()
        serving.join()
    written = capsys.readouterr().err
    assert said in written
    assert bool(written) is bool(said)
