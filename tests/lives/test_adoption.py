"""Labelling restarts nobody, and neither does giving back: the same pods run, and no Service loses one."""

from lab.fixtures.shop import Shop
from lab.sandbox.fleet import Fleet

N = 8


# Half of the pods may stay on each side, whatever the scheduler has chosen.
FROZEN = {"splitter.io/freeze": "true"}


def by_node(shop: Shop) -> dict[str, set[str]]:
    """Return the UIDs of the pods by the kind of the node that they are on."""
    values: dict[str, set[str]] = {"on-demand": set(), "spot": set()}
    for pod in shop.pods():
        kind = "spot" if pod["spec"]["nodeName"].startswith("spot") else "on-demand"
        values[kind].add(pod["metadata"]["uid"])
    return values


class TestCalm:
    def test_no_owner_changes_while_a_node_is_going(self, shop: Shop, fleet: Fleet) -> None:
        """With a notice under it the workload waits, says why, and goes on when node and pod are gone."""
        shop.deploy(replicas=N, annotations={"splitter.io/on-demand-base": str(N)})
        going = next(
            pod["spec"]["nodeName"] for pod in shop.pods() if pod["spec"]["nodeName"].startswith("spot")
        )
        fleet.notice([going])
        before = shop.pod_uids()
        shop.label()
        shop.says("WaitingForCalm", going)
        assert shop.pod_uids() == before
        fleet.kill([going])
        shop.says("WaitingForCalm", "the Node object is gone")
        shop.clear_away_the_dead()
        shop.wait_split(on_demand=N, spot=0)


class TestPods:
    def test_that_belong_elsewhere_move_afterwards(self, shop: Shop) -> None:
        """Make before break, and no more of them than the policy says."""
        shop.deploy(replicas=N, annotations=FROZEN)
        before = by_node(shop)
        wanted = len(before["on-demand"]) + 1  # one has to move
        shop.kubectl(
            "annotate", "deployment/web", "splitter.io/freeze-", f"splitter.io/on-demand-base={wanted}"
        )
        with shop.watch() as watched:
            shop.label()
            shop.wait_split(on_demand=wanted, spot=N - wanted)
            assert watched.lowest() >= N
        assert len(shop.pod_uids() & (before["on-demand"] | before["spot"])) == N - 1

    def test_of_another_image_are_rolled_one_twin_after_the_other(self, shop: Shop) -> None:
        """What was set while it is split comes back with it: no pod restarts on the way home."""
        shop.deploy(replicas=N, annotations=FROZEN)
        shop.label()
        shop.says("Frozen")
        shop.set_image("web:2")
        shop.until(lambda: set(shop.images()) == {"web:2"}, "both twins to run web:2")
        shop.until(lambda: len(shop.pods()) == N, "the end of the old ones")
        before = shop.pod_uids()
        with shop.watch() as watched:
            shop.unlabel()
            shop.wait_given_back()
            assert watched.lowest() == watched.highest() == N
        assert shop.pod_uids() == before
        shop.kubectl("rollout", "undo", "deployment/web")
        shop.wait_rolled_out()
        shop.until(lambda: set(shop.images()) == {"web:1"}, "the image before")
