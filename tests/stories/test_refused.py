"""A policy refuses writes to pods with 422, as policies do: it is told, and tried again later."""

from collections.abc import Callable

import pytest

from splitter.kube.client import ApiError
from stories.director import Story
from world.admission import Request
from world.kinds import PODS

LASTS_S = 1200.0
# Each second would be two hundred tries; later tries come once a minute.
MOST = 60 * 10


def refused(story: Story, verb: str) -> list[Request]:
    """Have a policy refuse these writes to pods for a while, but no rehearsal; return those that came."""
    came = list[Request]()
    until_s = story.loop.time() + LASTS_S

    def rule(request: Request) -> None:
        ours = request.user == "splitter" and not request.dry
        if ours and request.ref.kind == PODS and request.verb == verb and story.loop.time() < until_s:
            came.append(request)
            raise ApiError(422, "Invalid", "ValidatingAdmissionPolicy 'labels' denied request: not these")

    story.objects.rules.append(rule)
    return came


@pytest.mark.parametrize(
    ("verb", "happens", "told_after_s"),
    [
        ("update", Story.label, LASTS_S),  # the labels of pods that change their owner
        ("update", lambda story: story.notice("spot-a"), LASTS_S),  # the deletion costs of the doomed
        # Kubernetes' own collector removes them 40 s later.
        ("delete", lambda story: story.vanish("spot-a"), 20.0),
    ],
    ids=["labels", "costs", "removals"],
)
def test_is_told_and_tried_ever_later(
    verb: str, happens: Callable[[Story], object], told_after_s: float
) -> None:
    """The Split says who refuses; when the policy goes, all goes on."""
    story = Story(f"Pods refuse {verb}")
    if happens is not Story.label:
        story.label()
        story.wait(900)
    came = refused(story, verb)
    happens(story)
    story.wait(told_after_s - 10)
    assert story.reason() == "WriteDenied"
    assert "'labels' denied" in story.message()
    story.wait(LASTS_S - told_after_s)
    assert story.available() >= 10
    story.wait(3600)
    assert len(came) < MOST
    assert story.reason() == "Balanced"
    assert story.available() == 10
