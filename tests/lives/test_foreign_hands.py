"""What other hands do to a split workload and to what is splitter's, told by the recorded pods."""

import pytest

from lab.fixtures.shop import CAPACITY, LABEL, Shop

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
MARK = "splitter.io/taken-over"


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web` split into 1 + 3."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    return shop


def _attached(shop: Shop) -> list[str]:
    """Return the ReplicaSets that the Deployment controls."""
    return [
        rs["metadata"]["name"]
        for rs in shop.replica_sets()
        if rs["metadata"]["ownerReferences"][0].get("controller")
    ]


def _is_paused(shop: Shop) -> bool:
    return bool(shop.deployment()["spec"].get("paused"))


def _mark(shop: Shop) -> str:
    return str(shop.deployment()["metadata"].get("annotations", {}).get(MARK, ""))


class TestLabelsOfAllDeployments:
    """`kubectl label deployment --all` meets the twins too."""

    def test_removed_from_all(self, split_shop: Shop) -> None:
        """The label removed with --all gives back as if from the source alone: the same pods go on."""
        shop = split_shop
        before = shop.pod_uids()
        with shop.watch() as watched:
            shop.kubectl("label", "deployment", "--all", f"{LABEL}-")
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        assert shop.deployments() == {"web"}
        assert shop.pod_uids() == before

    def test_changed_on_a_twin(self, split_shop: Shop) -> None:
        """A twin whose label somebody removes or overwrites is still the twin: its pods go on serving."""
        shop = split_shop
        with shop.watch() as watched:
            for written in (f"{LABEL}-", f"{LABEL}=enabled"):
                shop.kubectl("label", "--overwrite", "deployment", "web-spot", written)
                shop.until(
                    lambda: shop.deployment("web-spot")["metadata"]["labels"].get(LABEL) == "twin",
                    "the twin's label",
                )
                shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE


class TestResume:
    """`kubectl rollout resume`: kubectl itself leads users there, and it makes N pods beside the twins'."""

    def test_once(self, split_shop: Shop) -> None:
        """The intruder is parked and drained, the source paused again, and everybody told what to do."""
        shop = split_shop
        with shop.watch() as watched:
            shop.kubectl("rollout", "resume", "deployment/web")
            shop.reported("ForeignWrite", "splitter.io/restarted-at")
            shop.until(lambda: _is_paused(shop) and not _attached(shop), "the intruder to be parked")
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert (
                watched.highest() <= REPLICAS + SURGE + REPLICAS
            )  # its own N, made before anybody could act
        assert {rs["spec"]["replicas"] for rs in shop.replica_sets()} == {0}
        assert "conflict" not in shop.status()

    def test_three_times(self, split_shop: Shop) -> None:
        """Whoever insists gets it back whole; the Split says why, until the label goes and comes again."""
        shop = split_shop
        with shop.watch() as watched:
            for _ in range(3):
                shop.until(lambda: _is_paused(shop) and not _attached(shop), "the source to be paused")
                shop.kubectl("rollout", "resume", "deployment/web")
            shop.until(lambda: shop.status().get("state") == "Conflict", "the conflict")
            shop.until(
                lambda: not _mark(shop) and not shop.leftovers() and shop.deployments() == {"web"},
                "all but the Split to be given back",
            )
            shop.wait_rolled_out()
            assert watched.lowest() >= REPLICAS
        assert shop.deployments() == {"web"}
        assert not _is_paused(shop)
        conditions = {one["type"]: one["status"] for one in shop.status()["conditions"]}
        assert conditions["Conflict"] == "True"
        with shop.watch() as watched:
            shop.unlabel()
            shop.wait_given_back()
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE


class TestDeletions:
    """What is splitter's and is deleted by hand comes back; what others delete is gone."""

    def test_twin(self, split_shop: Shop) -> None:
        """A twin deleted with its pods comes back with as many, and the other twin is left alone."""
        shop = split_shop
        [kept] = [pod["metadata"]["uid"] for pod in shop.pods() if _pool(pod) == "on-demand"]
        with shop.watch() as watched:
            former = shop.deployment("web-spot")["metadata"]["uid"]
            shop.delete("web-spot")
            shop.until(
                lambda: shop.twins() and shop.deployment("web-spot")["metadata"]["uid"] != former,
                "another spot twin",
            )
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= 1  # what the user's own hand left
            assert watched.highest() <= REPLICAS + SURGE + 3  # the old ones, until they are collected
        assert kept in shop.pod_uids()

    def test_twin_but_not_its_pods(self, split_shop: Shop) -> None:
        """A twin deleted without its pods (--cascade=orphan) comes back around them: they go on serving."""
        shop = split_shop
        former = shop.deployment("web-spot")["metadata"]["uid"]
        with shop.watch() as watched:
            shop.delete("web-spot", "Orphan")
            shop.until(
                lambda: shop.twins() and shop.deployment("web-spot")["metadata"]["uid"] != former,
                "another spot twin",
            )
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    def test_split(self, split_shop: Shop) -> None:
        """The Split comes back, and not one pod is touched."""
        shop = split_shop
        pods, former = shop.pod_uids(), shop.split()
        assert former is not None
        with shop.watch() as watched:
            shop.kubectl("delete", "split", "web")
            shop.until(
                lambda: (result := shop.split()) and result["metadata"]["uid"] != former["metadata"]["uid"],
                "another Split",
            )
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS
        assert shop.pod_uids() == pods

    def test_mark(self, split_shop: Shop) -> None:
        """The mark comes back, and not one pod is touched; the way home is still there."""
        shop = split_shop
        pods = shop.pod_uids()
        with shop.watch() as watched:
            shop.kubectl("annotate", "deployment", "web", f"{MARK}-")
            shop.until(lambda: _mark(shop), "the mark")
            shop.wait_posted()  # so splitter has had its turn
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert shop.pod_uids() == pods
            shop.unlabel()
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    @pytest.mark.parametrize("cascade", ["background", "foreground"])
    def test_source(self, split_shop: Shop, cascade: str) -> None:
        """With the source goes everything of ours, and nothing is made anew."""
        shop = split_shop
        shop.delete("web", cascade.capitalize())
        shop.until(lambda: not shop.pods() and not _workloads(shop), "all of web to be gone")
        shop.wait_posted()  # so splitter has had its turn
        assert not _workloads(shop)


def _workloads(shop: Shop) -> list[str]:
    """Return what there is of workloads, of any kind, without their pods."""
    result = shop.kubectl("get", "replicasets,deployments,splits", "--output=name").split()
    return [name for name in result if "/posted-" not in name]


def _pool(pod: dict[str, dict[str, dict[str, str]]]) -> str:
    return pod["metadata"]["labels"].get("splitter.io/pool", "")


class TestAfterwards:
    def test_rolls_out_again(self, split_shop: Shop) -> None:
        """Scaled while it was split and given back, it rolls out as before splitter (a regression)."""
        shop = split_shop
        shop.scale(5)
        shop.wait_split(on_demand=1, spot=4)
        shop.unlabel()
        shop.wait_given_back()
        with shop.watch() as watched:
            shop.set_image("web:2")
            shop.wait_rolled_out()
            shop.until(lambda: shop.images() == {"web:2": 5}, "5 pods of web:2 and no other")
            assert watched.lowest() >= 5
        assert sorted(rs["spec"]["replicas"] for rs in shop.replica_sets()) == [0, 5]


class TestNodeOfAnotherCapacityType:
    """Somebody corrects the label of a node that pods stand on; no kubelet ends them for that."""

    def test_its_pods_go_to_their_pool(self, split_shop: Shop) -> None:
        """Make before break, and the others stay; while a limit keeps them, the Split says so."""
        shop = split_shop
        node = next(name for name in shop.nodes() if name.startswith("spot"))
        before = shop.pod_uids()
        shop.annotate(spot_max="3")
        shop.until(lambda: shop.status()["policy"]["spotMax"] == 3, "the limit to be seen")
        with shop.watch() as watched:
            shop.sandbox.kubectl("label", "--overwrite", "node", node, f"{CAPACITY}=on-demand")
            try:
                note = shop.reported(
                    "PodsInOtherPool", "web-spot may hold no more than 3. Where that does not change"
                )
                assert f" on {node}" in note
                shop.until(
                    lambda: shop.status().get("relief", {}).get("message") == note,
                    f"the Split to say: {note}",
                )
                shop.kubectl("annotate", "deployment/web", "splitter.io/spot-max-")
                shop.wait_split(on_demand=1, spot=3)
                assert shop.reported("Relieving", "it stands on an on-demand node")
            finally:
                shop.sandbox.kubectl("label", "--overwrite", "node", node, f"{CAPACITY}=spot")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 1
        assert len(before - shop.pod_uids()) >= 1
        assert node not in shop.nodes()
