"""What was written to the twins, and when."""

from demo.a_run import at, deployment
from lab.demo.promises import ReplicasWritten
from lab.demo.watching import ScaleLog


class TestScaleLog:
    """Writes are seen on the Deployments themselves."""

    def test_a_change_is_a_write(self) -> None:
        """The first sight is none, nor is a change of something else, nor a deletion."""
        log = ScaleLog()
        for second, replicas, deleted in (
            (1, 3, False),
            (2, 3, False),
            (3, 5, False),
            (4, 5, True),
            (5, 1, False),
        ):
            raw = deployment()
            raw["spec"]["replicas"] = replicas
            log.see(at(second), raw, deleted)
        assert log.writes() == (ReplicasWritten(at(3), "web", 3, 5),)
