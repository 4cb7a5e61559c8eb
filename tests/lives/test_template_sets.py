"""Template sets that people bring: picked up live, broken in every way, refused, taken away.

Whatever happens to a set, the twins that run keep their last good template, and no pod is replaced
unless its user asks for it.
"""

import base64
from collections.abc import Iterator

import pytest

from e2e.support.refusals import Untouched, condition, refused
from e2e.support.template_sets import (
    HOME,
    LINE,
    REPLICAS,
    SPOT,
    SURGE,
    SYNTAX,
    Running,
    TemplateSet,
    deploy,
    grace_of,
    twin,
    wait_held,
    wait_rolled,
    with_grace,
)
from e2e.support.terminal import reported
from lab.fixtures.shop import JsonObject, Shop
from lab.sandbox.fleet import Fleet
from lab.sandbox.machines import Notice
from lives.terminal import Terminal
from world.sandbox import Process


@pytest.fixture
def own_set(shop: Shop) -> Iterator[TemplateSet]:
    """Yield a set of the test's own, not written yet; it is gone afterwards."""
    template_set = TemplateSet(shop, f"{shop.namespace}-set")
    yield template_set
    template_set.delete()


@pytest.fixture
def split(shop: Shop, own_set: TemplateSet) -> Shop:
    """Return the shop with web split into 1 + 2 by a good set."""
    own_set.write()
    deploy(shop, own_set)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    shop.until(lambda: shop.status().get("state") == "Steady", "rest")
    return shop


class TestLife:
    def test_picked_up_live(self, shop: Shop, own_set: TemplateSet) -> None:
        """A workload waits for a set that is not there yet, and is split as soon as it is."""
        deploy(shop, own_set)
        shop.label()
        message = refused(shop, "TemplateInvalid")
        assert f'there is no template set "{own_set.name}"' in message
        own_set.write()
        shop.wait_split(on_demand=1, spot=2)
        wait_rolled(shop, grace=7)  # those that were adopted on spot are replaced last
        assert grace_of(shop, "web-on-demand") == 5

    def test_changed(self, split: Shop, own_set: TemplateSet, admin: Terminal) -> None:
        """A changed set replaces no pod by itself; `splitter rollout` brings it, make before break."""
        before = Running(split)
        own_set.change(with_grace(9))
        split.until(lambda: split.status()["reason"] == "TemplateSetChanged", "the word about the set")
        before.verify()
        assert grace_of(split) == 7
        with split.watch() as watched:
            reported(admin.splitter("rollout", "deploy/web", "-n", split.namespace))
            wait_rolled(split, grace=9)
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE
        split.until(lambda: split.status()["reason"] == "Balanced", "rest")

    def test_changed_comes_with_the_next_rollout(self, split: Shop, own_set: TemplateSet) -> None:
        """A new image brings the changed set along, in the same roll."""
        own_set.change(with_grace(9))
        split.until(lambda: split.status()["reason"] == "TemplateSetChanged", "the word about the set")
        split.set_image("web:2")
        wait_rolled(split, grace=9)
        split.until(lambda: set(split.images()) == {"web:2"}, "web:2 on both twins")

    def test_changed_and_given_back(self, split: Shop, own_set: TemplateSet) -> None:
        """What the set had added to the pods goes with the twin, though the set adds nothing any more."""
        own_set.change(SPOT)
        split.until(lambda: split.status()["reason"] == "TemplateSetChanged", "the word about the set")
        with split.watch() as watched:
            split.unlabel()
            split.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE
        grace = {pod["spec"]["terminationGracePeriodSeconds"] for pod in split.pods()}
        assert grace == {split.deployment()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]}

    def test_deleted(self, split: Shop, own_set: TemplateSet) -> None:
        """The twins stay as they are and go on being scaled; written again, all is well."""
        before = Running(split)
        own_set.delete()
        wait_held(split, "TemplateInvalid", f'there is no template set "{own_set.name}"')
        before.verify()
        split.scale(5)
        split.wait_split(on_demand=1, spot=4)
        assert grace_of(split) == 7
        own_set.write()
        split.until(lambda: split.status()["reason"] == "Balanced", "rest")


BINARY: JsonObject = {"binaryData": {"deployment.spot.yaml.j2": base64.b64encode(b"\xff\xfe").decode()}}

# The same for a ConfigMap.
NO_SETS: tuple[tuple[JsonObject, str], ...] = (
    ({"spot": None}, 'the key "deployment.spot.yaml.j2" is missing'),
    (
        {"data": {"deployment.sport.yaml.j2": ""}},
        'the key "deployment.sport.yaml.j2" is no template\'s; did you mean',
    ),
    ({"spot": None, **BINARY}, "is binary data; a template is text"),
    ({"label": "yes"}, 'the label splitter.io/template-set is "yes"'),
    ({"namespaces": "Shop"}, 'holds "Shop", which names no namespace'),
)


class TestBroken:
    def test_covered_all_the_same(self, split: Shop, own_set: TemplateSet, fleet: Fleet) -> None:
        """A broken set keeps nobody from covering spot that goes: counts are no template."""
        own_set.change(SYNTAX)
        wait_held(split, "TemplateInvalid", f"line {LINE}")
        with split.watch() as watched:
            fleet.notice(fleet.names("spot"), Notice.TAINT)
            split.until(lambda: split.shape().on_demand >= REPLICAS, "all replicas on on-demand")
            assert watched.lowest() >= REPLICAS
        assert grace_of(split) == 7

    def test_a_deleted_twin_comes_back(self, split: Shop, own_set: TemplateSet) -> None:
        """As it was rendered last: who deletes it while the set is broken loses no more than its pods."""
        own_set.change(SYNTAX)
        wait_held(split, "TemplateInvalid", f"line {LINE}")
        former = twin(split)
        split.kubectl("delete", "deployment", "web-spot", "--wait=false")
        split.until(lambda: twin(split) not in {None, former}, "the twin to be made again")
        split.wait_split(on_demand=1, spot=2)
        assert grace_of(split) == 7
        wait_held(split, "TemplateInvalid", f"line {LINE}")

    def test_mended_before_anybody_asked(self, split: Shop, own_set: TemplateSet) -> None:
        """A set that is as it was again leaves no trace."""
        before = Running(split)
        own_set.change(SYNTAX)
        wait_held(split, "TemplateInvalid", f"line {LINE}")
        own_set.change(with_grace(7))
        split.until(lambda: split.status()["reason"] == "Balanced", "rest")
        before.verify()

    def test_refused(self, shop: Shop, own_set: TemplateSet) -> None:
        """A ConfigMap that is no set refuses its workloads with what to write; mended, they are split."""
        deploy(shop, own_set)
        shop.label()
        before = Untouched(shop)
        for fields, words in NO_SETS:
            own_set.write(**fields)
            status = shop.says("TemplateInvalid", words)
            assert f"ConfigMap {HOME}/{own_set.name}: " in status["message"]
            verify_refused(shop, status, words)
        before.verify()
        own_set.write()
        shop.wait_split(on_demand=1, spot=2)


def verify_refused(shop: Shop, status: JsonObject, words: str) -> None:
    """Claim that state, condition and one Event say the same about a refusal."""
    reason, message = status["reason"], status["message"]
    assert status["state"] == "Refused"
    [eligible] = [one for one in status["conditions"] if one["type"] == "Eligible"]
    assert (eligible["status"], eligible["reason"], eligible["message"]) == ("False", reason, message)
    assert shop.reported(reason, words) == message
    shop.wait_posted()
    assert shop.events(reason).count(message) == 1


class TestNamespaces:
    def test_not_allowed(self, shop: Shop, own_set: TemplateSet) -> None:
        """A set serves the namespaces that it names, and without the annotation none."""
        deploy(shop, own_set)
        shop.label()
        before = Untouched(shop)
        cases = (
            (None, "names no namespace that may use it"),
            ("shop", "may be used in the namespaces shop,"),
            ("team-*,toys", "may be used in the namespaces team-*, toys,"),
        )
        for namespaces, words in cases:
            own_set.write(namespaces=namespaces)
            status = shop.says("TemplateInvalid", words)
            add_it = f"and this is {shop.namespace}. Add it to the annotation splitter.io/namespaces"
            assert add_it in status["message"]
            verify_refused(shop, status, words)
        before.verify()
        own_set.allow(f"toys,{shop.namespace}")
        shop.wait_split(on_demand=1, spot=2)

    def test_no_longer_allowed(self, split: Shop, own_set: TemplateSet) -> None:
        """What is split stays split, at its last good twins."""
        before = Running(split)
        own_set.allow("toys")
        wait_held(split, "TemplateInvalid", "may be used in the namespaces toys")
        before.verify()
        own_set.allow("*")
        split.until(lambda: split.status()["reason"] == "Balanced", "rest")
        assert condition(split, "Eligible")[0] == "True"


class TestAuthor:
    def test_is_told_before_anybody_uses_it(
        self, shop: Shop, own_set: TemplateSet, controller: Process
    ) -> None:
        """In the log, and as an Event on the ConfigMap: once for each change."""
        own_set.write(SYNTAX)
        words = f"ConfigMap {HOME}/{own_set.name}, deployment.spot.yaml.j2, line {LINE}: "
        shop.until(lambda: any(words in note for note in own_set.events()), "the Event on the ConfigMap")
        shop.wait_posted()
        [warning] = [line for line in controller.said().splitlines() if words in line]
        assert "WARNING" in warning
        own_set.change(SPOT)
        good = f"template set {own_set.name} is read; it may be used in shop-*"
        shop.until(lambda: good in controller.said(), "the log to say that it is good")

    def test_cannot_take_the_name_of_a_built_in_set(
        self, shop: Shop, own_set: TemplateSet, controller: Process
    ) -> None:
        """A ConfigMap called `default` changes nothing, and says so."""
        own_set.name = "default"
        own_set.write(SYNTAX, namespaces="*")
        words = "a set of this name travels with splitter and is used instead; rename the ConfigMap"
        shop.until(lambda: words in controller.said(), "the log")
        shop.deploy(replicas=REPLICAS, annotations={"splitter.io/on-demand-base": "1"})
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        own_set.delete()
