"""The one clock of the world: that of the loop, as an instant and as Kubernetes writes it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module

import pytest

from lab.chaos.launcher import ASKING

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def now() -> datetime:
    """Return the instant that it is in this loop."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def stamp(at: datetime | None = None) -> str:
    """Return an instant as the API server writes it: in whole seconds."""
    return (now() if at is None else at).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> datetime:
    """Read what `stamp` wrote."""
    return datetime.fromisoformat(text)


class _Datetime(datetime):
    """Tells the loop's time to who asks for the present."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override] # any instant will do
        """Return the loop's time, wrong by as much as the loop says."""
        wrong_by_s = getattr(asyncio.get_running_loop(), "wrong_by_s", 0.0)
        return (now() + timedelta(seconds=wrong_by_s)).astimezone(tz)


def seconds_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have those who count seconds be answered by the loop."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(time, "monotonic", loop.time)
    monkeypatch.setattr(time, "clock_gettime", lambda _: loop.time())


def instants_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have those parts of splitter that ask for the time of day be answered by the loop."""
    for module in ASKING:
        monkeypatch.setattr(import_module(module), "datetime", _Datetime)
