"""Replays, drawn."""

from xml.etree import ElementTree as ET

import pytest

from plugin.simulate.policies import SpotOnly
from plugin.simulate.results import GIVEN
from splitter.plugin.simulate.contenders import Rebalancing
from splitter.plugin.simulate.outage import outage_trace
from splitter.plugin.simulate.picture import svg
from splitter.plugin.simulate.replay import Assumptions, simulate

TRACE = outage_trace(7200, 600, 8, 1)


class TestPicture:
    """A panel for each replay."""

    def test_the_picture_is_one_of_xml(self) -> None:
        """A panel for each policy; axes say what they show; names cannot break out of it."""
        text = svg([simulate(TRACE, Rebalancing(name), GIVEN) for name in ("one", '<script>"&')])
        root = ET.fromstring(text)  # noqa: S314 - our own text
        space = "{http://www.w3.org/2000/svg}"
        assert len(root.findall(f"{space}g")) == 2
        labels = {element.text for element in root.iter(f"{space}text")}
        assert {"replicas", "time since the start of the trace", "0 h", "24 h", "wanted", "8"} <= labels

    def test_the_picture_stays_small(self) -> None:
        """A year of outages is a file that a browser opens at once."""
        result = simulate(outage_trace(7200, 600, 2, 365), SpotOnly(), Assumptions(desired=2))
        assert len(svg([result])) < 100_000

    def test_there_is_no_picture_of_nothing(self) -> None:
        """No result: a sentence."""
        with pytest.raises(ValueError, match="no replay to draw"):
            svg([])
