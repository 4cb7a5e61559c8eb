"""A split StatefulSet beside members that cannot end: on nodes that say nothing, or slow to stop.

Nobody comes in the place of such a member, since a StatefulSet waits for its name.
"""

import pytest

from stories.members import Members, split
from stories.words import images
from world.kinds import Raw


def _is_placed(pod: Raw, pool: str) -> bool:
    return pod["metadata"]["name"].startswith(f"db-{pool}-") and "nodeName" in pod["spec"]


class TestOnDemand:
    def test_a_loss_of_spot_is_covered_beside_one(self) -> None:
        """Who is asked to end counts no more, and still holds its name: all 5 are made elsewhere."""
        story = split("The on-demand node of a member falls silent, and later all of spot is lost")
        story.silence_under(0)
        story.wait(1000)
        story.vanish_spot()
        story.wait(7)
        assert story.ready() == {"on-demand": 5}
        story.return_spot()
        story.wait(60)
        assert story.ready() == {"on-demand": 5, "spot": 1}

    def test_its_replacement_is_not_taken_back_while_it_ends(self) -> None:
        """A drained member that takes an hour to stop: 5 serve a start later, and not an hour later."""
        story = split("An on-demand node is drained, and its member takes an hour to end")
        story.drain_under(0, 3600)
        story.wait(7)
        assert sum(story.ready().values()) == 5
        story.wait(2 * 3600)
        assert not story.unrest()
        assert story.least >= 4

    def test_a_node_that_goes_while_ready(self) -> None:
        """Its member is covered at once, not after the 40 s for which it may still run."""
        story = split("An on-demand node goes without a sign")
        story.vanish_under(0)
        story.wait(7)
        assert sum(story.ready().values()) == 5
        story.wait(600)
        assert not story.unrest()


class TestSlowEnds:
    def test_a_second_loss_while_those_of_the_first_end(self) -> None:
        """Who was lowered holds a name for half an hour: others are raised above, and all 5 serve."""
        story = split("All spot nodes go, return, and go again; members take half an hour to end")
        story.ends_take(1800)
        story.vanish_spot()
        story.wait(60)
        story.return_spot()
        while story.ready() != {"on-demand": 3, "spot": 2}:
            story.wait(60)
        story.wait(90)
        story.vanish_spot()
        story.wait(7)
        assert story.ready() == {"on-demand": 5}
        story.wait(2 * 3600)
        assert story.ready() == {"on-demand": 5}
        assert story.scene.counts()[0] == 5

    def test_a_roll_makes_nobody_more(self) -> None:
        """Members take 150 s to end, one after the other; no stand-in comes and goes beside each."""
        story = split("An image is set, and members take 150 s to end")
        story.ends_take(150)
        story.set_image("db:2")
        story.wait(3600)
        assert not story.unrest()
        assert (story.least, story.most) == (4, 5)


class TestSpot:
    def test_it_comes_back_beside_nodes_that_are_silent_for_ever(self) -> None:
        """A stopped machine keeps its Node and the names of its members: others are asked for, and come."""
        story = split("All spot nodes fall silent for ever, and others come")
        story.silence_under(1000, 1001)
        story.wait(3000)
        story.return_spot()
        story.wait(4 * 3600)
        assert story.ready() == {"on-demand": 3, "spot": 2}
        story.speak()
        story.wait(3600)
        assert not story.unrest()
        assert story.least >= 3

    def test_one_is_made_up_for_on_spot(self) -> None:
        """One of two: a third takes its place, and on-demand gives its stand-in up."""
        story = split("A spot node falls silent for ever")
        story.silence_under(1000)
        story.wait(4 * 3600)
        assert story.ready() == {"on-demand": 3, "spot": 2}
        assert story.least >= 4

    def test_nobody_who_stands_goes_for_one_on_a_cordoned_node(self) -> None:
        """It is the lowest one, so it cannot be let go: it stays, and on-demand stands in for it."""
        story = split("A spot node stays cordoned")
        story.notice_under(1000)
        story.wait(4 * 3600)
        assert story.ready() == {"on-demand": 4, "spot": 1}
        assert not [line for line in story.lines if "db-spot replicas" in line]
        assert story.least >= 5


class TestAnImage:
    @pytest.mark.parametrize("ordinal", [0, 1000], ids=["on-demand", "spot"])
    def test_it_comes_to_all_that_live(self, ordinal: int) -> None:
        """The one that is dead is the lowest of its twin; the other twin does not wait for it."""
        story = split("A node falls silent for ever, and an image is set")
        story.silence_under(ordinal)
        story.wait(3 * 3600)
        story.set_image("db:2")
        story.wait(600)
        serving = list(filter(story.scene.serves, story.scene.pods()))
        assert [images(pod["spec"]) for pod in serving] == ["db:2"] * 5
        assert story.least >= 4


class TestTakingOver:
    @pytest.mark.parametrize("pool", ["on-demand", "spot"])
    def test_it_ends_beside_one(self, pool: str) -> None:
        """A node falls silent under a member of a twin while the source still has some."""
        story = Members("A node falls silent in the middle of the take-over", 5)
        story.label()
        while not (there := [pod for pod in story.scene.pods() if _is_placed(pod, pool)]):
            story.wait(1)
        assert story.scene.source["spec"]["replicas"] > 0
        story.silence(there[0]["spec"]["nodeName"])
        story.wait(4 * 3600)
        assert story.scene.source["spec"]["replicas"] == 0
        assert sum(story.ready().values()) == 5
        assert story.state()[0] != "TakingOver"
        story.speak()
        story.wait(3600)
        assert not story.unrest()


class TestVolumes:
    """Each member has a volume on the node that it stood on first, and these nodes go."""

    def test_spot_comes_back(self) -> None:
        """The probe has the name of a member whose volume is gone: another one asks beside it."""
        story = split("All spot nodes go with the volumes on them, and others come", local_volumes=True)
        story.vanish_spot()
        story.wait(3000)
        story.return_spot()
        story.wait(4 * 3600)
        assert story.ready() == {"on-demand": 3, "spot": 2}
        assert story.least >= 3

    def test_on_demand_makes_up_for_one(self) -> None:
        """It waits for a volume that is gone, and holds its name: a loss of spot is covered all the same."""
        story = split("An on-demand node goes with the volume on it, then all of spot", local_volumes=True)
        story.vanish_under(0)
        story.wait(3000)
        assert sum(story.ready().values()) == 5
        story.vanish_spot()
        story.wait(7)
        assert story.ready() == {"on-demand": 5}


class TestGivingBack:
    @pytest.mark.parametrize("ordinal", [0, 1000], ids=["on-demand", "spot"])
    def test_it_is_given_back_beside_one(self, ordinal: int) -> None:
        """The silent one takes nobody's room, and the twins end with it."""
        story = split("A node falls silent for ever, and the label is removed")
        story.silence_under(ordinal)
        story.wait(3600)
        story.unlabel()
        story.wait(600)
        assert not story.unrest()
        assert story.ready() == {"source": 5}
        assert story.least >= 4
