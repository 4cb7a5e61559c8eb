"""A server in the process of the tests, which says nothing where another test listens."""

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class Listening(ThreadingHTTPServer):
    """It lets many connections wait, as a real one: by default the sixth must try again.

    A thread that answers may outlive its test. What the standard library's own writes of a client that is
    gone would be read by the next test, as something that a command has said.
    """

    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as it is declared
        """Tell of faults, of which a client that has hung up is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
