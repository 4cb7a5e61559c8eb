"""The division is exact, monotone, stable, and never puts all on spot unasked."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.division import base_replicas, caps_conflict
from splitter.core.labels_annotations.policy import Policy

BASES: st.SearchStrategy[int | Literal["majority"]] = st.one_of(st.integers(0, 40), st.just("majority"))
CAPS = st.none() | st.integers(0, 60)
POLICIES = st.builds(
    Policy,
    on_demand_base=BASES,
    spot_percent=st.integers(0, 100),
    on_demand_max=CAPS,
    spot_max=CAPS,
)
COUNTS = st.integers(0, 200)


class TestTheDivision:
    """What a person can check by hand."""

    @pytest.mark.parametrize(
        ("n", "policy", "on_demand"),
        [
            (0, Policy(on_demand_base="majority"), 0),
            (1, Policy(), 0),
            (1, Policy(spot_percent=80), 0),
            (1, Policy(spot_percent=50), 1),
            (1, Policy(on_demand_base="majority"), 1),
            (2, Policy(spot_percent=99), 1),
            (3, Policy(on_demand_base="majority"), 2),
            (4, Policy(on_demand_base="majority"), 3),
            (5, Policy(spot_percent=50), 3),
            (10, Policy(spot_percent=80), 2),
            (20, Policy(spot_percent=80), 4),
            (20, Policy(on_demand_base=2, spot_percent=80), 6),
            (40, Policy(spot_percent=80), 8),
            (10, Policy(spot_percent=0), 10),
            (3, Policy(on_demand_base=10), 3),
            (10, Policy(spot_max=4), 6),
            (10, Policy(on_demand_base=8, on_demand_max=5), 5),
            (10, Policy(on_demand_max=3, spot_max=5), 3),
        ],
    )
    def test_gives_the_counts_of_the_table(self, n: int, policy: Policy, on_demand: int) -> None:
        """Base first, then Webster above it, ties to on-demand, then the caps; spot_max yields."""
        assert base_replicas(n, policy) == on_demand

    @given(n=COUNTS, policy=POLICIES)
    def test_is_monotone(self, n: int, policy: Policy) -> None:
        """One more replica never lowers a twin: exactly one of the two grows by one."""
        on_demand, more_on_demand = base_replicas(n, policy), base_replicas(n + 1, policy)
        assert on_demand <= more_on_demand <= on_demand + 1

    @given(n=COUNTS, policy=POLICIES)
    def test_is_exact(self, n: int, policy: Policy) -> None:
        """Both halves are whole numbers from 0 to N that sum to N."""
        assert 0 <= base_replicas(n, policy) <= n

    @given(n=st.integers(2, 200), base=BASES, percent=st.integers(0, 99), spot_max=CAPS)
    def test_never_puts_all_on_spot_unasked(
        self,
        n: int,
        base: int | Literal["majority"],
        percent: int,
        spot_max: int | None,
    ) -> None:
        """Less than 100 % spot and two or more replicas: at least one on on-demand."""
        policy = Policy(on_demand_base=base, spot_percent=percent, spot_max=spot_max)
        assert base_replicas(n, policy) >= 1

    @given(n=COUNTS, policy=POLICIES)
    def test_keeps_both_caps_unless_they_conflict(self, n: int, policy: Policy) -> None:
        """on_demand_max holds always; spot_max holds whenever both can."""
        on_demand = base_replicas(n, policy)
        if policy.on_demand_max is not None:
            assert on_demand <= policy.on_demand_max
        if policy.spot_max is not None and not caps_conflict(n, policy):
            assert n - on_demand <= policy.spot_max

    @given(n=COUNTS, percent=st.integers(0, 100))
    def test_is_within_half_a_replica_of_the_percentage(self, n: int, percent: int) -> None:
        """Webster: nobody is off by more than half a replica, but for the one that stays behind."""
        exact = n * (100 - percent) / 100
        on_demand = base_replicas(n, Policy(spot_percent=percent))
        assert abs(on_demand - exact) <= 0.5 or (on_demand == 1 and exact < 1)


class TestCapsConflict:
    """Caps that leave a replica no place."""

    def test_needs_both_caps(self) -> None:
        """One cap alone never conflicts."""
        assert not caps_conflict(100, Policy(on_demand_max=0))
        assert not caps_conflict(100, Policy(spot_max=0))

    def test_holds_from_one_replica_too_many(self) -> None:
        """Nine replicas fit into 3 + 6, ten do not."""
        assert not caps_conflict(9, Policy(on_demand_max=3, spot_max=6))
        assert caps_conflict(10, Policy(on_demand_max=3, spot_max=6))
