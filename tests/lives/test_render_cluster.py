"""`splitter render deploy/web`: what a template set would make of a workload in a cluster, before it does."""

from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.terminal import Answer
from lab.fixtures.shop import Shop
from lives.terminal import Terminal


def diff(shop: Shop, admin: Terminal, *options: str) -> Answer:
    """Ask what would change."""
    return admin.splitter("render", "deploy/web", "-n", shop.namespace, "--diff", *options)


DIFFERS = 5


class TestDiff:
    def test_of_one_that_is_not_split(self, shop: Shop, admin: Terminal) -> None:
        """Both twins, whole, as they would be made; none is."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        answer = diff(shop, admin)
        assert answer.returncode == DIFFERS, answer.stderr
        lines = answer.stdout.splitlines()
        assert [line for line in lines if line.startswith("+++")] == [
            "+++ rendered/web-on-demand",
            "+++ rendered/web-spot",
        ]
        assert all(line.startswith(("+", "@@", "--- live/")) for line in lines)
        assert shop.deployments() == {"web"}

    def test_of_one_that_is_not_there(self, shop: Shop, admin: Terminal) -> None:
        """One sentence."""
        answer = diff(shop, admin)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert answer.stderr == f"splitter render: deployment {shop.namespace}/web is not there\n"
