"""Requests for the Lease that time out: that is no reason to ask an overloaded API server for everything."""

import asyncio

import pytest

from leaping import passing
from splitter.kube.lease import Election
from world.api import Api

pytestmark = pytest.mark.slow


async def lived(
    api: Api, for_s: float, *, cut_off: tuple[float, float] = (0.0, 0.0)
) -> tuple[Election, list[bool]]:
    """Return an election after so long, and each time that it said that the API server is back.

    Between these two instants nothing is answered.
    """
    back: list[bool] = []
    election = Election(api, "ns", "me", 12, dice=lambda low, _: low, reconnected=back.append)
    loop = asyncio.get_running_loop()
    begins_s, ends_s = (loop.time() + at_s for at_s in cut_off)
    loop.call_at(begins_s, setattr, api, "cut_off", begins_s < ends_s)
    loop.call_at(ends_s, setattr, api, "cut_off", False)
    ends_s = loop.time() + for_s
    while loop.time() < ends_s:
        await passing(await election.step())
    return election, back


async def test_one_time_out_lists_nothing_anew() -> None:
    """While it leads all the time, nobody else has written: the watches are only opened again."""
    api = Api()
    api.lease_fails_every = 6
    election, back = await lived(api, 600.0)
    assert election.leading
    assert len(back) > 20
    assert not any(back)


async def test_away_for_long_lists_anew() -> None:
    """It has not led meanwhile, and somebody else may have: everything is listed, once."""
    _, back = await lived(Api(), 600.0, cut_off=(0.0, 60.0))
    assert back == [True]


@pytest.mark.parametrize("lasting_s", range(1, 14))
async def test_who_has_lost_the_lead_was_away_for_long(
    lasting_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    """However an outage lies between the requests: who leads again has listed everything before."""
    for sixth in range(12):
        api = Api()
        api.latency_s = lambda: 0.7
        begins_s = 20.0 + sixth / 6
        caplog.clear()
        election, back = await lived(api, 60.0, cut_off=(begins_s, begins_s + lasting_s))
        assert election.leading
        assert any(back) or "not leading any more" not in caplog.text
