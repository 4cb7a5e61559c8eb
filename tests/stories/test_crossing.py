"""How many modules a notice crosses before its first write: what a reader of that path has to know of."""

import sys
from collections import Counter
from types import FrameType

from stories.director import Story
from world.admission import Request

# These numbers only fall.
CORE, ALL = 69, 108


def crossed() -> Counter[str]:
    """Return how often each module of splitter is entered from a notice to the first write after it."""
    story = Story("A notice", 10)
    story.label(**{"splitter.io/on-demand-base": "2"})
    story.wait(600)
    entered, answers = Counter[str](), list[Request]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        name = str(frame.f_globals.get("__name__"))
        if event == "call" and name.startswith("splitter.") and not answers:
            entered[name] += 1

    story.at_write(answers.append)
    node = next(name for name in story.scene.nodes() if "spot" in name)
    sys.setprofile(profile)
    try:
        story.notice(node)
    finally:
        sys.setprofile(None)
    assert [one.ref.kind.rpartition("/")[2] for one in answers[:2]] == ["poddisruptionbudgets", "deployments"]
    return entered


def test_a_notice_crosses_no_more_modules_than_it_did() -> None:
    """They are named if there are more."""
    entered = crossed()
    assert "splitter.core.rebalance.decide" in entered
    assert sum(name.startswith("splitter.core.") for name in entered) <= CORE, sorted(entered)
    assert len(entered) <= ALL, sorted(entered)
