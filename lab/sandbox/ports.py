"""Free ports that stay ours from the moment they are chosen until a process of the sandbox listens there.

Choosing a free port, closing it and hoping is a race that parallel sandboxes lose now and then. Here the
socket stays bound (never listening, so it receives nothing) with SO_REUSEPORT, and etcd, the API server,
the controller manager and the scheduler are told to share the port (`--permit-port-sharing`,
`--socket-reuse-port`). Servers that only know SO_REUSEADDR, as those of Python and Go set it on Linux, listen
beside it too. The kernel hands a held port to nobody else.
"""

import socket

LOOPBACK = "127.0.0.1"


class HeldPorts:
    """Ports on loopback, held until `release`."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """Return one more free port of 127.0.0.1."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, 0))
        self._sockets.append(held)
        port: int = held.getsockname()[1]
        return port

    def release(self) -> None:
        """Give all ports back; safe to call twice."""
        while self._sockets:
            self._sockets.pop().close()
