"""What splitter refuses, what it says about it, and that it leaves alone what it refuses."""

import json

import pytest

from e2e.support.refusals import ASKED, REPLICAS, Untouched, condition, identity, refused
from lab.fixtures.shop import LABEL, Shop, manifest

BAD = {"splitter.io/on-demand-base": "1", "splitter.io/spot-percent": "80%"}
HOW_TO_WRITE_IT = 'splitter.io/spot-percent is "80%"'
SURGE = 2


def refused_and_untouched(shop: Shop, reason: str) -> str:
    """Label web, and return what is said about the refusal once it is certain that nothing was written."""
    shop.label()
    before = Untouched(shop)
    message = refused(shop, reason)
    shop.unlabel()
    shop.until(lambda: shop.split() is None, "the report to be taken away")
    shop.label()
    refused_again(shop, reason)
    before.verify()
    return message


def refused_again(shop: Shop, reason: str) -> None:
    """Wait until the Split says it once more: a whole round of reporting has passed by then."""
    shop.until(lambda: condition(shop, "Eligible")[:2] == ("False", reason), f"the condition {reason} again")


class TestLabel:
    def test_other_value(self, shop: Shop) -> None:
        """A label value that is no order is refused, with the value to write; written so, it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label(value="yes")
        before = Untouched(shop)
        message = refused(shop, "InvalidLabel")
        assert '"yes"' in message
        assert '"enabled"' in message
        before.verify()
        shop.label()
        shop.wait_split(on_demand=1, spot=2)

    def test_copied_from_a_twin(self, shop: Shop) -> None:
        """A Deployment whose label says `twin` is no source and no twin of anybody's: nothing happens."""
        shop.deploy(replicas=REPLICAS, labels={LABEL: "twin"})
        before = Untouched(shop)
        # Not `deploy`: taken over as soon as it is rolled out, it is not seen rolled out by who looks later.
        shop.apply(manifest("cart", REPLICAS, labels={LABEL: "enabled"}, annotations=ASKED))
        shop.wait_split(on_demand=1, spot=2, name="cart")  # so splitter has had its turn
        assert shop.deployments() == {"web", "cart", "cart-on-demand", "cart-spot"}
        assert shop.split() is None
        shop.until(lambda: splitters_events(shop, "cart"), "a word about cart")
        shop.wait_posted()
        assert not splitters_events(shop, "web")
        shop.delete("cart")
        shop.until(lambda: shop.deployments() == {"web"}, "cart and its twins to be gone")
        before.verify()


def splitters_events(shop: Shop, name: str) -> list[str]:
    """Return the reasons of splitter's Events about a Deployment."""
    path = f"/apis/events.k8s.io/v1/namespaces/{shop.namespace}/events"
    return [
        raw["reason"]
        for raw in shop.sandbox.api.list(path)
        if raw.get("reportingController") == "splitter.io/splitter" and raw["regarding"]["name"] == name
    ]


class TestAnnotations:
    def test_on_an_unsplit_one(self, shop: Shop) -> None:
        """Refused: nothing is paused, nothing made but the report; mended, it is split."""
        shop.deploy(replicas=REPLICAS, annotations=BAD)
        message = refused_and_untouched(shop, "InvalidAnnotation")
        assert HOW_TO_WRITE_IT in message
        assert 'Write "80"' in message
        assert condition(shop, "PolicyValid")[:2] == ("False", "InvalidAnnotation")
        shop.annotate(spot_percent="100")
        shop.wait_split(on_demand=1, spot=2)
        shop.until(lambda: condition(shop, "PolicyValid")[0] == "True", "the policy to be valid")
        assert condition(shop, "Eligible")[0] == "True"

    def test_on_a_split_one(self, shop: Shop) -> None:
        """The last good policy stays in force, for a new number of replicas too; mended, the new one is."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        with shop.watch() as watched:
            shop.annotate(on_demand_base="two")
            shop.until(
                lambda: condition(shop, "PolicyValid")[:2] == ("False", "InvalidAnnotation"), "the condition"
            )
            shop.reported("InvalidAnnotation", "last good policy stays in force")
            assert 'splitter.io/on-demand-base is "two"' in condition(shop, "PolicyValid")[2]
            assert condition(shop, "Eligible")[0] == "True"
            assert shop.twins() == (1, 2)
            shop.scale(5)
            shop.wait_split(on_demand=1, spot=4)
            assert condition(shop, "PolicyValid")[0] == "False"
            shop.annotate(on_demand_base="2")
            shop.wait_split(on_demand=2, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= 5 + SURGE
        shop.until(lambda: condition(shop, "PolicyValid")[0] == "True", "the policy to be valid")


class TestStrategy:
    def test_recreate(self, shop: Shop) -> None:
        """Strategy Recreate does not go together with a hand-over; changed, it is split."""
        body = manifest("web", REPLICAS, annotations=ASKED)
        body["spec"]["strategy"] = {"type": "Recreate"}
        shop.apply(body)
        shop.wait_rolled_out()
        assert "RollingUpdate" in refused_and_untouched(shop, "StrategyRecreate")
        rolling = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
        patch = json.dumps({"spec": {"strategy": {"type": "RollingUpdate", **rolling}}})
        shop.kubectl("patch", "deployment", "web", "--patch", patch)
        shop.wait_split(on_demand=1, spot=2)


class TestPause:
    def test_paused_by_its_user(self, shop: Shop) -> None:
        """What its user has paused stays paused exactly as it is, with the label and without."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.kubectl("rollout", "pause", "deployment/web")
        before = shop.snapshot()
        assert "rollout resume" in refused_and_untouched(shop, "AlreadyPaused")
        shop.unlabel()
        shop.until(lambda: shop.split() is None, "the report to be taken away")
        assert shop.snapshot() == before
        assert shop.deployment()["spec"]["paused"] is True

    def test_resumed(self, shop: Shop) -> None:
        """Resumed by its user, it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.kubectl("rollout", "pause", "deployment/web")
        shop.label()
        refused(shop, "AlreadyPaused")
        with shop.watch() as watched:
            shop.kubectl("rollout", "resume", "deployment/web")
            shop.wait_split(on_demand=1, spot=2)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE

    @pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client-side", "server-side"])
    def test_false_in_the_manifest(self, shop: Shop, options: tuple[str, ...]) -> None:
        """A manifest that says `paused: false` would unpause with each apply; without it, it is split."""
        body = manifest("web", REPLICAS, annotations=ASKED, paused=False)
        shop.kubectl("apply", *options, "-f", "-", stdin=json.dumps(body))
        shop.wait_rolled_out()
        assert "remove that line" in refused_and_untouched(shop, "UnpausedByManifest")
        del body["spec"]["paused"]
        shop.kubectl("apply", *options, "-f", "-", stdin=json.dumps(body))
        shop.wait_split(on_demand=1, spot=2)


class TestNeighbours:
    def test_twins_name_taken(self, shop: Shop) -> None:
        """A Deployment of the user's under a twin's name is left alone; without it, web is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.deploy(name="web-spot", replicas=1)
        taken = identity(shop.deployment("web-spot"))
        message = refused_and_untouched(shop, "TwinNameTaken")
        assert "Deployment web-spot exists" in message
        assert identity(shop.deployment("web-spot")) == taken
        shop.delete("web-spot", "Foreground")
        shop.annotate(grace="20s")  # no watch tells of the other one: looked at again with the next event
        shop.wait_split(on_demand=1, spot=2)


class TestRollout:
    def test_in_progress(self, shop: Shop) -> None:
        """A rollout in progress is waited for, and nothing is written meanwhile; then it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with shop.watch() as watched:
            # A pod of this template never becomes ready: the rollout stays in progress until it is mended.
            never = {"sandbox.splitter.io/ready-after": "1h"}
            patch = json.dumps({"spec": {"template": {"metadata": {"annotations": never}}}})
            shop.kubectl("patch", "deployment", "web", "--patch", patch)
            shop.until(lambda: len(shop.pods()) == REPLICAS + SURGE, "the surge of the rollout")
            # Its controller notes the new revision on it beside the first pods, and counts them after that.
            shop.until(lambda: shop.deployment()["status"]["updatedReplicas"] == SURGE, "it to be noted")
            shop.label()
            before = Untouched(shop)
            assert shop.says("RolloutInProgress", f"{REPLICAS} wanted")["state"] == "Held"
            before.verify()
            shop.kubectl("rollout", "undo", "deployment/web")
            shop.wait_split(on_demand=1, spot=2)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
