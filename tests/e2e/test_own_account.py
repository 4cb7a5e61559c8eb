"""splitter's own account tries to break out: it may do everything here, and the policy alone holds it.

That it may do what it has to is shown by all the other end-to-end tests: each runs under this policy
(`lab.fixtures.controller.install`). What is refused is refused after each write that is allowed, too, and
with every option of a deletion: a right that is checked in one step must not be unlocked by another.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest

from e2e.support.admission import checked
from e2e.support.attempts import ATTEMPTS, BUDGETS, IN_BACKGROUND, LEFT_OUT, OF_A_SOURCE
from e2e.support.own_account import (
    ACCOUNT,
    OURS,
    POLICY,
    STRATEGIC,
    Stage,
    adopting_like,
    guarding,
    image,
    labelled,
    metadata,
    orphaning,
    owner_of,
    owner_off,
    parked_like,
    placeholder,
    split_of,
    staged,
    twin_of,
)
from lab.fixtures.controller import Controller
from lab.fixtures.shop import JsonObject, manifest
from lab.sandbox import ApiError, PatchKind, Sandbox
from lab.sandbox.fleet import Fleet
from splitter.bundled import bundled_path

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, controller: Controller, kubeconfig: Path, machines: Fleet) -> Iterator[Stage]:
    """Yield one split workload, and others that are nobody's business."""
    assert machines.names("spot")
    yield from staged(sandbox, controller, kubeconfig)


class TestAttempts:
    @pytest.mark.parametrize("what", ATTEMPTS)
    def test_is_refused(self, stage: Stage, what: str) -> None:
        """What is none of splitter's business is refused, with a sentence that says what it may do."""
        words, attempt = ATTEMPTS[what]
        assert words in stage.refusal(attempt)

    def test_somebody_else_may(self, stage: Stage) -> None:
        """The policy is about splitter's account only: an administrator may do all of it."""
        stage.shop.kubectl("scale", "deployment", "plain", "--replicas=1", "--dry-run=server")
        stage.shop.kubectl("delete", "pod", "bare", "--dry-run=server", "--force")
        stage.shop.apply({**manifest("mine", 0), "metadata": {"name": "mine"}})

    def test_what_it_has_to_do(self, stage: Stage) -> None:
        """The same verbs on the same objects go through where they are what splitter does."""
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-1000", "splitter.io/deletion-cost-before": ""}
        stage.patch("pods", "{pod}", metadata(annotations=cost))
        stage.delete("pods", "{pod}")
        stage.delete("pods", "{stateful}", gracePeriodSeconds=0)
        stage.patch("deployments", "web", {"spec": {"paused": None}})
        stage.patch("deployments", "web", metadata(annotations={"splitter.io/taken-over": None}))
        stage.patch("replicasets", "{parked}", {"spec": {"replicas": 2}})
        labels: JsonObject = {"splitter.io/pool": "spot", "splitter.io/source": "plain"}
        stage.patch("pods", "{pod}", metadata(labels=labels))
        stage.patch("pods", "{pod}", metadata(labels=dict.fromkeys(labels)))
        given = stage.read("replicasets", "{parked}")["spec"]["template"]["metadata"]["labels"]
        stage.patch("replicasets", "{parked}", metadata(labels={**given, "splitter.io/split": None}))
        retried: JsonObject = {"splitter.io/retried": "2026-01-05T10:00:00+00:00"}
        stage.patch("replicasets", "{attached}", metadata(annotations=retried))
        stage.delete("replicasets", "{attached}", **orphaning(stage, "{attached}"))
        stage.patch("pods", "{pod}", owner_off(stage), STRATEGIC)
        stage.create("replicasets", adopting_like(stage))
        stage.create("replicasets", labelled(adopting_like(stage), "enabled"))  # as its template has it
        stage.patch("deployments", "web-spot", {"spec": {"paused": True}})
        stage.create("replicasets", parked_like(stage))
        stage.create("pods", placeholder(stage))
        stage.evict("{pod}")
        stage.delete("pods", "loose")
        stage.create("poddisruptionbudgets", guarding(stage))
        stage.patch("poddisruptionbudgets", "web-guard", {"spec": {"minAvailable": 4}})
        stage.delete("poddisruptionbudgets", "web-guard")
        stage.delete("replicasets", "{parked}")
        stage.patch("deployments", "web-spot", {"spec": {"replicas": 4}})
        stage.patch("deployments", "web-spot", image(), STRATEGIC)
        stage.delete("deployments", "web-spot")

    def test_what_it_has_to_do_with_a_twin_that_was_robbed(self, stage: Stage) -> None:
        """A twin that somebody has taken its labels and its owner from is scaled, written whole, deleted."""
        path = stage.path("deployments", "web-spot")
        raw = stage.read("deployments", "web-spot")
        stolen = metadata(
            labels={"splitter.io/split": None, "splitter.io/source": None}, ownerReferences=None
        )
        with stage.resting():
            stage.shop.sandbox.api.patch(path, stolen)
            stage.patch("deployments", "web-spot", {"spec": {"replicas": 4}})
            given = metadata(
                labels=raw["metadata"]["labels"], ownerReferences=raw["metadata"]["ownerReferences"]
            )
            stage.patch("deployments", "web-spot", given)
            stage.delete("deployments", "web-spot")
            stage.shop.sandbox.api.patch(path, given)

    def test_what_it_has_to_do_with_a_guard_that_lost_its_owner(self, stage: Stage) -> None:
        """One out of a backup, or orphaned with its Split, is written and deleted by its label."""
        path = stage.path("poddisruptionbudgets", "web-guard")
        owners = stage.read("poddisruptionbudgets", "web-guard")["metadata"]["ownerReferences"]
        owned, returned = metadata(ownerReferences=owners), {"labels": {"splitter.io/source": "web"}}
        with stage.resting():
            stage.shop.sandbox.api.patch(path, metadata(ownerReferences=None))
            stage.patch("poddisruptionbudgets", "web-guard", {**owned, "spec": {"minAvailable": 4}})
            stage.delete("poddisruptionbudgets", "web-guard")
            stage.shop.sandbox.api.patch(path, metadata(labels={"splitter.io/source": None}))
            assert BUDGETS in stage.refusal(lambda s: s.patch("poddisruptionbudgets", "web-guard", owned))
            assert BUDGETS in stage.refusal(lambda s: s.delete("poddisruptionbudgets", "web-guard"))
            stage.shop.sandbox.api.patch(path, {**owned, "metadata": {**owned["metadata"], **returned}})

    def test_a_source_as_large_as_they_get(self, stage: Stage) -> None:
        """A template of almost a megabyte is compared within what an expression may cost."""
        body = manifest("huge", 0, labels={"splitter.io/split": "nonsense"})
        [container] = body["spec"]["template"]["spec"]["containers"]
        container["env"] = [{"name": f"V{number}", "value": "x" * 900} for number in range(1000)]
        stage.shop.sandbox.api.create(stage.path("deployments"), body)
        stage.patch("deployments", "huge", {"spec": {"paused": True}})
        container["env"][999]["value"] = "y"
        assert OF_A_SOURCE in stage.refusal(lambda one: one.patch("deployments", "huge", body, STRATEGIC))


OPTIONS: dict[str, JsonObject] = {
    "at once": {"gracePeriodSeconds": 0},
    "within a second": {"gracePeriodSeconds": 1},
    **{f"propagated {how}": {"propagationPolicy": how} for how in ("Orphan", "Background", "Foreground")},
    "with orphans": {"orphanDependents": True},
    "without orphans": {"orphanDependents": False},
    "unread": {"ignoreStoreReadErrorWithClusterBreakingPotential": True, "preconditions": None},
    "whatever it is now": {"preconditions": {}},
}
AT_ONCE = {"at once", "within a second"}
OF_PODS = {"propagated Background"}
# What the account may end, and with which of these options.
MAY_END: dict[str, tuple[Callable[[Stage], object], set[str]]] = {
    "a twin": (
        lambda s: s.delete("deployments", "web-spot"),
        AT_ONCE | {"propagated Background", "whatever it is now"},
    ),
    "a Split": (
        lambda s: s.delete("splits", "web"),
        AT_ONCE | {"propagated Background", "whatever it is now"},
    ),
    "a guard": (
        lambda s: s.delete("poddisruptionbudgets", "web-guard"),
        AT_ONCE | {"propagated Background", "whatever it is now"},
    ),
    "a pod of a ReplicaSet": (lambda s: s.delete("pods", "{pod}"), OF_PODS),
    "a pod of a StatefulSet": (lambda s: s.delete("pods", "{stateful}"), AT_ONCE | OF_PODS),
    "a pod that a ReplicaSet has let go": (lambda s: s.delete("pods", "loose"), OF_PODS),
    "any pod, by an eviction": (lambda s: s.evict("{daemon}"), set()),
}


def _is_held(stage: Stage, attempt: Callable[[Stage], object]) -> bool:
    """Whether the policy refuses an attempt.

    Or the API server before it: options that it does not know (422), and what a step of the account's own has
    ended (404).
    """
    try:
        attempt(stage)
    except ApiError as refusal:
        if refusal.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return bool(stage.options)
        gone = refusal.status == HTTPStatus.NOT_FOUND and not stage.controller.running
        return gone or (refusal.status == HTTPStatus.FORBIDDEN and f"'{POLICY}'" in str(refusal))
    return False


class TestOptions:
    @pytest.mark.parametrize("asked", OPTIONS)
    def test_open_no_deletion(self, stage: Stage, asked: str) -> None:
        """What may not be deleted or evicted may not be with any option either."""
        ends = {
            what: attempt
            for what, (words, attempt) in ATTEMPTS.items()
            if what.startswith(("delete", "evict")) and words != IN_BACKGROUND
        }
        with stage.asked_with(**OPTIONS[asked]):
            assert len(ends) > 15
            assert not [what for what, attempt in ends.items() if not _is_held(stage, attempt)]

    @pytest.mark.parametrize("what", MAY_END)
    def test_are_those_that_it_needs(self, stage: Stage, what: str) -> None:
        """What it may delete or evict it may not sooner, nor so that parts stay behind."""
        attempt, may = MAY_END[what]
        attempt(stage)
        allowed = set()
        for asked, options in OPTIONS.items():
            with stage.asked_with(**options):
                allowed |= set() if _is_held(stage, attempt) else {asked}
        assert allowed - {"unread"} == may  # behind a feature gate: without it the field is dropped before


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "splitter-system"])
class TestLeftOutNamespaces:
    def test_have_nothing_written(self, stage: Stage, namespace: str) -> None:
        """What it creates elsewhere is refused there, and so is what it does to pods."""
        payloads = {
            "deployments": twin_of("web", "web-spot"),
            "statefulsets": {**twin_of("web", "web-spot", kind="StatefulSet"), "kind": "StatefulSet"},
            "replicasets": adopting_like(stage),
            "pods": placeholder(stage),
            "poddisruptionbudgets": guarding(stage),
            "splits": split_of(stage, "web", owner="web"),
            "placements": {
                "apiVersion": "splitter.io/v1alpha1",
                "kind": "Placement",
                "metadata": {"name": "splitter-placement"},
                "spec": {"statefulSets": {}},
            },
        }
        del payloads["statefulsets"]["spec"]["strategy"]
        home = stage.shop.namespace
        pod = {"metadata": {"name": "there"}, "spec": placeholder(stage)["spec"]}
        pods = f"/api/v1/namespaces/{namespace}/pods"
        stage.shop.until(partial(_is_created, stage, pods, pod), "a pod there")
        requests: list[tuple[str, str, object, str]] = [
            ("POST", stage.path(kind).replace(home, namespace), body, "application/json")
            for kind, body in payloads.items()
        ]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "there"}}
        requests += [
            ("POST", f"{pods}/there/eviction", eviction, "application/json"),
            ("PATCH", f"{pods}/there", metadata(labels=OURS), PatchKind.MERGE),
            ("DELETE", f"{pods}/there", {"dryRun": ["All"]}, "application/json"),
        ]
        for method, path, body, how in requests:
            with pytest.raises(ApiError, match=LEFT_OUT):
                stage.account.request(method, path, body=body, query=stage.query, content_type=how)
        stage.shop.sandbox.api.request("DELETE", f"{pods}/there")


def _is_created(stage: Stage, pods: str, pod: JsonObject) -> bool:
    try:
        stage.shop.sandbox.api.create(pods, pod)
    except ApiError as refusal:  # a namespace has its account a moment later
        return refusal.status == HTTPStatus.CONFLICT
    return True


class TestThePolicy:
    def test_has_no_mistake_of_types(self, stage: Stage) -> None:
        """The API server finds nothing to complain about in its expressions."""
        status = checked(stage.shop.sandbox, POLICY)["status"]
        assert "expressionWarnings" not in json.dumps(status)

    def test_names_the_account_once(self) -> None:
        """Whoever installs elsewhere changes one line."""
        text = (bundled_path("manifests") / "admission" / "own-account.yaml").read_text()
        assert text.count("splitter-system") == 1
        assert text.count(ACCOUNT) == 1


def _with_twin(stage: Stage) -> None:
    made = twin_of("plain", "plain-spot", uid=stage.read("deployments", "plain")["metadata"]["uid"])
    stage.create("deployments", made)


def _with_split(stage: Stage) -> None:
    owner = {**owner_of("plain"), "uid": stage.read("deployments", "plain")["metadata"]["uid"]}
    made = split_of(stage, "plain", owner="web")
    stage.create("splits", {**made, "metadata": {"name": "plain", "ownerReferences": [owner]}})


def _let_go(stage: Stage) -> None:
    stage.delete("replicasets", "{attached}", **orphaning(stage, "{attached}"))
    stage.shop.until(
        lambda: "ownerReferences" not in stage.read("pods", "{pod}")["metadata"], "the pod to be let go"
    )


def _adopt(stage: Stage) -> None:
    """Create a ReplicaSet of the name and for the pods of the one that is gone."""
    owner, there = stage.read("deployments", "plain"), stage.read("pods", "{pod}")["metadata"]["labels"]
    labels = {key: there[key] for key in ("app", "pod-template-hash")}
    owners = [{**owner_of("plain"), "uid": owner["metadata"]["uid"]}]
    named = {"name": stage.names["attached"], "labels": labels, "ownerReferences": owners}
    template = {**owner["spec"]["template"], "metadata": {"labels": labels}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    stage.create(
        "replicasets", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": spec}
    )


def _park(stage: Stage) -> None:
    [owner] = stage.read("replicasets", "{attached}")["metadata"]["ownerReferences"]
    labels = {"app": None, "splitter.io/split": "parked"}
    given = metadata(labels=labels, ownerReferences=[{**owner, "controller": False}])
    stage.patch("replicasets", "{attached}", given, STRATEGIC)


# What splitter does, one after the other and for good, beside what that opens (docs/security.md says so).
ONE_AFTER_THE_OTHER: dict[str, tuple[Callable[[Stage], object], set[str]]] = {
    "set a pod's deletion cost": (
        lambda s: s.patch(
            "pods",
            "{pod}",
            metadata(annotations={"controller.kubernetes.io/pod-deletion-cost": "-1000"}),
        ),
        set(),
    ),
    "label a pod": (lambda s: s.patch("pods", "{pod}", metadata(labels=OURS)), set()),
    "have a ReplicaSet try again": (
        lambda s: s.patch("replicasets", "{attached}", metadata(annotations={"splitter.io/retried": "now"})),
        set(),
    ),
    "scale a parked ReplicaSet": (
        lambda s: s.patch("replicasets", "{parked}", {"spec": {"replicas": 1}}),
        set(),
    ),
    "create a parked ReplicaSet": (lambda s: s.create("replicasets", parked_like(s, replicas=0)), set()),
    "create a placeholder": (lambda s: s.create("pods", placeholder(s)), set()),
    "create a guard": (lambda s: s.create("poddisruptionbudgets", guarding(s)), set()),
    "change a guard": (
        lambda s: s.patch("poddisruptionbudgets", "web-guard", {"spec": {"minAvailable": 4}}),
        set(),
    ),
    "create a Split": (_with_split, set()),
    "create a twin": (_with_twin, set()),
    "pause a twin": (lambda s: s.patch("deployments", "web-spot", {"spec": {"paused": True}}), set()),
    "change a twin's image": (lambda s: s.patch("deployments", "web-spot", image(), STRATEGIC), set()),
    "scale a twin": (lambda s: s.patch("deployments", "web-spot", {"spec": {"replicas": 4}}), set()),
    "take the mark off a source": (
        lambda s: s.patch("deployments", "web", metadata(annotations={"splitter.io/taken-over": None})),
        set(),
    ),
    "resume a source": (lambda s: s.patch("deployments", "web", {"spec": {"paused": None}}), set()),
    "let pods go": (_let_go, {"take the owner off a pod"}),  # there is none
    "label a pod that is let go": (
        lambda s: s.patch("pods", "{pod}", metadata(labels={**OURS, "splitter.io/pool": "on-demand"})),
        {"take the owner off a pod"},
    ),
    "adopt pods": (_adopt, set()),
    "park a ReplicaSet": (_park, {"scale a ReplicaSet"}),
    "drain a parked ReplicaSet": (
        lambda s: s.patch("replicasets", "{attached}", {"spec": {"replicas": 0}}),
        {"scale a ReplicaSet", "delete a ReplicaSet"},
    ),
}


class TestUnlocked:
    """Last: what is done here is not undone."""

    def test_nothing_by_what_is_allowed(self, stage: Stage) -> None:
        """After each write that splitter's account may do, alone or after the others, the same is refused."""
        opened: dict[str, set[str]] = {}
        with stage.resting():
            stage.shop.sandbox.api.patch(stage.path("deployments", "plain"), {"spec": {"paused": True}})
            for what, (write, _) in ONE_AFTER_THE_OTHER.items():
                with stage.for_good():
                    write(stage)
                unheld = {name for name, (_, attempt) in ATTEMPTS.items() if not _is_held(stage, attempt)}
                opened[what] = unheld
        assert opened == {what: opens for what, (_, opens) in ONE_AFTER_THE_OTHER.items()}
