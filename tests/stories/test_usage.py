"""What a Split counts is the bill: a day of losses, rollouts and scaling, with splitter away now and then."""

from datetime import timedelta

import pytest

from splitter.core.model import Pool
from splitter.core.plan import Rules
from splitter.core.split_status.usage import Usage, Use
from splitter.kube.packed import packed, unpacked
from stories.cluster import START
from stories.counting import Story
from stories.reconciles import Splitter

HOUR_S = 3600


class Billed(Story):
    """A story in which somebody else adds up what pods cost, from pods and nodes alone."""

    def __init__(self, title: str) -> None:
        self.pod_s = {Pool.ON_DEMAND: 0, Pool.SPOT: 0}
        self.desired_s = 0
        self._node_status = {Pool.ON_DEMAND: 0, Pool.SPOT: 0}
        self._desired = self._billed_until = self._away_until = 0
        super().__init__(title)

    def begin(self) -> None:
        """Count from now on."""
        self.pod_s, self.desired_s = {Pool.ON_DEMAND: 0, Pool.SPOT: 0}, 0

    def restart(self, away_s: int, as_what: str = "splitter is back") -> None:
        """Have splitter end, and another begin a while later with nothing but what the cluster knows."""
        self._away_until = self.cluster.now + away_s
        judge = self.splitter.judge
        self.splitter = Splitter(self.cluster, Rules())
        self.splitter.judge = judge
        self.splitter.wake_at = self._away_until
        self.happens(f"{as_what} after {away_s} s")

    def used(self) -> Usage:
        """Return what the Split tells."""
        assert self.cluster.split is not None
        # As from the API server: what cannot be written is not there.
        result = Usage.from_json(unpacked(packed(self.cluster.split.status))["usage"])
        assert result is not None
        return result

    def _settle(self) -> None:
        passed_s = self.cluster.now - self._billed_until
        for pool in Pool:
            self.pod_s[pool] += self._node_status[pool] * passed_s
        self.desired_s += self._desired * passed_s
        super()._settle()
        self._billed_until = self.cluster.now
        nodes = [self.cluster.nodes.get(pod.node or "") for pod in self.cluster.pods.values()]
        self._node_status[Pool.SPOT] = sum(1 for node in nodes if node is not None and node.spot)
        self._desired = min(self.cluster.source.replicas, sum(node is not None for node in nodes))
        self._node_status[Pool.ON_DEMAND] = sum(1 for node in nodes if node is not None and not node.spot)

    def _reconcile(self) -> bool:
        return self.cluster.now >= self._away_until and super()._reconcile()


@pytest.fixture(scope="module")
def day() -> Billed:
    """Return a day with a loss every three hours, eight restarts, and a change of leader amid a loss."""
    story = Billed("A day")
    story.label(on_demand_base="2", spot_percent="80")
    story.wait(60)
    story.begin()
    for hour in range(24):
        match hour % 6:
            case 0:
                story.notice("spot-a")
                if hour == 12:
                    story.restart(away_s=10, as_what="another one leads")
                story.wait(120)
                story.vanish("spot-a")
            case 1:
                story.add_spot("spot-a")
                story.restart(away_s=300 if hour == 1 else 15)
            case 2:
                story.set_image(f"v{hour}")
            case 3:
                story.vanish("spot-b", "spot-c")
                story.restart(away_s=20)
            case 4:
                story.scale(16 if hour < 12 else 8)
            case _:
                story.add_spot("spot-b", "spot-c")
        story.wait(HOUR_S)
    return story


class TestADay:
    def test_is_the_bill(self, day: Billed) -> None:
        """Both pools, and what was asked for, are what they were, within 2 %."""
        usage = day.used()
        used = usage.at(START + timedelta(seconds=day.cluster.now))
        assert min(day.pod_s.values()) > 24 * HOUR_S  # both were used
        assert used[Use.ON_DEMAND].replicas == pytest.approx(day.pod_s[Pool.ON_DEMAND], rel=0.02)
        assert used[Use.SPOT].replicas == pytest.approx(day.pod_s[Pool.SPOT], rel=0.02)
        assert used[Use.DESIRED].replicas == pytest.approx(day.desired_s, rel=0.02)

    def test_tells_the_overhead(self, day: Billed) -> None:
        """What stood in for spot and what was beyond the replicas asked for add up with them."""
        used = day.used().at(START + timedelta(seconds=day.cluster.now))
        node_status = used[Use.ON_DEMAND].replicas + used[Use.SPOT].replicas
        assert used[Use.COVER].replicas > 0
        assert 0 < used[Use.SURGE].replicas < 0.1 * node_status
        assert node_status - used[Use.SURGE].replicas <= used[Use.DESIRED].replicas


def test_idle_writes_nothing() -> None:
    """While nothing changes the Split tells the same for ever, and what it tells grows with the time."""
    story = Billed("Idle")
    story.label()
    story.wait(HOUR_S)
    before = story.used()
    story.wait(12 * HOUR_S)
    assert story.used() == before
    after = before.at(START + timedelta(seconds=story.cluster.now))
    assert after[Use.SPOT].replicas == pytest.approx(10 * 13 * HOUR_S, rel=0.01)
