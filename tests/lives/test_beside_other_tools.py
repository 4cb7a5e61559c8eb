"""Tools that write a split workload by themselves, as docs/how-to/beside-other-tools.md says.

kapp and Reloader cannot be had as modules: their writes are played. The policy that keeps a workload paused
is a rule of the world here; tests/e2e/test_keep_paused.py tries it on a real API server.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.support.appliers import REPLICAS, rolled_once, server_side, wanted
from e2e.support.kapp import Kapp
from kstatus import advised, kapp_config
from kstatus import kapp as kapp_says
from lab.fixtures.shop import LABEL, JsonObject, Shop, manifest
from leaping import passing
from splitter.core.twins import write_conflicts
from world.admission import Request
from world.keep_paused import SPLITTER, keep_paused
from world.kinds import Raw

WRONG = ("ForeignWrite", "Conflict")
ORDER, WRITTEN = "reloader.stakater.com/auto", "reloader.stakater.com/last-reloaded-from"


def labelled(config: str = "web-config-ver-1", **more: Any) -> JsonObject:  # noqa: ANN401 (as `wanted`)
    """Return the manifest that asks for the split itself, with a versioned ConfigMap."""
    made = wanted(**more)
    made["metadata"]["labels"][LABEL] = "enabled"
    made["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": config}}]
    return made


def split(shop: Shop, kapp: Kapp, made: JsonObject) -> None:
    """Have it deployed and split into 1 + 3."""
    kapp.deploy(made)
    shop.wait_split(on_demand=1, spot=3)
    shop.wait_steady()


@pytest.fixture
def kept(shop: Shop) -> Iterator[Shop]:
    """Yield a namespace of a cluster with the policy."""
    rules = shop.sandbox.cluster.objects.rules  # type: ignore[attr-defined] # the world's
    rules.append(keep_paused)
    yield shop
    rules.remove(keep_paused)


class TestKapp:
    def test_unchanged_without_anything(self, shop: Shop) -> None:
        """Each deploy takes the pause away, and the third is a conflict: given back, and nothing lost."""
        kapp, made = Kapp(shop), labelled()
        split(shop, kapp, made)
        with shop.watch() as watched:
            for _ in range(3):
                assert kapp.deploy(made) == 1
                shop.until(
                    lambda: shop.deployment()["spec"].get("paused") or shop.status()["state"] == "Conflict",
                    "splitter to act",
                )
            shop.until(lambda: shop.status().get("state") == "Conflict", "the conflict")
            shop.wait_rolled_out()
        assert watched.lowest() >= REPLICAS

    def test_unchanged_with_the_policy(self, kept: Shop) -> None:
        """One update, for kapp sees what splitter has added; then none, and no replica more or less."""
        kapp, made = Kapp(kept), labelled()
        split(kept, kapp, made)
        with kept.watch() as watched:
            assert [kapp.deploy(made) for _ in range(4)] == [1, 0, 0, 0]
            kept.wait_posted()
            kept.wait_steady()
            assert watched.lowest() == watched.highest() == REPLICAS
        assert not [reason for reason in WRONG if kept.events(reason)]

    def test_unchanged_with_the_recipe(self, shop: Shop) -> None:
        """The rebase rules of the page do the same without the policy."""
        rebased = tuple(tuple(rule["path"]) for rule in kapp_config()["rebaseRules"])
        kapp, made = Kapp(shop, rebased), labelled()
        split(shop, kapp, made)
        with shop.watch() as watched:
            assert sum(kapp.deploy(made) for _ in range(4)) <= 1
            shop.wait_posted()
            shop.wait_steady()
            assert watched.lowest() == watched.highest() == REPLICAS
        assert not [reason for reason in WRONG if shop.events(reason)]

    def test_a_versioned_config_map(self, kept: Shop) -> None:
        """A ConfigMap of a new name rolls both twins once, make before break."""
        kapp = Kapp(kept)
        split(kept, kapp, labelled())
        with rolled_once(kept):
            kapp.deploy(labelled("web-config-ver-2"))
            kept.until(
                lambda: (
                    {
                        pod["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
                        for pod in kept.pods()
                    }
                    == {"web-config-ver-2"}
                ),
                "the new ConfigMap everywhere",
            )

    def test_ranks(self, kept: Shop) -> None:
        """What has to come after a split workload comes when that serves: the wait rule of the page."""
        rule = advised()
        kapp = Kapp(kept)
        store = manifest("store", REPLICAS, labels={LABEL: "enabled"})
        kapp.deploy(store)

        def goes_on() -> bool:
            raw = kept.split("store")
            return raw is not None and kapp_says(raw, rule) == "succeeds"

        kept.until(goes_on, "kapp to go on")
        assert len([pod for pod in kept.pods("store") if _is_ready(pod)]) == REPLICAS
        split(kept, kapp, labelled())


def _is_ready(pod: JsonObject) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
    )


def reloaded(shop: Shop, digest: str, *, as_annotation: bool) -> set[str]:
    """Write what Reloader writes for a ConfigMap that has changed; return what it has edited.

    It reads its orders on the Deployment and on its pod template, and sets a variable there, or (its strategy
    `annotations`) an annotation.
    """
    edited = set()
    for name in sorted(shop.deployments()):
        raw = shop.deployment(name)
        template = raw["spec"]["template"]
        if ORDER in {**raw["metadata"].get("annotations", {}), **template["metadata"].get("annotations", {})}:
            variable = {"name": "STAKATER_WEB_CONFIG_CONFIGMAP", "value": digest}
            container = {"name": template["spec"]["containers"][0]["name"], "env": [variable]}
            noted = {"metadata": {"annotations": {WRITTEN: json.dumps({"hash": digest})}}}
            change = noted if as_annotation else {"spec": {"containers": [container]}}
            shop.kubectl("patch", "deployment", name, "-p", json.dumps({"spec": {"template": change}}))
            edited.add(name)
    return edited


class TestReloader:
    @pytest.mark.parametrize("as_annotation", [False, True])
    def test_edits_the_source_alone(self, shop: Shop, as_annotation: bool) -> None:
        """Ordered on the pod template, too: the twins carry no order, and roll once, with their source."""
        made = wanted()
        made["spec"]["template"]["metadata"]["annotations"][ORDER] = "true"
        shop.apply(made)
        shop.wait_rolled_out()
        shop.label()
        shop.wait_split(on_demand=1, spot=3)
        with rolled_once(shop):
            assert reloaded(shop, "1", as_annotation=as_annotation) == {"web"}
            shop.until(lambda: all(_was_reloaded(pod) for pod in shop.pods()), "the new value everywhere")
            shop.wait_split(on_demand=1, spot=3)
        assert not shop.events("Conflict")


def _was_reloaded(pod: JsonObject) -> bool:
    variables = [one["name"] for one in pod["spec"]["containers"][0].get("env", ())]
    return WRITTEN in pod["metadata"]["annotations"] or "STAKATER_WEB_CONFIG_CONFIGMAP" in variables


def test_an_account_that_is_not_exempt(shop: Shop) -> None:
    """If a policy keeps splitter itself from resuming, the Split says so, and splitter tries ever later."""
    objects = shop.sandbox.cluster.objects  # type: ignore[attr-defined] # the world's
    writes = []

    def keep_ours(request: Request) -> Raw | None:
        kept = keep_paused(request, exempt="") if request.user == SPLITTER else None
        writes.extend([request] if kept is not None and not (request.new or {})["spec"].get("paused") else [])
        return kept

    shop.apply(labelled())
    shop.wait_split(on_demand=1, spot=3)
    objects.rules.append(keep_ours)
    with shop.watch() as watched:
        for _ in range(write_conflicts.MOST):
            shop.until(lambda: shop.deployment()["spec"].get("paused") and not _attached(shop), "the pause")
            shop.kubectl("rollout", "resume", "deployment/web")
        shop.says("WriteDenied", "a mutating policy or webhook keeps spec.paused of web at true")
        before = len(writes)
        shop.sandbox.run(passing(60.0))  # type: ignore[attr-defined] # the world's
        assert len(writes) - before < 10
        shop.unlabel()
        shop.wait_given_back()
        assert watched.lowest() >= REPLICAS


def _attached(shop: Shop) -> bool:
    return any(rs["metadata"]["ownerReferences"][0].get("controller") for rs in shop.replica_sets())


def test_applied_server_side_with_paused_false(kept: Shop) -> None:
    """By force, again and again: the workload stays split, and a new image rolls it."""
    made = labelled()
    kept.apply(made)
    kept.wait_split(on_demand=1, spot=3)
    made["spec"]["paused"] = False
    for _ in range(4):
        server_side(kept, made)
        assert kept.deployment()["spec"]["paused"] is True
    with rolled_once(kept):
        server_side(kept, {**labelled(image="web:2"), "apiVersion": "apps/v1", "kind": "Deployment"})
        kept.until(lambda: kept.images() == {"web:2": REPLICAS}, "web:2 everywhere")
    assert not [reason for reason in WRONG if kept.events(reason)]
