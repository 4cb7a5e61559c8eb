"""Says whom the page answers: who knows the token, from this machine, by this machine's own name.

A page of anybody's in the same browser can send requests to loopback, and a name of anybody's can be made to
point there (DNS rebinding): so `Host` has to be one of ours, and `Origin`, where it is sent. The token is the
first part of every path and not a cookie, which browsers send to all ports of a host (docs/adr/0043).
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

_BYTES = 24
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "splitter",
}
"""Sent with every answer, refusals included."""
_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is not answered."""

    status: HTTPStatus
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks each request before anything else reads it."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_BYTES), repr=False)

    @property
    def address(self) -> str:
        """Where the page is, the token included."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refused | None:
        """Return why a request is refused; None when it is not. `headers`: by names in any case."""
        if method not in _READS:
            return Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this page only shows: it takes GET and HEAD")
        hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        if headers.get("Host", "") not in hosts:
            return Refused(HTTPStatus.MISDIRECTED_REQUEST, "this page is on 127.0.0.1 and nowhere else")
        origin = headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            return Refused(HTTPStatus.FORBIDDEN, "another page may not read this one")
        if not hmac.compare_digest(f"{path}/".split("/", 2)[1].encode(), self.token.encode()):
            return Refused(
                HTTPStatus.FORBIDDEN,
                "the address is not complete: copy the whole one that `splitter dashboard` has printed",
            )
        return None
