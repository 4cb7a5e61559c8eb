"""What one may choose about the demo, and the settings of splitter that follow."""

import pytest

from lab.demo.options import SHORTEST_USEFUL_NOTICE_S, DemoOptions
from splitter.settings.loading import load_settings


def test_settings_are_settings() -> None:
    """Each is known to splitter, and says what was chosen."""
    settings = load_settings(environment=DemoOptions(soak_s=7.0, grace_s=8.0, release_s=9.5).settings)
    assert (settings.soak_s, settings.grace_s, settings.tuning.release_s) == (7.0, 8.0, 9.5)
    assert settings.tuning.calm_s == settings.soak_s, (
        "else the whole life of the sandbox would count as flapping"
    )
    assert (settings.http_port, settings.metrics_port) == (0, 0), "two demos can run side by side"


@pytest.mark.parametrize(
    ("notice_s", "useful"),
    [(SHORTEST_USEFUL_NOTICE_S, True), (SHORTEST_USEFUL_NOTICE_S - 0.1, False), (30.0, True)],
)
def test_no_dip_is_promised_where_the_notice_is_too_short(notice_s: float, *, useful: bool) -> None:
    """Pods take longer to start than it lasts."""
    assert DemoOptions(notice_s=notice_s).notice_is_useful is useful
