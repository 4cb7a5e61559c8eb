"""Sources, twins and ReplicaSets as they are read, with Kubernetes' own defaults for what they leave out."""

import json
from typing import Any

import pytest

from builders import NOW
from kube.raw import READY, Raw, condition, deployment, owner, replica_set, requests
from splitter.core.names import Key
from splitter.core.nodes.fit import MatchExpression, NodeTerm, Toleration
from splitter.core.reasons import Reason
from splitter.core.replica import Pool, Trouble
from splitter.core.split_status import Condition
from splitter.kube import parse

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class TestReplicaSets:
    def test_attached(self) -> None:
        """A ReplicaSet that the Deployment controls: whose, how many, which template."""
        status = {"replicas": 3, "availableReplicas": 2}
        result = parse.replica_set({**replica_set(labels={"app": "web"}), "status": status})
        assert (result.controller_uid, result.owner_uids, result.owner_name) == (
            "uid-web",
            ("uid-web",),
            "web",
        )
        assert (result.view.spec_replicas, result.view.status_replicas, result.view.available_replicas) == (
            3,
            3,
            2,
        )
        assert result.labels == {"app": "web"}
        assert result.view.template_labels == {"app": "web", "pod-template-hash": "1"}

    def test_parked(self) -> None:
        """A parked one still has its owner, and no controller."""
        owners = [owner("Deployment", "web", controller=False)]
        result = parse.replica_set(replica_set(ownerReferences=owners))
        assert (result.controller_uid, result.owner_name) == (None, "web")

    def test_foreign(self) -> None:
        """A ReplicaSet without owner, or with one that is no Deployment, belongs to no source."""
        for owners in ([], [owner("Rollout", "web")]):
            result = parse.replica_set(replica_set(ownerReferences=owners))
            assert (result.owner_uids, result.owner_name) == ((), None)

    def test_template_without_the_controllers_hash(self) -> None:
        """The template's hash leaves out the label that the Deployment controller adds to each."""
        raw, same = replica_set(), replica_set("web-2")
        same["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "2"
        assert parse.replica_set(raw).view.template_hash == parse.replica_set(same).view.template_hash
        same["spec"]["template"]["spec"] = {"containers": [{"name": "web", "image": "web:2"}]}
        assert parse.replica_set(raw).view.template_hash != parse.replica_set(same).view.template_hash

    @pytest.mark.parametrize(
        ("change", "equal"),
        [
            ({"affinity": {}, "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}, True),
            ({"terminationGracePeriodSeconds": 7}, False),
        ],
    )
    def test_of_a_twin(self, change: Raw, equal: bool) -> None:
        """Where its pods may stand and our own marks apart, its template is the source's or is not."""
        source = deployment()
        template: dict[str, Any] = json.loads(json.dumps(source["spec"]["template"]))
        ours = {"splitter.io/pool": "spot", "splitter.io/source": "web", "pod-template-hash": "abc"}
        template["metadata"]["labels"].update(ours)
        template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-11-27T07:00:00Z"}
        template["spec"].update(change)
        result = parse.replica_set(replica_set(labels=ours, spec={"template": template}))
        assert (result.view.pod_hash == parse.source(source).view.pod_hash) is equal

    def test_is_the_deployments_template(self) -> None:
        """A Deployment's template and that of its ReplicaSet are known as the same."""
        source = deployment()
        template: dict[str, Any] = json.loads(json.dumps(source["spec"]["template"]))
        template["metadata"]["labels"]["pod-template-hash"] = "abc"
        result = parse.replica_set(replica_set(spec={"template": template}))
        assert parse.source(source).view.template_hash == result.view.template_hash

    def test_defaults(self) -> None:
        """One without `replicas` wants 1; one without a status has none."""
        raw = replica_set()
        del raw["spec"]["replicas"]
        result = parse.replica_set(raw)
        assert (result.view.spec_replicas, result.view.status_replicas, result.view.available_replicas) == (
            1,
            0,
            0,
        )

    def test_refusal(self) -> None:
        """Why the API server takes no more pods is kept; that some could not be deleted is not."""
        failure = condition("ReplicaFailure", reason="FailedCreate", message="exceeded quota: small")
        result = parse.replica_set({**replica_set(), "status": {"conditions": [failure]}})
        assert result.view.refusal == Trouble(Reason.QUOTA_EXCEEDED, "exceeded quota: small")
        failure["reason"] = "FailedDelete"
        assert parse.replica_set({**replica_set(), "status": {"conditions": [failure]}}).view.refusal is None

    def test_since_when_it_is_refused(self) -> None:
        """And when we had it try again; what anybody else wrote there counts as nothing."""
        failure = condition("ReplicaFailure", reason="FailedCreate", message="no")
        raw = {**replica_set(), "status": {"conditions": [failure]}}
        since = parse.replica_set(raw).view.refused_since
        assert since is not None
        assert since.isoformat().startswith(failure["lastTransitionTime"].removesuffix("Z"))
        assert parse.replica_set(raw).view.retried is None
        for text in ("", "x", "9" * 5000, "2026-13-45T00:00:00Z", "\x00"):
            raw["metadata"]["annotations"] = {"splitter.io/retried": text}
            assert parse.replica_set(raw).view.retried is None
        at = "2026-01-05T10:00:00.123456+00:00"
        raw["metadata"]["annotations"] = {"splitter.io/retried": at}
        retried = parse.replica_set(raw).view.retried
        assert retried is not None
        assert retried.isoformat() == at
        del failure["lastTransitionTime"]
        assert parse.replica_set(raw).view.refused_since is None

    def test_deleting(self) -> None:
        """One that is being deleted is known as such."""
        assert parse.replica_set(replica_set(deletionTimestamp=READY)).deleting


def rolling(surge: int | str | None, unavailable: int | str | None, replicas: int = 4) -> Raw:
    """Return a Deployment's spec with these numbers of a rolling update."""
    numbers = {"maxSurge": surge, "maxUnavailable": unavailable}
    written = {name: number for name, number in numbers.items() if number is not None}
    return {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": written}}


class TestRollingNumbers:
    """maxSurge is rounded up and maxUnavailable down, as the Deployment controller does."""

    @pytest.mark.parametrize(
        ("surge", "unavailable", "replicas", "resolved"),
        [
            (2, 1, 4, (2, 1)),
            (f"{'9' * 5000}%", 1, 4, (40_000_000, 1)),  # the API server takes it; so many are as good as any
            ("25%", "25%", 4, (1, 1)),
            ("25%", "25%", 5, (2, 1)),
            ("25%", "25%", 3, (1, 0)),
            ("25%", "25%", 1, (1, 0)),
            ("100%", "0%", 7, (7, 0)),
            (
                "7%",
                "29%",
                100,
                (7, 29),
            ),  # in floating point 0.07 * 100 is more than 7, 0.29 * 100 less than 29
            ("1%", "99%", 10, (1, 9)),
            (None, None, 8, (2, 2)),
            (0, "25%", 3, (0, 1)),
            (0, 0, 4, (0, 1)),
            ("0%", "0%", 4, (0, 1)),
            ("25%", "25%", 0, (0, 1)),
        ],
    )
    def test_resolved(
        self, surge: int | str | None, unavailable: int | str | None, replicas: int, resolved: tuple[int, int]
    ) -> None:
        """Percentages of N, Kubernetes' default of 25%, and never both 0."""
        view = parse.source(deployment(spec=rolling(surge, unavailable, replicas))).view
        assert (view.max_surge, view.max_unavailable) == resolved

    def test_without_strategy(self) -> None:
        """A spec that says nothing about its strategy has the defaults."""
        view = parse.source(deployment(spec={"strategy": {}})).view
        assert (view.max_surge, view.max_unavailable, view.recreate) == (1, 1, False)

    def test_recreate(self) -> None:
        """Recreate is seen."""
        assert parse.source(deployment(spec={"strategy": {"type": "Recreate"}})).view.recreate


def managed(manager: str, operation: str, *, paused: bool = True, **fields: object) -> Raw:
    """Return an entry of managedFields, of a manager that owns spec.paused or something else."""
    owned: Raw = {"f:paused": {}} if paused else {"f:replicas": {}}
    entry = {
        "manager": manager,
        "operation": operation,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": owned},
    }
    return {**entry, **fields}


class TestSources:
    def test_as_found(self) -> None:
        """What the planner reads of a source."""
        view = parse.source(deployment(labels={"splitter.io/split": "enabled"}, version=7, generation=3)).view
        assert view.key == Key("Deployment", "shop", "web")
        assert (view.uid, view.resource_version, view.generation) == ("uid-web", "7", 3)
        assert (view.replicas, view.paused, view.deleting) == (4, False, False)
        assert view.labels == {"splitter.io/split": "enabled"}
        assert view.controller is None

    def test_replicas_left_out(self) -> None:
        """A Deployment that names no number has one replica."""
        raw = deployment()
        del raw["spec"]["replicas"]
        assert parse.source(raw).view.replicas == 1

    @pytest.mark.parametrize(("seen", "observed"), [(2, False), (3, True), (4, True)])
    def test_observed(self, seen: int, observed: bool) -> None:
        """Its controller has caught up when it has seen the generation."""
        view = parse.source(deployment(status={"observedGeneration": seen}, generation=3)).view
        assert view.observed is observed

    @pytest.mark.parametrize(
        ("counts", "complete"),
        [
            ((4, 4, 4), True),
            ((3, 4, 4), False),
            ((4, 3, 4), True),
            ((3, 3, 3), True),
            ((4, 4, 5), False),
            ((5, 5, 5), False),
        ],
    )
    def test_rollout(self, counts: tuple[int, int, int], complete: bool) -> None:
        """Nothing rolls where all pods are updated and no more than N, available or not."""
        updated, available, total = counts
        status = {
            "observedGeneration": 1,
            "updatedReplicas": updated,
            "availableReplicas": available,
            "replicas": total,
        }
        view = parse.source(deployment(status=status)).view
        assert view.rollout_complete is complete
        assert view.all_available is (available == 4)
        assert view.rollout == f"{updated} updated, {available} available, {total} in all, 4 wanted"

    def test_rollout_not_yet_observed(self) -> None:
        """Counts of an older generation say nothing about this one."""
        status = {"observedGeneration": 1, "updatedReplicas": 4, "availableReplicas": 4, "replicas": 4}
        assert not parse.source(deployment(status=status, generation=2)).view.rollout_complete

    def test_owned_by_a_controller(self) -> None:
        """A Deployment that an operator made is known by its controller."""
        owners = [owner("Thing", "shop", controller=False), owner("Shop", "big")]
        assert parse.source(deployment(ownerReferences=owners)).view.controller == "Shop/big"

    def test_manifest(self) -> None:
        """What templates get is the user's part of the object, without status and the server's own fields."""
        raw = deployment(labels={"app": "web"}, managedFields=[managed("kubectl", "Update")], status={"x": 1})
        document = json.loads(parse.source(raw).view.manifest_json)
        assert document["spec"] == raw["spec"]
        assert document["metadata"] == {
            "name": "web",
            "namespace": "shop",
            "uid": "uid-web",
            "labels": {"app": "web"},
        }
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}

    def test_manifest_is_canonical(self) -> None:
        """The order of keys in an answer makes no difference."""
        raw = deployment()
        turned = {**raw, "spec": dict(reversed(raw["spec"].items()))}
        assert parse.source(raw).view.manifest_json == parse.source(turned).view.manifest_json


class TestKarmada:
    """Who writes it, and what its status says of its replicas."""

    @pytest.mark.parametrize(
        ("labels", "is_karmadas"),
        [({"karmada.io/managed": "true"}, True), ({"karmada.io/managed": "false"}, False), ({}, False)],
    )
    def test_label(self, labels: dict[str, str], *, is_karmadas: bool) -> None:
        """As Karmada marks every object that it writes."""
        assert parse.source(deployment(labels=labels)).view.by_karmada is is_karmadas

    def test_condition(self) -> None:
        """Ours, among others."""
        ours = {
            "type": "splitter.io/Available",
            "status": "True",
            "reason": "AsExpected",
            "message": "4 of 4",
            "lastTransitionTime": "2026-01-05T10:00:00Z",
            "lastUpdateTime": "2026-01-05T10:00:00Z",
        }
        status = {"conditions": [{"type": "Progressing", "status": "True"}, ours]}
        there = Condition("splitter.io/Available", "True", "AsExpected", "4 of 4", NOW)
        assert parse.source(deployment(status=status)).view.available == there
        assert (
            parse.source(deployment(status={"conditions": status["conditions"][:1]})).view.available is None
        )

    def test_condition_that_is_none_of_ours(self) -> None:
        """Nonsense of another writer's is read as nothing that we would write, so it is written anew."""
        status = {"conditions": [{"type": "splitter.io/Available", "status": 1, "message": []}]}
        assert parse.source(deployment(status=status)).view.available == Condition("splitter.io/Available")


class TestSelectors:
    def keys(self, **selector: object) -> tuple[tuple[str, ...], bool]:
        """Return the labels to strip from a ReplicaSet, and whether stripping releases it."""
        view = parse.source(deployment(spec={"selector": selector})).view
        return view.selector_keys, view.releasable

    def test_labels_and_positive_terms(self) -> None:
        """Without any one of these labels a ReplicaSet no longer matches."""
        terms = [
            {"key": "tier", "operator": "In", "values": ["front"]},
            {"key": "app", "operator": "Exists"},
            {"key": "canary", "operator": "DoesNotExist"},
        ]
        assert self.keys(matchLabels={"app": "web"}, matchExpressions=terms) == (("app", "tier"), True)

    def test_only_negative_terms(self) -> None:
        """A selector that asks for absences only matches whatever is stripped."""
        terms = [{"key": "canary", "operator": "NotIn", "values": ["yes"]}]
        assert self.keys(matchExpressions=terms) == ((), False)


class TestWhoPauses:
    """managedFields and the last-applied annotation tell who holds spec.paused."""

    @pytest.mark.parametrize("operation", ["Update", "Apply"])
    def test_paused_by_us(self, operation: str) -> None:
        """f:paused of our own field manager: the pause is ours, even when mark and label are gone."""
        raw = deployment(spec={"paused": True}, managedFields=[managed("splitter", operation)])
        view = parse.source(raw).view
        assert (view.paused, view.paused_by_us, view.unpaused_by_manifest) == (True, True, None)

    @pytest.mark.parametrize(
        "fields",
        [
            [],
            [managed("kubectl", "Update")],
            [managed("splitter", "Update", paused=False)],
            [managed("splitter", "Update", fieldsV1=None)],
            [managed("splitter", "Update", fieldsV1={"f:status": {"f:paused": {}}})],
        ],
    )
    def test_paused_by_others(self, fields: list[Raw]) -> None:
        """The pause is not ours when we do not own that field, or when nobody says who does."""
        assert not parse.source(deployment(spec={"paused": True}, managedFields=fields)).view.paused_by_us

    def test_applied_server_side(self) -> None:
        """An applier that owns `paused` of a Deployment that is not paused wrote `paused: false`."""
        fields = [managed("kustomize-controller", "Apply")]
        view = parse.source(deployment(spec={"paused": False}, managedFields=fields)).view
        assert view.unpaused_by_manifest == "the manifest applied by kustomize-controller"

    def test_absent_in_the_answer(self) -> None:
        """The API server leaves `paused: false` out of its answers; who owns it still says it."""
        view = parse.source(deployment(managedFields=[managed("argocd", "Apply")])).view
        assert view.unpaused_by_manifest == "the manifest applied by argocd"

    def test_resumed_by_hand(self) -> None:
        """`kubectl rollout resume` (an Update) is one act, no manifest that comes again."""
        view = parse.source(deployment(managedFields=[managed("kubectl-rollout", "Update")])).view
        assert view.unpaused_by_manifest is None

    def test_our_own_unpause(self) -> None:
        """What we wrote ourselves is nobody's manifest."""
        view = parse.source(deployment(managedFields=[managed("splitter", "Apply")])).view
        assert view.unpaused_by_manifest is None

    def test_applied_paused(self) -> None:
        """A manifest that says `paused: true` does not unpause."""
        raw = deployment(spec={"paused": True}, managedFields=[managed("argocd", "Apply")])
        assert parse.source(raw).view.unpaused_by_manifest is None

    @pytest.mark.parametrize("now_paused", [False, True])
    def test_applied_client_side(self, now_paused: bool) -> None:
        """A last-applied `paused: false` unpauses with the next apply, paused or not."""
        applied = {LAST_APPLIED: json.dumps({"spec": {"paused": False}})}
        view = parse.source(deployment(spec={"paused": now_paused}, annotations=applied)).view
        assert view.unpaused_by_manifest == "the manifest applied with kubectl"

    @pytest.mark.parametrize(
        "applied",
        ['{"spec": {"paused": true}}', '{"spec": {}}', "{}", "not JSON", "[]", '"text"', '{"spec": []}', ""],
    )
    def test_applied_without_it(self, applied: str) -> None:
        """One that says nothing about it, or is no manifest at all, objects to nothing."""
        view = parse.source(deployment(annotations={LAST_APPLIED: applied})).view
        assert view.unpaused_by_manifest is None


def twin(pool: str = "spot", spec: Raw | None = None, status: Raw | None = None, **fields: Any) -> Raw:  # noqa: ANN401 (fields of metadata)
    """Return a twin of `web`."""
    labels = {"splitter.io/split": "twin", "splitter.io/pool": pool}
    owners = [owner("Deployment", "web")]
    made = {"labels": labels, "ownerReferences": owners, **fields}
    return deployment(f"web-{pool}", spec, status, **made)


class TestTwins:
    def test_as_found(self) -> None:
        """A twin: whose, which pool, how many, from which rendering."""
        status = {"replicas": 5, "availableReplicas": 3, "updatedReplicas": 2, "observedGeneration": 1}
        annotations = {"splitter.io/rendered-hash": "abc"}
        result = parse.twin(twin("spot", rolling(2, 0), status, annotations=annotations))
        assert (result.source, result.source_uid) == (Key("Deployment", "shop", "web"), "uid-web")
        assert (result.pool, result.view.rendered_hash, result.view.observed) == (Pool.SPOT, "abc", True)
        counts = (
            result.view.spec_replicas,
            result.view.status_replicas,
            result.view.available_replicas,
            result.view.updated_replicas,
        )
        assert counts == (4, 5, 3, 2)
        assert (result.view.max_surge, result.view.max_unavailable) == (2, 0)
        assert not result.view.robbed

    @pytest.mark.parametrize(
        "taken",
        [
            {"ownerReferences": []},
            {"labels": {"splitter.io/pool": "spot", "splitter.io/source": "web"}},
            {"labels": {"splitter.io/split": "no", "splitter.io/pool": "spot"}},
        ],
    )
    def test_robbed(self, taken: Raw) -> None:
        """Without its owner or its label it is written whole again; its hash is known still."""
        labels = {"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"}
        annotations = {"splitter.io/rendered-hash": "abc"}
        view = parse.twin(twin(annotations=annotations, **{"labels": labels, **taken})).view
        assert (view.robbed, view.rendered_hash, view.bears("abc")) == (True, "abc", False)

    def test_of_nobody(self) -> None:
        """A Deployment of a user's with our label, no owner and nothing that says whose twin it is: none."""
        raw = twin(ownerReferences=[])
        with pytest.raises(ValueError, match="says whose twin it is"):
            parse.twin(raw)

    def test_pools(self) -> None:
        """The pool comes from the twin's label."""
        assert parse.twin(twin("on-demand")).pool is Pool.ON_DEMAND
        assert parse.twin(twin("spot")).pool is Pool.SPOT

    def test_fresh(self) -> None:
        """A twin that its controller has not seen yet has nothing and is not observed."""
        result = parse.twin(twin())
        assert (result.view.status_replicas, result.view.updated_replicas, result.view.observed) == (
            0,
            0,
            False,
        )

    def test_request(self) -> None:
        """What the scheduler will look at: requests, selector, required affinity, tolerations."""
        affinity = {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]},
            ]
        }
        spec = {
            "containers": [requests(cpu="100m")],
            "nodeSelector": {"zone": "a"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
            "tolerations": [{"operator": "Exists"}, {"key": "spot", "value": "true", "effect": "NoSchedule"}],
        }
        result = parse.twin(twin(spec={"template": {"metadata": {}, "spec": spec}})).request
        assert result.requests == {"cpu": 100}
        assert result.node_selector == {"zone": "a"}
        assert result.affinity == (
            NodeTerm((MatchExpression("pool", "In", ("a", "b")),), ()),
            NodeTerm((), (MatchExpression("metadata.name", "Exists", ()),)),
        )
        assert result.tolerations == (
            Toleration("", "Exists", "", ""),
            Toleration("spot", "Equal", "true", "NoSchedule"),
        )

    @pytest.mark.parametrize(
        "spec",
        [{}, {"affinity": {}}, {"affinity": {"nodeAffinity": {}}}, {"affinity": None, "tolerations": None}],
    )
    def test_request_of_nothing(self, spec: Raw) -> None:
        """A pod that asks for nothing fits by resources alone."""
        result = parse.twin(twin(spec={"template": {"metadata": {}, "spec": spec}})).request
        assert (result.affinity, result.tolerations, result.node_selector) == ((), (), {})
