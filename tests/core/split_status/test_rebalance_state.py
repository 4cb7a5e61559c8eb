"""What the rebalancing remembers, on paper: anybody may edit a Split, and a write may fail."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from splitter.core.split_status import RebalanceState
from splitter.core.split_status.backoff import Backoff
from splitter.core.split_status.rebalance_state import Restart

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


class TestOnPaper:
    def test_writes_only_what_differs(self) -> None:
        """The default state is an empty object."""
        assert RebalanceState().to_json() == {}
        assert RebalanceState(lost=True, last_loss=NOW, charged=("a",)).to_json() == {
            "lastLoss": "2026-01-05T10:00:00Z",
            "lost": True,
            "chargedNodes": ["a"],
        }

    @pytest.mark.parametrize(
        "status",
        [None, 7, "lost", [], {}, {"lost": "yes"}, {"window": -1}, {"window": True}, {"asked": 2.5}]
        + [{"soakSeconds": value} for value in ("600", True, -1, 0, float("nan"), float("inf"), 10**400)]
        + [
            {"lastLoss": value}
            for value in (7, "", "yesterday", "2026-01-05T10:00:00", "0001-01-01T00:00+23:59")
        ]
        + [{"chargedNodes": value} for value in ("abc", 7, [1, None])],
    )
    def test_reads_nonsense_as_the_default(self, status: object) -> None:
        """Missing or malformed fields fall back one by one; nothing raises."""
        assert RebalanceState.from_json(status) == RebalanceState()

    def test_keeps_the_good_fields_beside_bad_ones(self) -> None:
        """One slip of the hand does not forget the rest."""
        state = RebalanceState.from_json(
            {"lost": True, "window": "many", "lastLoss": "2026-01-05T12:00:00+02:00"}
        )
        assert state == RebalanceState(lost=True, last_loss=NOW)

    @pytest.mark.parametrize(
        ("raw", "read"),
        [
            ([3, "2026-01-05T10:00:00Z", True], Restart(3, NOW, planned=True)),
            ([3, "2026-01-05T10:00:00Z", 1], Restart(3, NOW)),
            ([0, "2026-01-05T10:00:00Z", False], Restart(0, NOW)),
            ([3, "2026-01-05T10:00:00Z"], None),
            ([-1, "2026-01-05T10:00:00Z", False], None),
            (["3", "2026-01-05T10:00:00Z", False], None),
            ([3, "yesterday", False], None),
            ({"ordinal": 3}, None),
            ("abc", None),
        ],
    )
    def test_reads_restarts_one_by_one(self, raw: object, read: Restart | None) -> None:
        """One that makes no sense is left out, and the next one counts."""
        good = [7, "2026-01-05T10:00:00Z", False]
        known = RebalanceState.from_json({"restarts": [raw, good]}).restarts
        assert known == (*([read] if read is not None else []), Restart(7, NOW))
        assert RebalanceState.from_json(RebalanceState(restarts=known).to_json()).restarts == known


class TestSoak:
    @pytest.mark.parametrize(
        ("kept", "asked", "soak"), [(None, 600.0, 600.0), (60.0, 600.0, 600.0), (900.0, 600.0, 900.0)]
    )
    def test_is_never_shorter_than_asked_for(self, kept: float | None, asked: float, soak: float) -> None:
        """What is backed off counts while it is longer."""
        assert RebalanceState(soak_s=kept).soak(asked) == soak


class TestAClockSetBack:
    def test_every_instant_of_the_future_is_now(self) -> None:
        """Those of the past stay, those of restarts too."""
        names = [one.name for one in fields(RebalanceState) if "datetime" in str(one.type)]
        assert len(names) >= 7
        state = RebalanceState(
            restarts=(Restart(1, LATER), Restart(2, NOW)), failed_placeholders=Backoff(3, LATER)
        )
        ahead = replace(state, **dict.fromkeys(names, LATER)).not_after(NOW)  # type: ignore[arg-type]
        assert {getattr(ahead, name) for name in names} == {NOW}
        assert ahead.restarts == (Restart(1, NOW), Restart(2, NOW))
        assert ahead.failed_placeholders == Backoff(3, NOW)
        past = replace(state, **dict.fromkeys(names, NOW)).not_after(LATER)  # type: ignore[arg-type]
        assert {getattr(past, name) for name in names} == {NOW}
        assert RebalanceState().not_after(NOW) == RebalanceState()


class TestUnwritten:
    def test_what_was_seen_stays_and_what_was_to_be_done_does_not(self) -> None:
        """A loss is a loss; a move that was not written was none, and an end may have happened."""
        before = RebalanceState(last_step=NOW, moved=1, moved_uid="a", failed_moves=Backoff(2), decided=4)
        after = replace(
            before,
            lost=True,
            last_loss=LATER,
            restarts=(Restart(5, LATER),),
            last_step=LATER,
            moved=5,
            moved_uid="b",
            moved_up=True,
            failed_moves=Backoff(3),
            failed_covers=Backoff(1),
            unplaced=True,
            yielded=(0,),
            failed_placeholders=Backoff(1, LATER),
            failed_placeholders_up=True,
            decided=6,
        )
        kept = after.unwritten(before)
        assert kept == replace(before, lost=True, last_loss=LATER, restarts=(Restart(5, LATER),), decided=6)

    @pytest.mark.parametrize(
        ("before", "after", "decided"),
        [(4, 6, 6), (6, 4, 6), (4, None, 4), (None, 6, None), (None, None, None)],
    )
    def test_the_larger_count_is_remembered(
        self, before: int | None, after: int | None, decided: int | None
    ) -> None:
        """Less than there is would look like a raise that nobody remembers; what nobody knew stays so."""
        unwritten = RebalanceState(decided=after).unwritten(RebalanceState(decided=before))
        assert unwritten.decided == decided
