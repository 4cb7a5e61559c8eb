"""The life of one split StatefulSet, told by its recorded pods: split, scaled, rolled, given back."""

import json

import pytest

from lab.fixtures.database import Database
from lab.sandbox.instants import Instant


@pytest.fixture
def whole(database: Database) -> Database:
    """Return `db`, 5 members split into 3 + 2."""
    database.deploy(5)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    return database


def asked_of(database: Database) -> tuple[int, int]:
    """Return how many replicas the Split is asked for, and says that are wanted."""
    split = database.split() or {}
    return split["spec"]["replicas"], split["status"]["desired"]


class TestScale:
    def test_by_the_source(self, whole: Database) -> None:
        """`kubectl scale statefulset` says a new N; the source stands at 0 again, and nobody was missed."""
        with whole.watch() as watched:
            whole.shop.kubectl("scale", "statefulset", "db", "--replicas=7")
            whole.wait_split(on_demand=4, spot=3)
            assert watched.lowest() >= 5
            since = Instant.now()
            whole.shop.kubectl("scale", "statefulset", "db", "--replicas=2")
            whole.wait_split(on_demand=2, spot=0)
            assert watched.lowest(since) >= 2
        whole.shop.until(lambda: asked_of(whole) == (2, 2), "the Split to say so")

    @pytest.mark.parametrize(("replicas", "on_demand"), [(1, 1), (2, 2), (4, 3)])
    def test_small_ones(self, database: Database, replicas: int, on_demand: int) -> None:
        """A single member stays on on-demand; of an even number more than half do."""
        database.deploy(replicas)
        with database.watch() as watched:
            database.label()
            database.wait_split(on_demand=on_demand, spot=replicas - on_demand)
            assert watched.lowest() >= replicas
            assert watched.highest() <= replicas + 1

    def test_by_the_split(self, whole: Database) -> None:
        """`kubectl scale split/db-sts` does as well, to 0 too, which the source cannot say."""
        with whole.watch() as watched:
            whole.shop.kubectl("scale", "split/db-sts", "--replicas=6")
            whole.wait_split(on_demand=4, spot=2)
            assert watched.lowest() >= 5
        whole.shop.kubectl("scale", "split/db-sts", "--replicas=0")
        whole.wait_split(on_demand=0, spot=0)
        whole.shop.kubectl("scale", "split/db-sts", "--replicas=3")
        whole.wait_split(on_demand=2, spot=1)
        whole.unlabel()
        whole.wait_given_back()
        assert whole.source()["spec"]["replicas"] == 3


class TestRollout:
    def test_one_member_at_a_time(self, whole: Database) -> None:
        """A new image reaches both twins, one after the other, with one member down at most."""
        with whole.watch() as watched:
            whole.shop.kubectl("set", "image", "statefulset/db", "db=db:2")
            whole.shop.until(lambda: whole.images() == {"db:2"}, "all members to run db:2")
            whole.wait_split(on_demand=3, spot=2)
            assert watched.lowest() >= 4

    def test_a_partition_is_respected(self, whole: Database) -> None:
        """Of 5 members a partition of 4 gives one, on spot, the new image; 0 gives it to all."""
        whole.patch(json.dumps(rolled("db:2", partition=4)))
        whole.shop.until(lambda: images_by_name(whole).get("db-spot-1001") == "db:2", "the canary")
        whole.wait_steady()
        assert [name for name, image in images_by_name(whole).items() if image == "db:2"] == ["db-spot-1001"]
        whole.patch(json.dumps(rolled("db:2", partition=0)))
        whole.shop.until(lambda: whole.images() == {"db:2"}, "all members to run db:2")
        whole.wait_split(on_demand=3, spot=2)

    def test_a_broken_image_stops_at_the_first_member(self, whole: Database) -> None:
        """The others keep the old one; a corrected image mends it."""
        with whole.watch() as watched:
            whole.patch(json.dumps(rolled("db:bad")))
            whole.shop.until(lambda: "db:bad" in whole.images(), "the first member to be rolled")
            whole.says("ImagePullFailed")
            assert sorted(images_by_name(whole).values()) == [*["db:1"] * 4, "db:bad"]
            whole.patch(json.dumps(rolled("db:3")))
            whole.shop.until(lambda: whole.images() == {"db:3"}, "all members to run db:3")
            whole.wait_split(on_demand=3, spot=2)
            assert watched.lowest() >= 4


def rolled(image: str, *, partition: int = 0) -> dict[str, object]:
    """Return a patch with a new image and partition."""
    containers = [
        {"name": "db", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    ]
    return {
        "spec": {
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
            "template": {"spec": {"containers": containers}},
        }
    }


def images_by_name(database: Database) -> dict[str, str]:
    """Return the image of each pod."""
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in database.shop.pods("db")
    }


@pytest.mark.parametrize("ordered", [False, True], ids=["Parallel", "OrderedReady"])
def test_label_splits_and_its_removal_gives_back(database: Database, ordered: bool) -> None:
    """A label moves 5 members to 3 + 2 by default, its removal gives all back as found, without a dip."""
    database.deploy(5, ordered=ordered)
    before = database.snapshot()
    with database.watch() as watched:
        database.label()
        database.wait_split(on_demand=3, spot=2)
        assert database.pods() == {
            *(f"db-on-demand-{ordinal}" for ordinal in range(3)),
            *(f"db-spot-{ordinal}" for ordinal in (1000, 1001)),
        }
        database.unlabel()
        database.wait_given_back()
        assert watched.lowest() >= 5
        assert watched.highest() <= 6
    assert database.snapshot() == before
    assert database.names() == {"db"}
    assert database.pods() == {f"db-{ordinal}" for ordinal in range(5)}
    said = database.reported("IdentitiesChange")
    database.shop.wait_posted()
    assert database.events("IdentitiesChange") == [said]
    assert said.startswith("its pods get other names: db-0.db becomes db-on-demand-0.db or db-spot-1000.db.")
