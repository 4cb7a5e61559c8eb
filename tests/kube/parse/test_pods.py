"""How pods ask to be spread, as the scheduler reads it."""

from copy import deepcopy

import pytest

from kube.raw import CREATED, READY, Raw, condition, owner, pod, requests
from splitter.core.nodes.fit import MatchExpression, NodeTerm, SpreadConstraint
from splitter.core.reasons import Reason
from splitter.core.replica import Trouble
from splitter.kube import parse
from splitter.kube.parse.fields import instant
from splitter.kube.parse.pods import COST_BEFORE, DELETION_COST, spread_constraints


class TestSpreadConstraints:
    def test_are_read(self) -> None:
        """As the scheduler reads them: what is left out is what it takes then."""
        short = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        terms = [{"key": "app", "operator": "In", "values": ["web"]}, {"key": "canary", "operator": "Exists"}]
        whole = {
            "maxSkew": 2,
            "topologyKey": "host",
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 3,
            "matchLabelKeys": ["pod-template-hash"],
            "labelSelector": {"matchLabels": {"tier": "front"}, "matchExpressions": terms},
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }
        nobody, all_of_it = spread_constraints({"topologySpreadConstraints": [short, whole]})
        assert nobody == SpreadConstraint("zone", 1, strict=False)
        assert all_of_it == SpreadConstraint(
            "host",
            2,
            strict=True,
            selector=(
                MatchExpression("tier", "In", ("front",)),
                MatchExpression("app", "In", ("web",)),
                MatchExpression("canary", "Exists"),
            ),
            label_keys=("pod-template-hash",),
            min_domains=3,
            honors_affinity=False,
            honors_taints=True,
        )
        assert spread_constraints({}) == ()

    def test_more_than_are_heeded(self) -> None:
        """Whoever may write a twin's template chooses how many there are, and how long: it is not spread."""
        selector = {"matchLabels": {"app": "web"}}
        one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        many = [{**one, "topologyKey": f"key-{n}"} for n in range(5)]
        long = [{**one, "labelSelector": {"matchLabels": {f"app-{n}": "web" for n in range(1000)}}}]
        right = [{**one, "labelSelector": selector}]
        sizes = [
            len(spread_constraints({"topologySpreadConstraints": asked})) for asked in (many, long, right)
        ]
        assert sizes == [0, 0, 1]


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

    @pytest.mark.parametrize(("manager", "known"), [("splitter", True), ("kubelet", False)])
    def test_when_a_deletion_cost_was_written(self, manager: str, known: bool) -> None:
        """As the API server says of splitter's own fields."""
        raw = pod(annotations={DELETION_COST: "-1000", COST_BEFORE: ""})
        raw["metadata"]["managedFields"] = [{"manager": manager, "time": READY}, {"manager": "other"}]
        assert parse.pod(raw).cost_at == (instant(READY) if known else None)


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
