"""A split workload stays split when another client writes the whole of it: the optional policy, in force.

splitter runs with its own account and its real rights. What the policy does by itself is tried without it.
"""

import json
import time
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

import pytest

from e2e.support.admission import steadily
from e2e.support.appliers import ASKED, REPLICAS, SURGE, rolled_once, server_side, wanted
from e2e.support.kapp import Kapp
from e2e.support.keep_paused import (
    MARK,
    RESUMED,
    SAVED,
    WRITERS,
    autoscaler,
    in_force,
    keeps,
    labelled,
    path_of,
    put,
    unpaused,
    would_be,
)
from e2e.support.terminal import Terminal, reported
from lab.fixtures.controller import Controller
from lab.fixtures.database import BY_TWINS, NAME, Database
from lab.fixtures.database import manifest as database_manifest
from lab.fixtures.namespaces import open_shop
from lab.fixtures.placed import PLACES
from lab.fixtures.shop import LABEL, JsonObject, Shop, manifest
from lab.sandbox import ApiError, PatchKind, Sandbox
from lab.sandbox.errors import SandboxError
from splitter.core.twins import write_conflicts

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PLACES, reason="needs MutatingAdmissionPolicy, Kubernetes 1.36"),
]

WRONG = ("ForeignWrite", "Conflict")
ACCOUNT = "system:serviceaccount:splitter-system:splitter"


@pytest.fixture
def kept(shop: Shop) -> Iterator[Shop]:
    """Yield a namespace with `web` split into 1 + 3, and the policy in force."""
    shop.apply(labelled())
    shop.wait_split(on_demand=1, spot=3)
    shop.wait_steady()
    with in_force(shop, partial(keeps, shop)):
        yield shop


def verify_at_rest(shop: Shop) -> None:
    """Claim that splitter has seen nothing of what was written."""
    shop.wait_posted()
    shop.wait_steady()
    assert not [reason for reason in WRONG if shop.events(reason)]


def releases(shop: Shop) -> list[str | None]:
    """Return what the pods say of their release."""
    return [pod["metadata"].get("annotations", {}).get("release") for pod in shop.pods()]


class TestWrites:
    def test_of_the_whole(self, kept: Shop) -> None:
        """Six writers, twice each: paused and marked as before, and no replica more or less."""
        mark = kept.deployment()["metadata"]["annotations"][MARK]
        with kept.watch() as watched:
            for _ in range(2):
                for name, write in WRITERS.items():
                    write(kept, labelled())
                    after = kept.deployment()
                    assert (after["spec"].get("paused"), name) == (True, name)
                    assert after["metadata"]["annotations"][MARK] == mark, name
            verify_at_rest(kept)
            assert watched.lowest() == watched.highest() == REPLICAS
        with rolled_once(kept):  # all the rest of such a write goes through
            put(kept, labelled(image="web:2"))
            kept.until(lambda: kept.images() == {"web:2": REPLICAS}, "web:2 everywhere")

    def test_of_kapp(self, kept: Shop) -> None:
        """Its deploys without a change end in no conflict; one without the label gives back."""
        kapp = Kapp(kept)
        assert [kapp.deploy(labelled()) for _ in range(4)] == [1, 0, 0, 0]
        verify_at_rest(kept)
        with kept.watch() as watched:
            kapp.deploy(wanted())
            kept.wait_given_back()
            assert watched.lowest() >= REPLICAS
        assert not kept.deployment()["spec"].get("paused")

    def test_without_force(self, kept: Shop) -> None:
        """As Helm 4 applies: refused if the chart says `paused: false`; else it goes through."""
        server_side(kept, labelled())

        def apply(made: JsonObject) -> None:
            query, kind = {"fieldManager": "gitops"}, PatchKind.APPLY
            kept.sandbox.api.request("PATCH", path_of(kept), query=query, body=made, content_type=kind)

        with pytest.raises(ApiError, match=r'conflict with "splitter".*\.spec\.paused') as refusal:
            apply(unpaused(labelled()))
        assert refusal.value.status == HTTPStatus.CONFLICT
        release = labelled()
        release["spec"]["template"]["metadata"]["annotations"] = {"release": "2"}
        with rolled_once(kept):
            apply(release)
            kept.until(lambda: releases(kept) == ["2"] * REPLICAS, "the release everywhere")

    def test_of_a_count(self, kept: Shop) -> None:
        """`kubectl scale` and an autoscaler write a subresource, which the policy does not look at."""
        kept.kubectl("scale", "deployment/web", "--replicas=6")
        kept.wait_split(on_demand=1, spot=5)
        kept.apply(autoscaler(7, 9))
        kept.wait_split(on_demand=1, spot=6)
        verify_at_rest(kept)


class TestWayBack:
    def test_by_label(self, kept: Shop) -> None:
        """With the label, alone or in one write of the whole: no burst of pods, since the pause stays."""
        with kept.watch() as watched:
            kept.unlabel()
            kept.wait_given_back()
            kept.label()
            kept.wait_split(on_demand=1, spot=3)
            kept.until(lambda: steadily(partial(keeps, kept)), "the policy to keep it again")
            put(kept, wanted())
            kept.wait_given_back()
            assert watched.lowest() >= REPLICAS
            assert watched.highest_asked() <= REPLICAS + SURGE

    def test_after_a_conflict(self, kept: Shop) -> None:
        """The source is resumed, by splitter's own account, though the label is there."""
        with kept.watch() as watched:
            for number in range(write_conflicts.MOST):
                edited_s = time.monotonic()
                kept.set_image(f"web:{90 + number}", "web-spot")
                kept.until(lambda: _image(kept, "web-spot") != f"web:{90 + number}", "it to be put back")  # noqa: B023
                # Edits within so many seconds are one conflict.
                apart_s = write_conflicts.TOGETHER_S + 1.0
                kept.until(lambda: time.monotonic() > edited_s + apart_s, "edits to be apart")  # noqa: B023
            kept.until(
                lambda: not kept.leftovers() and kept.deployments() == {"web"}, "all but the Split to go"
            )
            kept.wait_rolled_out()
            assert watched.lowest() >= REPLICAS - 1
        assert not kept.deployment()["spec"].get("paused")
        assert MARK not in kept.deployment()["metadata"]["annotations"]

    def test_uninstall_and_the_policy(self, shop: Shop, admin: Terminal) -> None:
        """In either order: what the policy has kept stays split without it, and all is given back with it."""
        shop.apply(labelled())
        shop.wait_split(on_demand=1, spot=3)
        shop.wait_steady()
        with shop.watch() as watched:
            with in_force(shop, partial(keeps, shop)):
                put(shop, labelled())
            verify_at_rest(shop)  # without the policy
            with in_force(shop, partial(keeps, shop)):
                reported(admin.splitter("uninstall", "-n", shop.namespace, "--timeout", "60"))
            shop.wait_given_back()
            shop.label()
            shop.wait_split(on_demand=1, spot=3)
            reported(admin.splitter("uninstall", "-n", shop.namespace, "--timeout", "60"))
            shop.wait_given_back()
            assert watched.lowest() >= REPLICAS


def _image(shop: Shop, name: str) -> str:
    image: str = shop.deployment(name)["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def _is_seen(raw: JsonObject) -> bool:
    return bool(raw["status"].get("observedGeneration") == raw["metadata"]["generation"])


class TestStatefulSet:
    def test_writes_of_the_whole(self, database: Database) -> None:
        """The saved count again changes nothing; another one scales; both keep what splitter has saved."""
        shop = database.shop
        database.deploy(6, annotations=BY_TWINS)
        database.label()
        database.wait_split(on_demand=4, spot=2)
        database.wait_steady()
        made = database_manifest(6)
        made["metadata"]["labels"][LABEL] = "enabled"

        def acts() -> bool:
            path = path_of(shop, NAME, "statefulsets")
            after = shop.sandbox.api.request("PUT", path, query={"dryRun": "All"}, body=made)
            return SAVED in after["metadata"]["annotations"]

        with in_force(shop, acts):
            before = database.source()
            for _ in range(4):
                put(shop, made)
                server_side_of(database, made)
                after = database.source()
                assert after["spec"]["replicas"] == 0
                for key in (MARK, SAVED):
                    assert after["metadata"]["annotations"][key] == before["metadata"]["annotations"][key]
            shop.wait_posted()
            database.wait_steady()
            assert not [reason for reason in WRONG if database.events(reason)]
            put(shop, {**made, "spec": {**made["spec"], "replicas": 5}})
            database.wait_split(on_demand=3, spot=2)
            shop.kubectl("scale", "statefulset", NAME, "--replicas=6")
            database.wait_split(on_demand=4, spot=2)
            del made["metadata"]["labels"][LABEL]
            put(shop, made)
            database.wait_given_back()
        assert database.source()["spec"]["replicas"] == 6


def server_side_of(database: Database, made: JsonObject) -> None:
    """Apply a StatefulSet by force, as a GitOps controller does."""
    path = path_of(database.shop, NAME, "statefulsets")
    database.shop.sandbox.api.patch(path, made, kind=PatchKind.APPLY, field_manager="gitops")


def may_patch(shop: Shop, user: str) -> bool:
    """Whether an account may patch Deployments of the namespace."""
    try:
        return "yes" in shop.kubectl("auth", "can-i", "patch", "deployments", f"--as={user}")
    except SandboxError:  # kubectl says no by its exit code
        return False


@pytest.fixture
def alone(sandbox: Sandbox, controller: Controller) -> Iterator[Shop]:
    """Yield a namespace with the policy in force, and with nothing else of splitter's: it rests."""
    controller.stop()
    try:
        for shop in open_shop(sandbox, controller):
            split_by_hand(shop, "probe")
            with in_force(shop, partial(keeps, shop, "probe")):
                yield shop
    finally:
        controller.start()


def split_by_hand(
    shop: Shop, name: str, *, paused: bool = True, label: str = "enabled", of: str = ""
) -> JsonObject:
    """Create a Deployment without replicas, paused and marked, as splitter leaves it, or a tenant forges it.

    `of` is a name in the mark in place of its own UID.
    """
    labels = {LABEL: label} if label else {}
    made = manifest(name, 0, annotations=ASKED, labels=labels)
    made["spec"]["paused"] = paused
    raw = shop.sandbox.api.create(path_of(shop, name).rpartition("/")[0], made)
    mark = json.dumps({"uid": of or raw["metadata"]["uid"], "time": "2026-01-31T12:00:00Z"})
    return shop.sandbox.api.patch(path_of(shop, name), {"metadata": {"annotations": {MARK: mark}}})


class TestPolicyAlone:
    def test_whose_writes_pass(self, alone: Shop) -> None:
        """Only splitter's account may resume: by its name, for any client may choose a field manager."""
        assert would_be(alone, RESUMED, "probe", manager="splitter")["spec"]["paused"] is True
        tenant = f"system:serviceaccount:{alone.namespace}:splitter"
        alone.kubectl("create", "rolebinding", "tenant", "--clusterrole=admin", f"--user={tenant}")
        alone.until(partial(may_patch, alone, tenant), "the binding to count")
        for user, stays in ((tenant, True), (ACCOUNT, False)):
            body = json.dumps({"spec": {"paused": None}})
            as_ours = (f"--as={user}", "--field-manager=splitter")
            alone.kubectl("patch", "deployment", "probe", "--type=merge", "-p", body, *as_ours)
            assert bool(alone.deployment("probe")["spec"].get("paused")) is stays

    def test_a_dry_run(self, alone: Shop) -> None:
        """It says what the write would do, and stores nothing."""
        before = alone.deployment("probe")
        made = manifest("probe", 3, labels={LABEL: "enabled"})
        query = {"dryRun": "All"}
        after = alone.sandbox.api.request("PUT", path_of(alone, "probe"), query=query, body=made)
        assert (after["spec"]["paused"], after["spec"]["replicas"]) == (True, 3)
        assert after["metadata"]["annotations"][MARK] == before["metadata"]["annotations"][MARK]
        assert alone.deployment("probe") == before

    def test_what_is_forged(self, alone: Shop) -> None:
        """A mark without a pause, of another workload, on a twin, or without the label: each is resumed."""
        forged = {
            "running": split_by_hand(alone, "running", paused=False),
            "copied": split_by_hand(alone, "copied", of=alone.deployment("probe")["metadata"]["uid"]),
            "unlabelled": split_by_hand(alone, "unlabelled", label=""),
            "twin": split_by_hand(alone, "twin", label="twin"),
        }
        for name in forged:
            after = would_be(alone, RESUMED, name)
            assert "paused" not in after["spec"], name
            assert MARK not in after["metadata"]["annotations"], name
        # Paused, marked and labelled by its own user, it stays paused until that user has removed the label.
        assert would_be(alone, RESUMED, "probe")["spec"]["paused"] is True
        unlabelled: JsonObject = {"metadata": {"labels": {LABEL: None}}}
        assert would_be(alone, {**RESUMED, **unlabelled}, "probe")["spec"]["paused"] is True
        alone.sandbox.api.patch(path_of(alone, "probe"), unlabelled)
        assert "paused" not in would_be(alone, RESUMED, "probe")["spec"]

    def test_a_mark_that_makes_no_sense(self, alone: Shop) -> None:
        """It keeps nothing, and no write is refused for it."""
        for mark in ("", "{", "[]", "x" * 200_000, "\N{GRINNING FACE}", '"uid"'):
            written = {"metadata": {"annotations": {MARK: mark}}}
            alone.sandbox.api.patch(path_of(alone, "probe"), written)
            after = would_be(alone, RESUMED, "probe")
            assert "paused" not in after["spec"], mark[:9]

    def test_a_saved_count_that_makes_no_sense(self, alone: Shop) -> None:
        """No write of a StatefulSet is refused for it; what cannot be read is no count that is repeated."""
        made = {**database_manifest(0), "metadata": {"name": NAME, "labels": {LABEL: "enabled"}}}
        path = path_of(alone, NAME, "statefulsets")
        uid = alone.sandbox.api.create(path.rpartition("/")[0], made)["metadata"]["uid"]
        for saved in (
            "",
            "(",
            "7",
            '{"replicas":7,"left":0}',
            '{"replicas":70}',
            '{"replicas":{"a":7}}',
            "x" * 9000,
        ):
            written = {MARK: json.dumps({"uid": uid, "time": "2026-01-31T12:00:00Z"}), SAVED: saved}
            alone.sandbox.api.patch(path, {"metadata": {"annotations": written}})
            seven = {**made, "spec": {**made["spec"], "replicas": 7}}
            query = {"dryRun": "All"}
            after = alone.sandbox.api.request("PUT", path, query=query, body=seven)
            assert after["metadata"]["annotations"] == written, saved
            repeats = saved in {"7", '{"replicas":7,"left":0}'}
            assert after["spec"]["replicas"] == (0 if repeats else 7), saved

    def test_other_writes(self, alone: Shop) -> None:
        """A write that leaves pause and mark goes through: a controller's, a user's, an autoscaler's."""
        note: JsonObject = {
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "9", "note": "n"}}
        }
        after = would_be(alone, note, "probe")
        assert after["metadata"]["annotations"]["note"] == "n"
        alone.kubectl("scale", "deployment/probe", "--replicas=1")
        assert alone.deployment("probe")["spec"]["replicas"] == 1
        alone.until(lambda: _is_seen(alone.deployment("probe")), "the controller to write its status")
