"""Requests for the Lease that time out: that is no reason to ask an overloaded API server for everything."""

import pytest

from kube.raw import Raw
from splitter.kube.client import ApiError
from splitter.kube.lease import Election
from splitter.kube.paths import ResourcePath

pytestmark = pytest.mark.slow


class Server:
    """A Lease in memory; every so-manieth request times out."""

    def __init__(self, clock: list[float], every: int) -> None:
        self._clock, self._every, self.asked = clock, every, 0
        self.lost_from_s, self.lost_until_s, self.answers_after_s = 0.0, 0.0, 0.0
        self._lease: Raw | None = None

    async def send(
        self, method: str, _: ResourcePath, body: Raw | None = None, *, timeout_s: float | None = None
    ) -> Raw:
        """Answer, or let the time pass."""
        self.asked += 1
        lost = self.lost_from_s <= self._clock[0] < self.lost_until_s
        if lost or (self._every and self.asked % self._every == 0):
            self._clock[0] += timeout_s or 0.0
            raise ApiError(0, "NoAnswer", "timed out")
        self._clock[0] += self.answers_after_s
        if method == "GET" and self._lease is None:
            raise ApiError(404, "NotFound", "no Lease")
        if body is not None:
            self._lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.asked)}}
        return self._lease or {}


async def lived(server: Server, clock: list[float], for_s: float) -> tuple[Election, list[bool]]:
    """Return an election after so long, and each time that it said that the API server is back."""
    back: list[bool] = []
    election = Election(
        server, "ns", "me", 12, clock=lambda: clock[0], dice=lambda low, _: low, reconnected=back.append
    )
    while clock[0] < for_s:
        wait_s = await election.step()  # which lets time pass itself
        clock[0] += wait_s
    return election, back


async def test_one_time_out_lists_nothing_anew() -> None:
    """While it leads all the time, nobody else has written: the watches are only opened again."""
    clock = [0.0]
    election, back = await lived(Server(clock, every=6), clock, 600.0)
    assert election.leading
    assert len(back) > 20
    assert not any(back)


async def test_away_for_long_lists_anew() -> None:
    """It has not led meanwhile, and somebody else may have: everything is listed, once."""
    clock = [0.0]
    server = Server(clock, every=0)
    server.lost_until_s = 60.0
    _, back = await lived(server, clock, 600.0)
    assert back == [True]


@pytest.mark.parametrize("lasting_s", range(1, 14))
async def test_who_has_lost_the_lead_was_away_for_long(
    lasting_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    """However an outage lies between the requests: who leads again has listed everything before."""
    for sixth in range(12):
        clock = [0.0]
        server = Server(clock, every=0)
        server.lost_from_s, server.answers_after_s = 20.0 + sixth / 6, 0.7
        server.lost_until_s = server.lost_from_s + lasting_s
        caplog.clear()
        election, back = await lived(server, clock, 60.0)
        assert election.leading
        assert any(back) or "not leading any more" not in caplog.text
