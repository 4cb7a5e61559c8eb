"""A port is ours from the moment it is chosen, and whoever it was chosen for can listen on it."""

import socket
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lab.sandbox.ports import LOOPBACK, HeldPorts


@pytest.mark.parametrize("where", [LOOPBACK, ""], ids=["loopback", "everywhere"])
def test_a_server_listens_on_a_port_that_is_held(where: str) -> None:
    """Twice, as a process does that is started again; what is sent arrives at the server."""
    ports = HeldPorts()
    port = ports.take()
    try:
        for _ in range(2):
            with HTTPServer((where, port), BaseHTTPRequestHandler) as server:
                with socket.create_connection((LOOPBACK, port)):
                    arrived, _ = server.get_request()
                arrived.close()
    finally:
        ports.release()


def test_nobody_else_gets_it() -> None:
    """Whoever asks for any port gets another one; whoever insists on this one is refused."""
    ports = HeldPorts()
    port = ports.take()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, port))
        assert len({port, *(ports.take() for _ in range(50))}) == 51
    finally:
        ports.release()
