"""Real use that is not served, is old, or cannot be true: nothing moves by it, and the Split says so."""

from stories.relief.telling import HOUR, MINUTE, labelled, playing
from world.metrics import GROUP


async def test_what_is_missing_late_or_wrong() -> None:
    """Each is said once; when real use is known again, three samples are needed."""
    async with playing("Real use that is missing, late or wrong", labelled("web", 6)) as story:
        story.add_nodes("spot-1", "spot-2")
        story.say("metrics-server is removed")
        story.api.missing.add(GROUP)
        await story.says("install metrics-server")
        story.uses(web=1200)
        await story.wait(20 * MINUTE)
        story.say("metrics-server is installed, and does not answer")
        story.api.missing.discard(GROUP)
        story.metrics.down = True
        await story.says("look at metrics-server")
        story.say("it tells of ten minutes ago")
        story.metrics.down, story.metrics.age_s = False, 600.0
        await story.wait(20 * MINUTE)
        story.say("it tells of the future")
        story.metrics.age_s = -600.0
        await story.wait(20 * MINUTE)
        story.say("it tells less than nothing")
        story.metrics.age_s, story.metrics.lies = 0.0, {"usage": {"cpu": "-5", "memory": "1Gi"}}
        await story.wait(20 * MINUTE)
        story.say("it tells what no node has")
        story.metrics.lies = {"usage": {"cpu": "1000000", "memory": "1Gi"}}
        await story.wait(20 * MINUTE)
        assert not story.moves
        story.say("it tells the truth")
        story.metrics.lies = {}
        await story.says("Relieved")
        assert len(story.on()) == 2
        story.check()
        story.keep("real-use")


async def test_what_goes_in_the_middle_of_a_move() -> None:
    """One answer that does not come ends nothing; three do: the new replica goes again."""
    slow = {"sandbox.splitter.io/ready-after": "10m"}
    async with playing("Real use goes in the middle of a move", labelled("web", 6, of_pods=slow)) as story:
        story.uses(web=1200)
        story.add_nodes("spot-1", "spot-2")
        await story.says("Relieving")
        story.say("metrics-server does not answer for two minutes")
        story.metrics.down = True
        await story.wait(2 * MINUTE)
        story.metrics.down = False
        await story.wait(3 * MINUTE)
        assert len(story.pods()) == 7
        story.say("metrics-server does not answer")
        story.metrics.down = True
        await story.says("ReliefUndone")
        await story.wait(HOUR)
        assert story.on() == {"spot-0": 6}
        assert story.is_calm()
        story.check()
        story.keep("real-use-goes")
