"""Machines come, are given notice, vanish, fall silent and come back, on a real control plane."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.demo.watching import Watch
from lab.sandbox import Between, Instant, Notice, Sandbox, SandboxError
from lab.sandbox.recording import NodeChange
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

JsonObject = dict[str, Any]
Deploy = Callable[..., str]
Available = Callable[[str, int], None]


@pytest.fixture
def labels(namespace: str) -> dict[str, str]:
    """Return the label that keeps a test's pods on its own machines."""
    return {"test": namespace}


@pytest.fixture
def machines(sandbox: Sandbox, labels: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield three spot machines of the test's own."""
    names = sandbox.fleet.add("spot", 3, labels=labels)
    yield names
    sandbox.fleet.kill(names)


def node(sandbox: Sandbox, name: str) -> JsonObject:
    """Return a raw node."""
    return sandbox.api.get(f"/api/v1/nodes/{name}")


def condition(raw: JsonObject, kind: str) -> str:
    """Return the status of a condition, "" when there is none."""
    collected = [each["status"] for each in raw["status"].get("conditions", []) if each["type"] == kind]
    return collected[0] if collected else ""


def became(raw: JsonObject, kind: str) -> str:
    """Return since when a condition is as it is."""
    [since] = [one["lastTransitionTime"] for one in raw["status"]["conditions"] if one["type"] == kind]
    return str(since)


def pods(sandbox: Sandbox, namespace: str) -> list[JsonObject]:
    """Return the raw pods of a namespace."""
    return sandbox.api.list(f"/api/v1/namespaces/{namespace}/pods")


class TestMachines:
    """What a machine looks like."""

    def test_are_ready_and_carry_their_capacity_type(self, sandbox: Sandbox) -> None:
        """Names count on, zones take turns, labels and taints are as asked."""
        taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
        first, second = sandbox.fleet.add("on-demand", 2, cpu="4", labels={"team": "a"}, taints=[taint])
        raw = node(sandbox, first)
        assert raw["metadata"]["labels"]["karpenter.sh/capacity-type"] == "on-demand"
        assert raw["metadata"]["labels"]["team"] == "a"
        assert raw["status"]["allocatable"]["cpu"] == "4"
        assert raw["spec"]["taints"] == [taint]
        zone = "topology.kubernetes.io/zone"
        assert raw["metadata"]["labels"][zone] != node(sandbox, second)["metadata"]["labels"][zone]
        assert int(second.rsplit("-", 1)[1]) == int(first.rsplit("-", 1)[1]) + 1

    def test_take_no_pods_before_they_are_ready(self, sandbox: Sandbox) -> None:
        """The not-ready taint stays until Ready: as of a kubelet that registers, and is not up yet."""
        with sandbox.record() as recorder:
            names = sandbox.fleet.add("spot", 6)
        changes = [change for change in recorder.recording().changes if isinstance(change, NodeChange)]
        booting = [each.node for each in changes if each.node.name in names and not each.node.ready]
        assert booting
        assert all("node.kubernetes.io/not-ready:NoSchedule" in each.taints for each in booting)

    def test_unknown_names_are_refused(self, sandbox: Sandbox) -> None:
        """A misspelt name is an error, not a test that tests nothing."""
        with pytest.raises(SandboxError, match="no machine called spot-x"):
            sandbox.fleet.kill("spot-x")


class TestPods:
    """How KWOK plays pods."""

    def test_become_ready_after_a_while_and_not_all_at_once(
        self,
        sandbox: Sandbox,
        namespace: str,
        machines: tuple[str, ...],
        deploy: Deploy,
        available: Available,
    ) -> None:
        """Between 2 s and 4 s after scheduling, each at its own moment."""
        assert machines
        with sandbox.record(namespace) as recorder:
            began = Instant.now()
            available(deploy(16, nodes={"test": namespace}), 16)
        seen = recorder.timeline(namespace, {"app": "web"})
        first = seen.available.seconds_until_at_least(1, began)
        assert first is not None
        assert first >= 1.9
        # By KWOK's clock, in seconds: whoever stands still meanwhile sees all of them at one moment.
        assert len({became(pod, "Ready") for pod in pods(sandbox, namespace)}) > 1

    def test_wait_as_long_as_their_annotations_say(
        self,
        sandbox: Sandbox,
        namespace: str,
        machines: tuple[str, ...],
        deploy: Deploy,
        available: Available,
    ) -> None:
        """Not before ready-after and ends-after have passed."""
        assert machines
        pace = {"sandbox.splitter.io/ready-after": "5s", "sandbox.splitter.io/ends-after": "3s"}
        with sandbox.record(namespace) as recorder:
            began = Instant.now()
            path = deploy(2, nodes={"test": namespace}, annotations=pace)
            available(path, 2)
            shrunk = Instant.now()
            sandbox.api.patch(path, {"spec": {"replicas": 0}})
            wait_until(lambda: not pods(sandbox, namespace), what="the pods' end", deadline_s=30)
        seen = recorder.timeline(namespace, {"app": "web"})
        ready_s = seen.available.seconds_until_at_least(2, began)
        assert ready_s is not None
        assert ready_s >= 5  # left to dice it would be 4 s at most
        ended = Instant.now()
        assert (
            seen.total.seconds_below(1, Between(shrunk, ended)) < ended.monotonic_s - shrunk.monotonic_s - 2.9
        )
        assert seen.highest_total(Between(shrunk, ended), with_terminating=False) == 2

    def test_a_bad_image_never_becomes_ready(
        self, sandbox: Sandbox, namespace: str, machines: tuple[str, ...], deploy: Deploy
    ) -> None:
        """It cannot be pulled, and then waits in ImagePullBackOff for ever."""
        assert machines
        reasons: list[str] = []  # from a watch: the first stands for two seconds only

        def see(_at: Instant, pod: JsonObject, _deleted: bool) -> None:
            statuses = pod["status"].get("containerStatuses") or []
            reasons.extend(status["state"]["waiting"]["reason"] for status in statuses)

        with Watch(sandbox.api, f"/api/v1/namespaces/{namespace}/pods", see):
            deploy(1, nodes={"test": namespace}, image="web:bad")
            wait_until(lambda: "ImagePullBackOff" in reasons, what="the back-off", deadline_s=30)
        assert list(dict.fromkeys(reasons)) == ["ErrImagePull", "ImagePullBackOff"]

    def test_a_crashing_image_never_becomes_ready(
        self, sandbox: Sandbox, namespace: str, machines: tuple[str, ...], deploy: Deploy
    ) -> None:
        """It runs, ends with an error, and waits in CrashLoopBackOff."""
        assert machines
        deploy(1, nodes={"test": namespace}, image="web:crash")

        def statuses() -> list[JsonObject]:
            result = pods(sandbox, namespace)
            return [status for pod in result for status in pod["status"].get("containerStatuses") or []]

        (status,) = wait_until(lambda: statuses() or None, what="the crash", deadline_s=30)
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert status["lastState"]["terminated"]["exitCode"] == 1


class TestNotice:
    """Each kind of notice is seen on the Node, and can be taken back."""

    @pytest.mark.parametrize("how", [Notice.TAINT, Notice.CONDITION, Notice.CORDON])
    def test_is_given_and_withdrawn(self, how: Notice, sandbox: Sandbox, machines: tuple[str, ...]) -> None:
        """What was written is gone again after withdraw."""

        def noticed(name: str) -> bool:
            raw = node(sandbox, name)
            tainted = any(taint["key"] == "karpenter.sh/disrupted" for taint in raw["spec"].get("taints", []))
            conditioned = condition(raw, "PreemptionScheduled") == "True"
            return tainted or conditioned or "unschedulable" in raw["spec"]

        assert not any(map(noticed, machines))
        before = Instant.now()
        given = sandbox.fleet.notice(machines, how)
        assert before <= given <= Instant.now()
        assert all(map(noticed, machines))
        sandbox.fleet.withdraw(machines)
        assert not any(map(noticed, machines))

    def test_by_deletion_is_final(self, sandbox: Sandbox, machines: tuple[str, ...]) -> None:
        """The Node stays with a deletionTimestamp until it is killed; withdrawing is refused."""
        first = machines[0]
        sandbox.fleet.notice(first, Notice.DELETION)
        assert "deletionTimestamp" in node(sandbox, first)["metadata"]
        with pytest.raises(SandboxError, match="never takes a deletion back"):
            sandbox.fleet.withdraw(first)
        sandbox.fleet.kill(first)
        assert sandbox.api.find(f"/api/v1/nodes/{first}") is None

    def test_ten_machines_get_it_at_once(
        self, sandbox: Sandbox, record_property: Callable[[str, object], None]
    ) -> None:
        """A swarm of 10 is told and taken away by one call each."""
        swarm = sandbox.fleet.add("spot", 10)
        given = sandbox.fleet.notice(swarm)
        record_property(
            "sandbox, 10 machines: announced within, s", Instant.now().monotonic_s - given.monotonic_s
        )
        assert all(node(sandbox, name)["spec"]["taints"] for name in swarm)
        killed = sandbox.fleet.kill(swarm)
        record_property(
            "sandbox, 10 machines: gone within, s", Instant.now().monotonic_s - killed.monotonic_s
        )
        assert not set(swarm) & {raw["metadata"]["name"] for raw in sandbox.api.list("/api/v1/nodes")}


class TestKilling:
    """A machine that vanishes leaves its pods behind as objects."""

    def test_pods_count_as_unavailable_at_once_and_stay(
        self,
        sandbox: Sandbox,
        namespace: str,
        machines: tuple[str, ...],
        deploy: Deploy,
        available: Available,
    ) -> None:
        """The recorder counts 0 from the kill on, Kubernetes goes on calling them Ready; restore heals."""
        path = deploy(6, nodes={"test": namespace})
        available(path, 6)
        uid = node(sandbox, machines[0])["metadata"]["uid"]
        with sandbox.record(namespace) as recorder:
            killed = sandbox.fleet.kill(machines)
            wait_until(
                lambda: recorder.timeline(namespace).available.at(Instant.now()) == 0,
                what="the recorder to see the kill",
                deadline_s=60,
            )
            assert sandbox.api.get(path)["status"]["availableReplicas"] == 6
            victim = pods(sandbox, namespace)[0]["metadata"]["name"]
            sandbox.api.delete(f"/api/v1/namespaces/{namespace}/pods/{victim}")
            restored = Instant.now()
            assert sandbox.fleet.restore(machines) == machines
            available(path, 6)
            wait_until(
                lambda: victim not in [pod["metadata"]["name"] for pod in pods(sandbox, namespace)],
                what="the deleted pod's end on the machine that is back",
                deadline_s=30,
            )
        seen = recorder.timeline(namespace)
        assert seen.lowest_available() == 0
        assert seen.seconds_below(1, Between(killed, restored)) > 0
        assert node(sandbox, machines[0])["metadata"]["uid"] != uid

    def test_nothing_moves_on_a_machine_that_is_gone(
        self,
        sandbox: Sandbox,
        namespace: str,
        machines: tuple[str, ...],
        deploy: Deploy,
        available: Available,
    ) -> None:
        """A pod that was ending stays Terminating and one that was starting never becomes Ready."""
        # Slow enough that the machines are gone before, on a busy machine too.
        slow = {"sandbox.splitter.io/ends-after": "9s", "sandbox.splitter.io/ready-after": "9s"}
        path = deploy(2, nodes={"test": namespace}, annotations=slow)
        available(path, 2)
        ending = [pod["metadata"]["name"] for pod in pods(sandbox, namespace)]
        # Gracefully deleted, replaced, and the replacements bound: two pods end while two start.
        sandbox.kubectl("delete", "pod", "-n", namespace, "--wait=false", *ending)

        def starting() -> list[str]:
            collected = [pod for pod in pods(sandbox, namespace) if pod["metadata"]["name"] not in ending]
            return [pod["metadata"]["name"] for pod in collected if pod["spec"].get("nodeName")]

        wait_until(lambda: len(starting()) == 2, what="two replacements that are bound", deadline_s=60)
        with sandbox.record(namespace) as recorder:
            killed = sandbox.fleet.kill(machines)
            # Long enough for everything that was put off (9 s) to have happened, had it been played.
            wait_until(
                lambda: Instant.now().monotonic_s - killed.monotonic_s > 10, what="ten seconds", deadline_s=60
            )
        left = {pod["metadata"]["name"]: pod for pod in pods(sandbox, namespace)}
        assert set(ending) <= set(left)
        assert [condition(left[name], "Ready") for name in left if name not in ending] == ["", ""]
        assert recorder.timeline(namespace).available.at(Instant.now()) == 0

    def test_its_lease_outlives_it(self, sandbox: Sandbox, machines: tuple[str, ...]) -> None:
        """KWOK passes over the pods of a machine while its lease is made again: so it never is.

        Another machine's Node is deleted by hand before: where its lease is gone, garbage collection has
        looked at what the Nodes left.
        """

        def lease(name: str) -> JsonObject | None:
            return sandbox.api.find(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")

        def uid(name: str) -> str:
            result = lease(name)
            return result["metadata"]["uid"] if result else ""

        kept, restored, deleted = machines
        before = {name: uid(name) for name in machines}
        assert all(before.values())
        sandbox.fleet.kill([kept, restored])
        sandbox.fleet.restore(restored)
        sandbox.api.delete(f"/api/v1/nodes/{deleted}")
        wait_until(lambda: lease(deleted) is None, what="the lease of the deleted Node to go", deadline_s=60)
        assert {name: uid(name) for name in (kept, restored)} == {
            name: before[name] for name in (kept, restored)
        }


class TestLosing:
    """A machine that falls silent keeps its Node object."""

    def test_seen_at_once_and_heard_again(
        self,
        sandbox: Sandbox,
        namespace: str,
        machines: tuple[str, ...],
        deploy: Deploy,
        available: Available,
    ) -> None:
        """Its node is Unknown and its pods unready; after reconnecting it is the same Node, Ready."""
        path = deploy(3, nodes={"test": namespace})
        available(path, 3)
        uid = node(sandbox, machines[0])["metadata"]["uid"]
        sandbox.fleet.lose(machines, seen_at_once=True)
        assert condition(node(sandbox, machines[0]), "Ready") == "Unknown"
        available(path, 0)
        sandbox.fleet.reconnect(machines)
        assert node(sandbox, machines[0])["metadata"]["uid"] == uid

    def test_its_heartbeat_stops(self, sandbox: Sandbox, machines: tuple[str, ...]) -> None:
        """The recorder counts it out at once; the lease of another machine goes on, its own does not."""
        with sandbox.record() as recorder:
            sandbox.fleet.lose(machines[0])

            def renewed(name: str) -> str:
                path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
                return str(sandbox.api.get(path)["spec"]["renewTime"])

            def wait_for_another() -> None:
                other = renewed(machines[1])
                wait_until(
                    lambda: renewed(machines[1]) > other, what="another machine's heartbeat", deadline_s=30
                )

            wait_for_another()  # KWOK hears by a watch that it is lost: one of its own may come meanwhile
            lost = renewed(machines[0])
            wait_for_another()
            assert renewed(machines[0]) == lost
        seen = [
            change.node.running
            for change in recorder.recording().changes
            if isinstance(change, NodeChange) and change.node.name == machines[0]
        ]
        assert seen[0]
        assert not seen[-1]
