"""What other hands write on a split workload: its mark, its label, its counts, its templates.

Deletions, and conflicts over the pause, are told by test_foreign_hands.
"""

import json

import pytest

from lab.fixtures.shop import LABEL, JsonObject, Shop, manifest

ASKED = {"splitter.io/on-demand-base": "1"}
REPLICAS, SURGE = 4, 2
MARK = "splitter.io/taken-over"
FLIPS = 5


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web` split into 1 + 3, and at rest."""
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
    return shop


def is_ours(shop: Shop) -> bool:
    """Whether the mark names this very Deployment."""
    metadata = shop.deployment()["metadata"]
    written = metadata["annotations"].get(MARK, "")
    return written.startswith("{") and bool(json.loads(written).get("uid") == metadata["uid"])


def parked(shop: Shop) -> JsonObject:
    """Return the one ReplicaSet that is parked."""
    [collected] = [rs for rs in shop.replica_sets() if rs["metadata"]["labels"].get(LABEL) == "parked"]
    return collected


NONSENSE = ("", "mine", "[]", '{"uid": 7}', '{"uid": "another", "time": "2026-01-05T10:00:00Z"}')


class TestMark:
    def test_overwritten(self, split_shop: Shop) -> None:
        """A mark that makes no sense is written anew, and not one pod is touched."""
        shop, pods = split_shop, split_shop.pod_uids()
        with shop.watch() as watched:
            for written in NONSENSE:
                shop.kubectl("annotate", "--overwrite", "deployment", "web", f"{MARK}={written}")
                shop.until(lambda: is_ours(shop), f"the mark after {written!r}")
            shop.wait_posted()  # so splitter has had its turn
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert watched.lowest() == watched.highest() == REPLICAS
        assert shop.pod_uids() == pods

    def test_overwritten_and_unlabelled(self, split_shop: Shop) -> None:
        """A mark that makes no sense goes with the label like any other."""
        shop = split_shop
        with shop.watch() as watched:
            shop.kubectl("annotate", "--overwrite", "deployment", "web", f"{MARK}=mine")
            shop.unlabel()
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        shop.wait_no_strays()


class TestReplace:
    """`kubectl replace` drops label, mark and pause together: N pods of its own start beside the twins'."""

    def test_with_a_manifest_without_label(self, split_shop: Shop) -> None:
        """It is its user's again, and of splitter's nothing is left."""
        shop = split_shop
        with shop.watch() as watched:
            replace(shop, manifest("web", REPLICAS, surge=SURGE, annotations=ASKED))
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE + REPLICAS
        assert shop.deployments() == {"web"}
        shop.wait_no_strays()
        assert MARK not in shop.deployment()["metadata"]["annotations"]

    def test_with_a_manifest_with_label(self, split_shop: Shop) -> None:
        """It is taken over again, and the pods it has started go first."""
        shop, pods = split_shop, split_shop.pod_uids()
        with shop.watch() as watched:
            labels = {LABEL: "enabled"}
            replace(shop, manifest("web", REPLICAS, surge=SURGE, annotations=ASKED, labels=labels))
            shop.until(lambda: is_ours(shop), "the mark")
            shop.until(lambda: shop.deployment()["spec"].get("paused"), "the pause")
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE + REPLICAS
        assert shop.pod_uids() == pods


def replace(shop: Shop, body: JsonObject) -> None:
    """Replace the whole object, as `kubectl replace` does."""
    shop.kubectl("replace", "-f", "-", stdin=json.dumps(body))


class TestFlips:
    """The label comes and goes faster than anything can follow: the last word counts."""

    def test_of_a_split_one(self, split_shop: Shop) -> None:
        """Off and on within a second, five times: in the end it is split."""
        shop = split_shop
        with shop.watch() as watched:
            for _ in range(FLIPS):
                flip(shop, on=False)
                flip(shop, on=True)
            shop.wait_posted()  # so splitter has had its turn
            shop.wait_split(on_demand=1, spot=3)
            shop.until(lambda: shop.status().get("state") == "Steady", "the Split to say that all is steady")
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        shop.wait_no_strays()

    def test_of_a_fresh_one(self, shop: Shop) -> None:
        """On and off within a second, five times: in the end it is its user's, as it was."""
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED)
        before = shop.snapshot()
        with shop.watch() as watched:
            for _ in range(FLIPS):
                flip(shop, on=True)
                flip(shop, on=False)
            others_turn(shop)
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        snapshot = shop.snapshot()
        assert (snapshot.spec, snapshot.labels, snapshot.annotations) == (
            before.spec,
            before.labels,
            before.annotations,
        )
        assert shop.deployments() == {"web"}
        shop.wait_no_strays()


def others_turn(shop: Shop) -> None:
    """Let splitter do something else from its beginning to its end, so that it has had its turn here."""
    shop.apply(manifest("cart", 1, labels={LABEL: "enabled"}))  # rolled out it is taken over at once
    shop.wait_split(on_demand=0, spot=1, name="cart")
    shop.delete("cart")
    shop.until(lambda: not shop.strays() and not shop.pods("cart"), "cart to be gone")


def flip(shop: Shop, *, on: bool) -> None:
    """Set the label or take it away, in milliseconds where kubectl takes a tenth of a second."""
    path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web"
    shop.sandbox.api.patch(path, {"metadata": {"labels": {LABEL: "enabled" if on else None}}})


class TestParked:
    def test_deleted(self, split_shop: Shop) -> None:
        """Deleted by hand it is not missed; to give back, one is made, and rolls out as usual afterwards."""
        shop, pods = split_shop, split_shop.pod_uids()
        with shop.watch() as watched:
            shop.kubectl("delete", "replicaset", parked(shop)["metadata"]["name"])
            assert shop.pod_uids() == pods
            shop.unlabel()
            shop.wait_given_back()
            shop.set_image("web:2")
            shop.wait_rolled_out()
            shop.until(lambda: shop.images() == {"web:2": REPLICAS}, "web:2 and nothing else")
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE
        shop.wait_no_strays()

    def test_scaled_up(self, split_shop: Shop) -> None:
        """Scaled up by hand it is drained again, and no pod of the twins goes for it."""
        shop, pods = split_shop, split_shop.pod_uids()
        before = parked(shop)["metadata"]["generation"]
        with shop.watch() as watched:
            shop.kubectl("scale", "replicaset", parked(shop)["metadata"]["name"], "--replicas=2")
            shop.until(lambda: is_drained_since(shop, before), "the parked one to be drained")
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + 2
        assert shop.pod_uids() == pods


def is_drained_since(shop: Shop, generation: int) -> bool:
    """Whether somebody scaled the parked ReplicaSet up since then, and somebody else down again."""
    result = parked(shop)
    written: int = result["metadata"]["generation"] - generation
    return written >= 2 and result["spec"]["replicas"] == 0


def is_put_back(shop: Shop, generation: int) -> bool:
    """Whether somebody wrote to the spot twin since then, and it asks for its 3 all the same."""
    raw = shop.deployment("web-spot")
    written: int = raw["metadata"]["generation"] - generation
    return written >= 2 and raw["spec"]["replicas"] == 3


def has_variable(pod: JsonObject) -> bool:
    """Whether a pod has the variable that the source gives it."""
    return "WANTED" in {variable["name"] for variable in pod["spec"]["containers"][0].get("env", ())}


def image_of(deployment: JsonObject) -> str:
    """Return the image that a Deployment's pods are to run."""
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


class TestTwins:
    """The twins are splitter's: what is written on them by hand is put back."""

    def test_scaled(self, split_shop: Shop) -> None:
        """Scaled by hand it gets its number back; only what the hand itself has stopped is missing."""
        shop = split_shop
        for replicas, least in ((5, REPLICAS), (0, 1)):
            with shop.watch() as watched:
                generation = shop.deployment("web-spot")["metadata"]["generation"]
                shop.scale(replicas, "web-spot")
                shop.until(lambda at=generation: is_put_back(shop, at), "web-spot to ask for 3 again")  # type: ignore[misc]
                shop.wait_split(on_demand=1, spot=3)
                assert watched.lowest() >= least
                assert watched.highest() <= REPLICAS + SURGE

    def test_image_edited(self, split_shop: Shop) -> None:
        """An image set by hand is put back, make before break, and everybody told once where it belongs.

        The field is named, and neither image: a value may be a secret.
        """
        shop = split_shop
        for image in ("web:9", "web:bad"):
            with shop.watch() as watched:
                shop.set_image(image, "web-spot")
                shop.until(lambda: image_of(shop.deployment("web-spot")) == "web:1", "web:1 to be put back")
                shop.until(lambda: shop.images() == {"web:1": REPLICAS}, "web:1 and nothing else")
                shop.wait_split(on_demand=1, spot=3)
                assert watched.lowest() >= REPLICAS
                assert watched.highest_asked() <= REPLICAS + SURGE
        said = shop.reported(
            "Drift", "another client edited web-spot (spec.template.spec.containers.web.image); put back"
        )
        assert "belongs on the source" in said
        shop.wait_posted()
        assert {one.partition("; put")[0] for one in shop.events("Drift")} == {said.partition("; put")[0]}

    def test_set_by_label(self, split_shop: Shop) -> None:
        """One command reaches the source and both twins: each change is rolled out once, without conflict."""
        shop = split_shop
        shop.kubectl("label", "deployment", "web", "web-on-demand", "web-spot", "team=shop")
        for number in range(2, 6):
            with shop.watch() as watched:
                shop.kubectl("set", "image", "deployment", "-l", "team=shop", f"web=web:{number}")
                shop.until(lambda at=number: shop.images() == {f"web:{at}": REPLICAS}, "one image")  # type: ignore[misc]
                shop.wait_split(on_demand=1, spot=3)
                assert watched.lowest() >= REPLICAS
        shop.kubectl("set", "env", "deployment", "-l", "team=shop", "WANTED=yes")
        shop.until(lambda: all(map(has_variable, shop.pods())), "the variable everywhere")
        shop.kubectl("set", "env", "deployment", "-l", "team=shop", "WANTED-")
        shop.until(lambda: not any(map(has_variable, shop.pods())), "the variable nowhere")
        shop.wait_split(on_demand=1, spot=3)
        shop.wait_posted()
        assert not [reason for reason in ("Drift", "Conflict") if shop.events(reason)]

    def test_variable_removed(self, split_shop: Shop) -> None:
        """What the source has and somebody takes out of a twin is put back.

        Taken out, the twin is as it was before. While statuses still show the replicas of then, Kubernetes
        itself would take as many of the new ones: that is not what this is about.
        """
        shop = split_shop
        shop.kubectl("set", "env", "deployment/web", "WANTED=yes")
        shop.until(lambda: all(map(has_variable, shop.pods())), "the variable everywhere")
        shop.wait_split(on_demand=1, spot=3)
        shop.wait_rolled_out("web-spot")
        with shop.watch() as watched:
            shop.kubectl("set", "env", "deployment/web-spot", "WANTED-")
            shop.reported("Drift")
            shop.until(lambda: all(map(has_variable, shop.pods())), "the variable everywhere again")
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE

    def test_variable_added(self, split_shop: Shop) -> None:
        """What is only added is not in the way of what the templates say: it rolls once, and stays."""
        shop = split_shop
        with shop.watch() as watched:
            shop.kubectl("set", "env", "deployment/web-spot", "ADDED=by-hand")
            shop.wait_rolled_out("web-spot")
            others_turn(shop)
            shop.wait_split(on_demand=1, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE
        [container] = shop.deployment("web-spot")["spec"]["template"]["spec"]["containers"]
        assert {"name": "ADDED", "value": "by-hand"} in container["env"]
        shop.wait_posted()
        assert not shop.events("Drift")
