"""Parsing: what splitter reads of raw API objects, with Kubernetes' own defaults for what they leave out."""

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kube.raw import CREATED, READY, Raw, condition, deployment, metadata, owner, pod, replica_set, requests
from splitter.core.model import Pool, Trouble
from splitter.core.names import Key
from splitter.core.nodes.facts import Condition, Taint
from splitter.core.nodes.fit import MatchExpression, NodeTerm, Toleration
from splitter.core.reasons import Reason
from splitter.core.split_status import UNREPORTED, RebalanceState
from splitter.kube import parse
from splitter.kube.packed import unpacked
from splitter.kube.parse.fields import instant, quantity
from splitter.kube.parse.pods import COST_BEFORE, DELETION_COST

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class TestQuantities:
    @pytest.mark.parametrize(
        ("written", "millicores"),
        [("250m", 250), ("1.5", 1500), ("2", 2000), (2, 2000), (0.1, 100), ("1500u", 2), ("1n", 1), ("0", 0)],
    )
    def test_cpu(self, written: str | float, millicores: int) -> None:
        """CPU becomes millicores, a part of one rounded up."""
        assert quantity("cpu", written) == millicores

    @pytest.mark.parametrize(
        ("written", "number"),
        [
            ("64Mi", 64 * 2**20),
            ("1Gi", 2**30),
            ("1.5Ki", 1536),
            ("1k", 1000),
            ("2G", 2_000_000_000),
            ("1E", 10**18),
            ("1Ei", 2**60),
            ("1e3", 1000),
            ("1E3", 1000),
            ("100m", 1),
            ("123456789", 123456789),
        ],
    )
    def test_others(self, written: str, number: int) -> None:
        """Everything else becomes bytes or pieces: decimal, binary and exponent suffixes."""
        assert quantity("memory", written) == number

    @pytest.mark.parametrize(
        "written",
        ["", "lots", "1Zi", "5i", "--1", "NaN", "Infinity", "1e999999999", "1e999999999999999999", "1e31"],
    )
    def test_unreadable_is_nothing(self, written: str) -> None:
        """What no API server accepts counts 0: fit is an estimate."""
        assert quantity("memory", written) == 0


class TestInstants:
    @pytest.mark.parametrize("written", ["2026-01-05T09:30:00Z", "2026-01-05T10:30:00+01:00"])
    def test_are_aware(self, written: str) -> None:
        """An instant knows its zone, so that it compares with `now`."""
        assert instant(written) == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def test_without_a_zone(self) -> None:
        """A hand may have left the zone out: an instant of UTC, which compares with all others."""
        assert instant("2026-01-05T09:30:00") == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def test_microseconds(self) -> None:
        """A MicroTime, as Leases and Events have it, is read too."""
        half = instant("2026-01-05T09:30:00.500000Z") - instant(READY)
        assert half == timedelta(milliseconds=500)

    def test_zone_is_kept(self) -> None:
        """No zone is dropped on the way."""
        zone = timezone(timedelta(hours=1))
        assert instant("2026-01-05T10:30:00+01:00").utcoffset() == zone.utcoffset(None)


class TestPods:
    def test_what_is_no_placeholder_holds_nothing(self) -> None:
        """Whatever it is annotated with: our account may delete what bears the label, and nothing else."""
        written = {"splitter.io/held-for": "relief/node-1"}
        assert parse.pod(pod(annotations=written)).held_for == ""
        labels = {"splitter.io/placeholder": "spot"}
        assert parse.pod(pod(annotations=written, labels=labels)).held_for == "relief/node-1"

    def test_ready_on_a_node(self) -> None:
        """A ready pod: since when, where, whose."""
        result = parse.pod(pod("a", {"nodeName": "spot-1"}, {"conditions": [condition("Ready")]}, version=12))
        assert (result.name, result.uid, result.namespace, result.version) == ("a", "uid-a", "shop", 12)
        assert (result.node, result.owner_uid) == ("spot-1", "uid-web-1")
        assert result.ready_since == instant(READY)
        assert result.created == instant(CREATED)
        assert (result.terminating, result.finished, result.trouble) == (False, False, None)

    @pytest.mark.parametrize(("written", "seconds"), [(None, 30), (0, 0), (45, 45), (2**63 - 1, 3600)])
    def test_termination(self, written: int | None, seconds: int) -> None:
        """What it is given to end; the API server takes any number."""
        spec = {} if written is None else {"terminationGracePeriodSeconds": written}
        assert parse.pod(pod(spec=spec)).termination_s == seconds

    def test_provider(self) -> None:
        """Whose machine a node is: the scheme of its providerID."""
        raw = {"metadata": {"name": "a", "uid": "b"}, "spec": {"providerID": "aws:///eu-west-1a/i-1"}}
        assert parse.node_facts(raw).provider == "aws"
        assert parse.node_facts({**raw, "spec": {}}).provider == ""

    def test_fresh(self) -> None:
        """A pod without any status is not bound, not ready and not known to be unschedulable."""
        result = parse.pod(pod())
        assert (result.node, result.ready_since, result.unschedulable_since) == (None, None, None)

    def test_not_ready(self) -> None:
        """A pod whose readiness is False or Unknown is not ready."""
        for status in ("False", "Unknown"):
            assert parse.pod(pod(status={"conditions": [condition("Ready", status)]})).ready_since is None

    @pytest.mark.parametrize(
        ("reason", "since"), [("Unschedulable", READY), ("SchedulingGated", None), ("SchedulerError", None)]
    )
    def test_unschedulable(self, reason: str, since: str | None) -> None:
        """Only what the scheduler has looked at and found no place for is unschedulable."""
        conditions = [condition("PodScheduled", "False", reason=reason)]
        result = parse.pod(pod(status={"conditions": conditions})).unschedulable_since
        assert result == (instant(since) if since else None)

    def test_scheduled(self) -> None:
        """A scheduled pod is not unschedulable."""
        assert parse.pod(pod(status={"conditions": [condition("PodScheduled")]})).unschedulable_since is None

    @pytest.mark.parametrize(
        ("phase", "finished"), [("Failed", True), ("Succeeded", True), ("Running", False)]
    )
    def test_finished(self, phase: str, finished: bool) -> None:
        """An evicted or ended pod is none of its ReplicaSet's replicas."""
        assert parse.pod(pod(status={"phase": phase})).finished is finished

    def test_terminating(self) -> None:
        """A pod with a deletion timestamp is on its way out."""
        assert parse.pod(pod(deletionTimestamp=READY)).terminating

    @pytest.mark.parametrize(("grace_s", "asked"), [(0, "09:30:00"), (30, "09:29:30"), (1800, "09:00:00")])
    def test_asked_to_end(self, grace_s: int, asked: str) -> None:
        """Its deletionTimestamp is when the grace is over; a grace of any length can be read."""
        result = parse.pod(pod(deletionTimestamp=READY, deletionGracePeriodSeconds=grace_s))
        assert result.terminating_since == instant(f"2026-01-05T{asked}Z")
        assert parse.pod(pod(deletionTimestamp=READY, deletionGracePeriodSeconds=10**18)).terminating_since

    def test_owner_must_control(self) -> None:
        """An owner that does not control the pod is not its ReplicaSet; a bare pod has none."""
        raw = pod()
        raw["metadata"]["ownerReferences"] = [owner("Thing", "other", controller=False)]
        assert parse.pod(raw).owner_uid is None
        del raw["metadata"]["ownerReferences"]
        assert parse.pod(raw).owner_uid is None

    def test_image_of_an_init_container(self) -> None:
        """Why a container of a pod that is not ready waits is kept, those before the first one too."""
        waiting = {"reason": "ErrImagePull", "message": "not found"}
        first = {"name": "first", "image": "first:1", "ready": False, "state": {"waiting": waiting}}
        main = {"name": "web", "ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}
        result = parse.pod(
            pod(status={"initContainerStatuses": [first], "containerStatuses": [main]})
        ).trouble
        assert result == Trouble(Reason.IMAGE_PULL_FAILED, '"first:1": not found')

    def test_crash(self) -> None:
        """How a container ended last is kept while it runs again and is not ready."""
        last = {"terminated": {"exitCode": 1, "reason": "Error"}}
        status = {
            "name": "web",
            "ready": False,
            "restartCount": 4,
            "state": {"running": {}},
            "lastState": last,
        }
        result = parse.pod(pod(status={"containerStatuses": [status]})).trouble
        assert result == Trouble(Reason.CRASH_LOOPING, "container web ends with exit code 1 (Error)")

    def test_never_began(self) -> None:
        """What the runtime said of a container that never began is kept while it is tried again."""
        last = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}}
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
        status = {"name": "web", "ready": False, "restartCount": 1, "state": state, "lastState": last}
        result = parse.pod(pod(status={"containerStatuses": [status]})).trouble
        assert result == Trouble(Reason.CONTAINER_CONFIG_INVALID, "container web: no such file")

    def test_no_trouble_when_ready(self) -> None:
        """What a ready pod has been through is not kept."""
        last = {"terminated": {"exitCode": 1, "reason": "Error"}}
        status = {"name": "web", "ready": False, "restartCount": 4, "lastState": last}
        result = parse.pod(pod(status={"conditions": [condition("Ready")], "containerStatuses": [status]}))
        assert (result.trouble, result.unready_since) == (None, None)

    def test_scheduler(self) -> None:
        """Why the scheduler leaves a pod alone is kept."""
        gated = condition("PodScheduled", "False", reason="SchedulingGated")
        result = parse.pod(pod(status={"conditions": [gated]}))
        assert result.trouble is not None
        assert result.trouble.reason is Reason.SCHEDULING_GATED
        assert result.unschedulable_since is None

    @pytest.mark.parametrize(
        ("conditions", "since"),
        [
            ([], None),
            ([condition("PodScheduled", "False")], None),
            ([condition("PodScheduled")], READY),
            ([condition("PodScheduled"), condition("Ready", "False", lastTransitionTime=CREATED)], CREATED),
            ([condition("PodScheduled"), condition("Ready")], None),
        ],
        ids=["new", "unbound", "bound", "not-ready", "ready"],
    )
    def test_unready_since(self, conditions: list[Raw], since: str | None) -> None:
        """A bound pod is not ready since it ceased to be, or since it was bound."""
        result = parse.pod(pod(status={"conditions": conditions})).unready_since
        assert result == (instant(since) if since else None)

    def test_deletion_costs(self) -> None:
        """The cost of a deletion, and what the user had before we changed it."""
        annotations = {DELETION_COST: "-1000", COST_BEFORE: "5"}
        result = parse.pod(pod(annotations=annotations))
        assert (result.deletion_cost, result.cost_before) == ("-1000", "5")
        assert (parse.pod(pod()).deletion_cost, parse.pod(pod()).cost_before) == (None, None)


class TestRequests:
    def asked(self, **spec: object) -> dict[str, int]:
        """Return what a pod asks the scheduler for."""
        return dict(parse.pod(pod(spec=spec)).requests)

    def test_what_all_twins_say_is_kept_once(self) -> None:
        """1,000 twins from one template share where they may stand, and each asks for its own resources."""
        expression = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        web, cart, plain = (
            parse.pod_request({"containers": [requests(cpu=cpu)], "affinity": chosen})
            for cpu, chosen in (("1", affinity), ("2", deepcopy(affinity)), ("1", {}))
        )
        assert web.affinity is cart.affinity
        assert (web.requests, cart.requests) == ({"cpu": 1000}, {"cpu": 2000})
        assert plain.affinity == ()

    def test_what_is_large_is_not_kept(self) -> None:
        """Nothing is left of what was changed or deleted, however often somebody writes it anew."""
        large = {"nodeSelector": {f"label-{number}": "x" for number in range(1000)}, "containers": []}
        first, again = (parse.pod_request(deepcopy(large)) for _ in range(2))
        assert first == again
        assert first.node_selector is not again.node_selector
        assert first.requirements == 1000

    def test_more_than_is_rendered_fits_nowhere(self) -> None:
        """It is held against no node."""
        values = {"key": "zone", "operator": "NotIn", "values": [f"z{number}" for number in range(10_000)]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [values]}]}
        chosen = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        pod_request = parse.pod_request({"containers": [], "affinity": chosen})
        assert (pod_request.affinity, pod_request.requirements) == ((NodeTerm(),), 1)

    def test_containers_add_up(self) -> None:
        """All containers run at once."""
        both = [requests(cpu="100m", memory="64Mi"), requests(cpu="1")]
        assert self.asked(containers=both) == {"cpu": 1100, "memory": 64 * 2**20}

    def test_largest_init_container_counts(self) -> None:
        """Init containers run one after the other, before the rest: only the largest can matter."""
        init = [requests(cpu="2"), requests(cpu="500m", memory="1Gi")]
        asked = self.asked(containers=[requests(cpu="1", memory="2Gi")], initContainers=init)
        assert asked == {"cpu": 2000, "memory": 2 * 2**30}

    def test_sidecars_run_beside(self) -> None:
        """An init container that restarts always goes on running."""
        sidecar = {**requests(cpu="200m"), "restartPolicy": "Always"}
        assert self.asked(containers=[requests(cpu="1")], initContainers=[sidecar]) == {"cpu": 1200}

    def test_of_the_pod_as_a_whole(self) -> None:
        """What is asked for the whole pod counts in place of its containers', resource by resource."""
        whole = {"requests": {"cpu": "8"}}
        asked = self.asked(containers=[requests(cpu="1", memory="1Gi")], resources=whole)
        assert asked == {"cpu": 8000, "memory": 2**30}

    def test_overhead(self) -> None:
        """The overhead of a runtime class comes on top."""
        assert self.asked(containers=[requests(cpu="1")], overhead={"cpu": "50m"}) == {"cpu": 1050}

    def test_nothing_asked(self) -> None:
        """A container without requests asks for nothing."""
        assert self.asked(containers=[{"name": "web"}]) == {}


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
        assert (result.spec_replicas, result.status_replicas, result.available_replicas) == (3, 3, 2)
        assert result.labels == {"app": "web"}
        assert result.template_labels == {"app": "web", "pod-template-hash": "1"}

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
        assert parse.replica_set(raw).template_hash == parse.replica_set(same).template_hash
        same["spec"]["template"]["spec"] = {"containers": [{"name": "web", "image": "web:2"}]}
        assert parse.replica_set(raw).template_hash != parse.replica_set(same).template_hash

    def test_is_the_deployments_template(self) -> None:
        """A Deployment's template and that of its ReplicaSet are known as the same."""
        source = deployment()
        template: dict[str, Any] = json.loads(json.dumps(source["spec"]["template"]))
        template["metadata"]["labels"]["pod-template-hash"] = "abc"
        result = parse.replica_set(replica_set(spec={"template": template}))
        assert parse.source(source).view.template_hash == result.template_hash

    def test_defaults(self) -> None:
        """One without `replicas` wants 1; one without a status has none."""
        raw = replica_set()
        del raw["spec"]["replicas"]
        result = parse.replica_set(raw)
        assert (result.spec_replicas, result.status_replicas, result.available_replicas) == (1, 0, 0)

    def test_refusal(self) -> None:
        """Why the API server takes no more pods is kept; that some could not be deleted is not."""
        failure = condition("ReplicaFailure", reason="FailedCreate", message="exceeded quota: small")
        result = parse.replica_set({**replica_set(), "status": {"conditions": [failure]}})
        assert result.refusal == Trouble(Reason.QUOTA_EXCEEDED, "exceeded quota: small")
        failure["reason"] = "FailedDelete"
        assert parse.replica_set({**replica_set(), "status": {"conditions": [failure]}}).refusal is None

    def test_since_when_it_is_refused(self) -> None:
        """And when we had it try again; what anybody else wrote there counts as nothing."""
        failure = condition("ReplicaFailure", reason="FailedCreate", message="no")
        raw = {**replica_set(), "status": {"conditions": [failure]}}
        since = parse.replica_set(raw).refused_since
        assert since is not None
        assert since.isoformat().startswith(failure["lastTransitionTime"].removesuffix("Z"))
        assert parse.replica_set(raw).retried is None
        for text in ("", "x", "9" * 5000, "2026-13-45T00:00:00Z", "\x00"):
            raw["metadata"]["annotations"] = {"splitter.io/retried": text}
            assert parse.replica_set(raw).retried is None
        at = "2026-01-05T10:00:00.123456+00:00"
        raw["metadata"]["annotations"] = {"splitter.io/retried": at}
        retried = parse.replica_set(raw).retried
        assert retried is not None
        assert retried.isoformat() == at
        del failure["lastTransitionTime"]
        assert parse.replica_set(raw).refused_since is None

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
        [((4, 4, 4), True), ((3, 4, 4), False), ((4, 3, 4), False), ((4, 4, 5), False)],
    )
    def test_rollout(self, counts: tuple[int, int, int], complete: bool) -> None:
        """A rollout is complete when updated, available and all replicas are N."""
        updated, available, total = counts
        status = {
            "observedGeneration": 1,
            "updatedReplicas": updated,
            "availableReplicas": available,
            "replicas": total,
        }
        view = parse.source(deployment(status=status)).view
        assert view.rollout_complete is complete
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
        assert (result.pool, result.rendered_hash, result.observed) == (Pool.SPOT, "abc", True)
        counts = (
            result.spec_replicas,
            result.status_replicas,
            result.available_replicas,
            result.updated_replicas,
        )
        assert counts == (4, 5, 3, 2)
        assert (result.max_surge, result.max_unavailable) == (2, 0)

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
        assert (result.status_replicas, result.updated_replicas, result.observed) == (0, 0, False)

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


def split(status: object = None, spec: Raw | None = None) -> Raw:
    """Return the Split of `web`."""
    named = {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "takeOver": True}
    return {"metadata": metadata("web"), "spec": named if spec is None else spec, "status": status}


class TestSplits:
    def test_as_written(self) -> None:
        """What a reconcile must remember comes back out of the status."""
        status = {
            "state": "Steady",
            "conflict": True,
            "writeConflicts": [READY],
            "rebalance": {"lost": True},
            "policyAnnotations": {"splitter.io/soak": "5m"},
        }
        result = parse.split(split(status))
        assert result.source == Key("Deployment", "shop", "web")
        assert (result.view.takes_over, result.state) == (True, "Steady")
        reported = result.view.status
        assert (reported.state, reported.conflict) == ("Steady", True)
        assert reported.write_conflicts == (instant(READY),)
        assert reported.rebalance == RebalanceState(lost=True)
        assert reported.good_annotations == {"splitter.io/soak": "5m"}
        assert unpacked(result.status) == status

    @pytest.mark.parametrize("status", [None, {}])
    def test_fresh(self, status: object) -> None:
        """A Split without status remembers nothing."""
        result = parse.split(split(status))
        assert (result.view.status, result.state, unpacked(result.status)) == (UNREPORTED, "", {})

    def test_only_reporting(self) -> None:
        """A Split that does not take over reports a refusal."""
        assert not parse.split(split(spec={"source": {"name": "web"}, "takeOver": False})).view.takes_over

    def test_spec_emptied_by_hand(self) -> None:
        """A Split whose spec says nothing is about the Deployment of its own name."""
        result = parse.split(split(spec={}))
        assert result.source == Key("Deployment", "shop", "web")
        assert not result.view.takes_over

    def test_status_is_canonical(self) -> None:
        """The order of keys is not a change that would be written again and again."""
        one, other = split({"state": "Steady", "ready": 4}), split({"ready": 4, "state": "Steady"})
        assert parse.split(one).status == parse.split(other).status


class TestNamespaces:
    def test_only_ours(self) -> None:
        """Of a namespace only our own annotations are kept."""
        annotations = {"splitter.io/soak": "5m", "field.cattle.io/projectId": "p"}
        result = parse.namespace({"metadata": metadata("shop", annotations=annotations)})
        assert (result.name, result.annotations) == ("shop", {"splitter.io/soak": "5m"})

    def test_without_annotations(self) -> None:
        """A namespace that says nothing has no defaults."""
        assert parse.namespace({"metadata": metadata("shop")}).annotations == {}


class TestNodes:
    def test_as_found(self) -> None:
        """What the classifier reads of a node."""
        node_facts = parse.node_facts(
            {
                "metadata": metadata("spot-1", labels={"pool": "spot"}, annotations={"a": "b"}),
                "spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}], "unschedulable": True},
                "status": {
                    "conditions": [condition("Ready", "Unknown", reason="NodeStatusUnknown")],
                    "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                },
            }
        )
        assert (node_facts.name, node_facts.uid, node_facts.labels) == (
            "spot-1",
            "uid-spot-1",
            {"pool": "spot"},
        )
        assert (node_facts.annotations, node_facts.unschedulable) == ({"a": "b"}, True)
        assert node_facts.taints == (Taint("gone", "", "NoSchedule"),)
        assert node_facts.conditions == (Condition("Ready", "Unknown", "NodeStatusUnknown"),)
        assert node_facts.allocatable == {"cpu": 4000, "memory": 16 * 2**30, "pods": 110}
        assert node_facts.deletion_timestamp is None

    def test_newborn(self) -> None:
        """A node that has registered and said nothing yet."""
        node_facts = parse.node_facts({"metadata": metadata("new")})
        assert (
            node_facts.taints,
            node_facts.conditions,
            node_facts.allocatable,
            node_facts.unschedulable,
        ) == ((), (), {}, False)

    def test_going(self) -> None:
        """A node that is being deleted says since when."""
        node_facts = parse.node_facts({"metadata": metadata("old", deletionTimestamp=READY)})
        assert node_facts.deletion_timestamp == instant(READY)
