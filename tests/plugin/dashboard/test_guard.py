"""The page answers who knows the token, from this machine, by this machine's own name."""

import pytest

from splitter.plugin.dashboard.guard import HEADERS, Guard

GUARD = Guard(4321, "a-token")
OWN = {"Host": "127.0.0.1:4321"}


class TestGuard:
    """Every request is looked at before anything else is done."""

    @pytest.mark.parametrize(
        "headers",
        [
            OWN,
            {"Host": "localhost:4321"},
            OWN | {"Origin": "http://127.0.0.1:4321"},
            OWN | {"Origin": "http://localhost:4321"},
        ],
    )
    def test_lets_its_own_page_in(self, headers: dict[str, str]) -> None:
        """Loopback by either name, with its own origin or with none."""
        assert GUARD.refusal("GET", "/a-token/", headers) is None
        assert GUARD.refusal("HEAD", "/a-token/static/page.js", headers) is None

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:4321", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:4321", ""],
    )
    def test_refuses_another_host(self, host: str) -> None:
        """A name of anybody's that was made to point to loopback is no name of ours (DNS rebinding)."""
        refused = GUARD.refusal("GET", "/a-token/", {"Host": host})
        assert refused is not None
        assert refused.status == 421

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "https://127.0.0.1:4321", "http://127.0.0.1:9", "null", ""]
    )
    def test_refuses_another_origin(self, origin: str) -> None:
        """A page of anybody's in the same browser may not read this one, whatever it knows."""
        refused = GUARD.refusal("GET", "/a-token/", OWN | {"Origin": origin})
        assert refused is not None
        assert refused.status == 403

    @pytest.mark.parametrize(
        "path",
        ["/", "/a-toke/", "/a-tokenn/", "/A-TOKEN/", "//a-token/", "/static/page.js", "/ä-token/", "", "*"],
    )
    def test_refuses_without_the_token(self, path: str) -> None:
        """The first part of the path is the token; the refusal does not say what it is."""
        refused = GUARD.refusal("GET", path, OWN)
        assert refused is not None
        assert refused.status == 403
        assert "a-token" not in refused.message

    @pytest.mark.parametrize(
        "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"]
    )
    def test_only_shows(self, method: str) -> None:
        """There is nothing that changes anything."""
        refused = GUARD.refusal(method, "/a-token/", OWN)
        assert refused is not None
        assert refused.status == 405

    def test_has_a_token_of_its_own(self) -> None:
        """Each run has another one, of 192 bits, which a log that shows the guard does not show."""
        one, other = Guard(1), Guard(1)
        assert one.token != other.token
        assert len(one.token) >= 32
        assert one.token not in repr(one)
        assert one.address == f"http://127.0.0.1:1/{one.token}/"


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    """Everything is from the page itself; no script and no style may stand in a document."""
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
