"""What a Split counts is the bill: a day of losses, rollouts and scaling, with splitter away now and then."""

from collections import Counter
from datetime import timedelta

import pytest

from splitter.core.split_status.usage import Amounts, Usage, Use
from stories.director import Story
from world.clock import START
from world.cluster import POOL
from world.kinds import NODES, PODS

HOUR_S = 3600


class Bill:
    """Adds up what pods cost, from pods and nodes alone."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.pod_s: Counter[str] = Counter()  # by pool
        self.desired_s = 0.0
        self._desired = 0
        self._since_s = story.loop.time()
        self._running: Counter[str] = Counter()
        story.act(self.add)
        for kind in (PODS, NODES, story.ref.kind):
            story.objects.follow(kind, lambda _: self.add())

    def add(self) -> None:
        """Add what was used until now."""
        passed_s = self.story.loop.time() - self._since_s
        self._since_s += passed_s
        self.pod_s.update({pool: count * passed_s for pool, count in self._running.items()})
        self.desired_s += self._desired * passed_s
        pods = self.story.objects.all(PODS, "shop")
        nodes = filter(None, map(self.story.scene.node_of, pods))
        self._running = Counter(node["metadata"]["labels"][POOL] for node in nodes)
        self._desired = min(self.story.scene.replicas, self._running.total())


def usage(story: Story) -> Usage:
    """Return what the Split tells."""
    result = Usage.from_json(story.scene.status["usage"])
    assert result is not None
    return result


def used(story: Story, since: Usage | None = None) -> Amounts:
    """Return what was used until now, as the Split tells it now or told it before."""
    return (since or usage(story)).at(START + timedelta(seconds=story.loop.time()))


def restarted(story: Story, away_s: int) -> None:
    """Have splitter end, and another begin a while later with nothing but what the cluster knows."""
    story.stop()
    story.wait(away_s)
    story.start()


def test_a_day_is_the_bill() -> None:
    """A loss every three hours, eight restarts, and a change of leader amid a loss; within 2 %."""
    story = Story("A day")
    story.label(on_demand_base="2", spot_percent="80")
    story.wait(60)
    bill, before = Bill(story), used(story)
    for hour in range(24):
        match hour % 6:
            case 0:
                story.notice("spot-a")
                if hour == 12:
                    restarted(story, 10)
                story.wait(120)
                story.vanish("spot-a")
            case 1:
                story.scene.doomed.clear()
                story.add_spot("spot-a")
                restarted(story, 300 if hour == 1 else 15)
            case 2:
                story.set_image(f"web:{hour}")
            case 3:
                story.vanish("spot-b", "spot-c")
                restarted(story, 20)
            case 4:
                story.scale(16 if hour < 12 else 8)
            case _:
                story.add_spot("spot-b", "spot-c")
        story.wait(HOUR_S)
    story.act(bill.add)
    said = {
        use: amount.replicas - before[use].replicas for use, amount in used(story).items() if use in before
    }
    assert min(bill.pod_s.values()) > 24 * HOUR_S  # both were used
    assert said[Use.ON_DEMAND] == pytest.approx(bill.pod_s["on-demand"], rel=0.02)
    assert said[Use.SPOT] == pytest.approx(bill.pod_s["spot"], rel=0.02)
    assert said[Use.DESIRED] == pytest.approx(bill.desired_s, rel=0.02)
    # What stood in for spot, and what was beyond the replicas asked for, add up with them.
    total = used(story)
    both = total[Use.ON_DEMAND].replicas + total[Use.SPOT].replicas
    assert total[Use.COVER].replicas > 0
    assert 0 < total[Use.SURGE].replicas < 0.1 * both
    assert both - total[Use.SURGE].replicas <= total[Use.DESIRED].replicas


def test_idle_writes_nothing() -> None:
    """While nothing changes the Split tells the same for ever, and what it tells grows with the time."""
    story = Story("Idle")
    story.label()
    story.wait(HOUR_S)
    before, began = usage(story), used(story)
    story.wait(12 * HOUR_S)
    assert usage(story) == before
    grown = used(story, before)[Use.SPOT].replicas - began[Use.SPOT].replicas
    assert grown == pytest.approx(10 * 12 * HOUR_S, rel=0.01)
