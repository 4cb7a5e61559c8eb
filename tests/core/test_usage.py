"""How much a workload holds now."""

from builders import observation, pod, pods, replica_set, source, twin
from splitter.core.replica import NodeStatus, Pool
from splitter.core.split_status.usage import Amount, Use
from splitter.core.usage import held

REQUESTS = (("cpu", 250), ("memory", 512 * 1024**2))


class TestHeld:
    def test_by_the_nodes(self) -> None:
        """On which pool's nodes replicas stand counts, not which twin they are of; with what they request."""
        on_spot = [pod(f"s-{n}", on_spot=True, requests=REQUESTS) for n in range(3)]
        own = twin(Pool.ON_DEMAND, [on_spot[2], pod("o-1", requests=REQUESTS)])
        result = held(observation(source(replicas=4), spot=twin(Pool.SPOT, on_spot[:2]), on_demand=own), 1)
        assert result[Use.SPOT] == Amount(3, 750, 1536)
        assert result[Use.ON_DEMAND] == Amount(1, 250, 512)
        assert result[Use.DESIRED] == Amount(4, 1000, 2048)
        assert result[Use.COVER] == result[Use.SURGE] == Amount()

    def test_what_is_paid_for(self) -> None:
        """Terminating and doomed ones are; pending, finished and lost ones are not."""
        own = (
            pod("terminating", terminating=True),
            pod("doomed", NodeStatus.DOOMED),
            pod("pending", NodeStatus.UNBOUND),
            pod("lost", NodeStatus.LOST),
            pod("finished", finished=True),
        )
        result = held(observation(sets=[replica_set("web-1", 5, own)]), 10)
        assert result[Use.ON_DEMAND].replicas == 2

    def test_what_is_missing_saves_nothing(self) -> None:
        """Of 10 asked for 6 stand somewhere: the others are no saving."""
        own = pods(6) + pods(stuck=4)
        result = held(observation(source(replicas=10), [replica_set("web-1", 10, own)]), 10)
        assert result[Use.DESIRED] == result[Use.ON_DEMAND] == Amount(6)

    def test_cover_and_surge(self) -> None:
        """Of 8 on on-demand for 6 wanted there, one is beyond the 10 asked for, so that one stands in."""
        own = pods(8) + tuple(pod(f"s-{n}", on_spot=True) for n in range(3))
        result = held(observation(source(replicas=10), [replica_set("web-1", 11, own)]), 6)
        assert result[Use.SURGE].replicas == 1
        assert result[Use.COVER].replicas == 1

    def test_nothing_stands_in_while_it_is_not_divided(self) -> None:
        """All on on-demand is no cover before the twins are there, or when they go."""
        result = held(observation(source(replicas=10), [replica_set("web-1", 10, pods(10))]), None)
        assert result[Use.ON_DEMAND].replicas == 10
        assert result[Use.COVER].replicas == 0

    def test_a_placeholder_is_surge(self) -> None:
        """It holds room for a move, and somebody pays for that."""
        result = held(
            observation(
                source(replicas=3),
                [replica_set("web-1", 3, pods(3))],
                placeholders=(pod("room", on_spot=True, requests=REQUESTS),),
            ),
            3,
        )
        assert result[Use.SPOT] == Amount(1, 250, 512)
        assert result[Use.SURGE].replicas == 1

    def test_one_of_relief_is_none(self) -> None:
        """It keeps replicas off a node for seconds, and holds nothing."""
        hint = pod("hint", on_spot=True, held_for="relief/node-1", requests=(("cpu", 10),))
        result = held(observation(source(3), [replica_set("web-1", 3, pods(3))], placeholders=(hint,)), 3)
        assert result[Use.SPOT] == Amount()
        assert result[Use.SURGE].replicas == 0
