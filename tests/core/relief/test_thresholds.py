"""Thresholds as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.labels_annotations.words import RELIEF
from splitter.core.relief.model import Resource, Thresholds
from splitter.core.relief.thresholds import thresholds_of

RELIEF_KEY = "splitter.io/relief"


class TestThresholds:
    """Percent of a node, each resource once."""

    def test_are_read(self) -> None:
        """Both in any order, or one of them."""
        both = {Resource.CPU: 85.0, Resource.MEMORY: 90.0}
        assert thresholds_of("cpu=85,memory=90") == Thresholds(both)
        assert thresholds_of("memory=90,cpu=85") == Thresholds(both)
        assert thresholds_of("cpu=100") == Thresholds({Resource.CPU: 100.0})
        assert thresholds_of("memory=90,cpu=85,restarts") == Thresholds(both)

    def test_off_by_default(self) -> None:
        """Who writes nothing asks for nothing, and `off` undoes what the Namespace says."""
        assert thresholds_of(Policy().relief) is None
        of_namespace = {RELIEF_KEY: "cpu=85"}
        parsed = parse_policy({RELIEF_KEY: "off"}, Policy(), of_namespace)
        assert parsed.policy is not None
        assert thresholds_of(parsed.policy.relief) is None
        inherited = parse_policy({}, Policy(), of_namespace)
        assert inherited.policy is not None
        assert thresholds_of(inherited.policy.relief) == Thresholds({Resource.CPU: 85.0})

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "disk=90",
            "cpu=high",
            "cpu=",
            "cpu=-85",
            "cpu=٨٥",
            "cpu=49",
            "cpu=101",
            "cpu=nan",
            "cpu=085",
            "cpu=85,cpu=90",
            "cpu=85,",
            "cpu=85,memory=90,cpu=85",
            "cpu=85" + "," * 80,
            "restarts",
            "restarts,cpu=85",
            "off,restarts",
            "cpu=85,restarts,restarts",
        ],
    )
    def test_that_cannot_be_meant_say_what_to_write(self, text: str) -> None:
        """What is no number, out of bounds, unknown or contradicts itself is a sentence with an example."""
        (problem,) = parse_policy({RELIEF_KEY: text}, Policy()).problems
        assert f"{RELIEF_KEY} is " in problem.message
        assert 'it must be "off", or from which percent of a node on it is hot, 50..100' in problem.message
        assert 'Write for example "cpu=85,memory=90".' in problem.message

    def test_spaces_are_mended(self) -> None:
        """What only has spaces or a sign too many is written out as it was meant."""
        (problem,) = parse_policy({RELIEF_KEY: " cpu = 85, memory=90% "}, Policy()).problems
        assert 'Write "cpu=85,memory=90".' in problem.message

    @given(st.text(max_size=100))
    def test_any_text_is_answered(self, text: str) -> None:
        """What the form takes are thresholds, or none; what it does not is refused by it."""
        if (written := RELIEF.read(text)) is not None:
            asked = thresholds_of(written)
            assert asked is None or all(50 <= percent <= 100 for percent in asked.percent.values())
