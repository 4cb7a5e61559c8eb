"""What a Split says of relief: what is hot, what is missing, why nothing moves."""

from dataclasses import replace

import pytest

from core.twins.relief_moment import MEASURED, moment
from splitter.core.hot_nodes import HotNodes
from splitter.core.reasons import Reason, State
from splitter.core.split_status import ReliefStatus


def test_what_is_said_fits_into_the_split() -> None:
    """Ten hot nodes with the longest names, and a long reason: the status can be written all the same."""
    names = tuple(f"ip-{number}-{'x' * 240}.internal" for number in range(10))
    relief = moment(hot=replace(MEASURED, hot=names, left="y" * 2000)).relief
    assert len(relief.message) == 1024
    assert ReliefStatus.from_json(relief.to_json()) == relief


class TestSaid:
    @pytest.mark.parametrize(
        ("hot", "reason", "message"),
        [
            (
                HotNodes(paused="this cluster does not serve metrics.k8s.io; install metrics-server"),
                Reason.RELIEF_PAUSED,
                "relief pauses: this cluster does not serve metrics.k8s.io; install metrics-server",
            ),
            (
                None,
                Reason.RELIEF_PAUSED,
                "relief pauses: the settings give no source of real use (relief_source)",
            ),
            (HotNodes(), Reason.NODES_MEASURED, "real use is being measured; nothing is known yet"),
            (
                replace(MEASURED, left="hot-1: no replica on it may move now"),
                Reason.NODES_MEASURED,
                "its replicas stand on hot nodes (hot-1); hot-1: no replica on it may move now",
            ),
            (
                replace(MEASURED, left="hot-1: no", unhinted="the scheduler gets no hint: no right"),
                Reason.NODES_MEASURED,
                "its replicas stand on hot nodes (hot-1); hot-1: no; the scheduler gets no hint: no right",
            ),
            (
                replace(MEASURED, hot=()),
                Reason.NODES_MEASURED,
                "none of its replicas stands on a hot node (cpu=85)",
            ),
            (
                replace(MEASURED, hot=(), badly_placed="2 of its replicas prefer spot: no room"),
                Reason.NODES_MEASURED,
                "none of its replicas stands on a hot node (cpu=85); 2 of its replicas prefer spot: no room",
            ),
            (
                replace(MEASURED, left="hot-1: no", badly_placed="2 of its replicas prefer spot: no room"),
                Reason.NODES_MEASURED,
                "its replicas stand on hot nodes (hot-1); hot-1: no; 2 of its replicas prefer spot: no room",
            ),
        ],
    )
    def test_how_it_stands(self, hot: HotNodes | None, reason: Reason, message: str) -> None:
        """The Split says what is hot, or what is missing."""
        planned = moment(hot=hot).planned()
        assert planned.relief is not None
        assert (planned.relief.reason, planned.relief.message) == (reason.value, message)
        assert planned.state is State.STEADY
        warned = [note.reason for note in planned.advice if note.reason is not Reason.UNGUARDED]
        assert warned == ([Reason.RELIEF_PAUSED] if reason is Reason.RELIEF_PAUSED else [])
