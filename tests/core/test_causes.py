"""Causes: what kubelet, scheduler, API server and our own view of the nodes say, told apart.

The sentences of scheduler and API server are those of Kubernetes 1.36 unless a comment says otherwise.
"""

from typing import Any

import pytest

from builders import ago, pod, replica_set, twin_of
from splitter.core.causes import (
    ContainerFacts,
    hindered,
    of_containers,
    of_nodes,
    of_refusal,
    of_scheduling,
    unplaceable,
)
from splitter.core.model import Attachment
from splitter.core.nodes.facts import CapacityClass, Health, NodeState, Taint
from splitter.core.nodes.fit import MatchExpression, NodeTerm, PodRequest, Toleration
from splitter.core.reasons import Reason
from splitter.core.replica import NodeStatus, Pool, Replica, ReplicaState, Trouble

NOT_FOUND = "rpc error: code = NotFound desc = failed to pull and unpack image: not found"
QUOTA = "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
LIMIT = (
    'spec.containers[0].resources.requests: Invalid value: "100m": must be less than or equal to cpu limit'
)
SECURITY = 'violates PodSecurity "restricted:latest": runAsNonRoot != true'
WEBHOOK = 'admission webhook "policy.example.com" denied the request: no limits'
OTHERS = "4 node(s) didn't match Pod's node affinity/selector."
NO_ANSWER = "lookup r.example.com on 10.0.0.10:53: read udp 10.0.1.5:{port}->10.0.0.10:53: i/o timeout"
NO_PROGRAM = 'runc create failed: exec: "/bin/no": stat /bin/no: no such file or directory'
UID, TRY = "86db504b-81db-4f16-b1d3-44a4f35b3426", "75a0cea1bcc645a3" * 4
HOOK = (
    f'Exec lifecycle hook ([/bin/no]) for Container "web" in Pod "web-1-a_shop({UID})" failed - error: failed'
    f' to start exec "{TRY}": exec: "/bin/no": no such file or directory, message: ""'
)
LASTING = HOOK.replace(f' "web-1-a_shop({UID})"', "").replace(f' "{TRY}"', "")
TAIL = " no new claims to deallocate, preemption: 0/8 nodes are available: 8 Preemption is not helpful."
NO_VOLUME = Trouble(Reason.VOLUME_UNAVAILABLE, 'persistentvolumeclaim "data" not found')


class TestContainers:
    @pytest.mark.parametrize(
        ("facts", "reason", "detail"),
        [
            pytest.param(
                ContainerFacts("web", "web:2", "ErrImagePull", NOT_FOUND),
                Reason.IMAGE_PULL_FAILED,
                f'"web:2": {NOT_FOUND}',
                id="pull",
            ),
            pytest.param(
                ContainerFacts(
                    "web",
                    "web:2",
                    "ImagePullBackOff",
                    f'Back-off pulling image "web:2": ErrImagePull: {NOT_FOUND}',
                ),
                Reason.IMAGE_PULL_FAILED,
                f'"web:2": {NOT_FOUND}',
                id="back-off-with-the-same-words",
            ),
            pytest.param(
                ContainerFacts(
                    "web", "web:2", "ImagePullBackOff", 'Back-off pulling image "web:2"'
                ),  # < 1.32
                Reason.IMAGE_PULL_FAILED,
                '"web:2"',
                id="back-off-without-words-before-1.32",
            ),
            pytest.param(
                ContainerFacts("web", "web:UP", "InvalidImageName", 'couldn\'t parse image name "web:UP"'),
                Reason.IMAGE_PULL_FAILED,
                '"web:UP": couldn\'t parse image name "web:UP"',
                id="name",
            ),
            pytest.param(
                ContainerFacts("web", waiting="CreateContainerConfigError", message='secret "key" not found'),
                Reason.CONTAINER_CONFIG_INVALID,
                'container web: secret "key" not found',
                id="secret",
            ),
            pytest.param(
                ContainerFacts("web", waiting="RunContainerError"),
                Reason.CONTAINER_CONFIG_INVALID,
                "container web: RunContainerError",
                id="no-words",
            ),
            pytest.param(
                ContainerFacts(
                    "web",
                    waiting="CrashLoopBackOff",
                    message="back-off 20s restarting failed container=web pod=web-1-a_shop(uid)",
                    restarts=1,
                    exit_code=1,
                    ended="Error",
                ),
                Reason.CRASH_LOOPING,
                "container web ends with exit code 1 (Error)",
                id="back-off-restarting",
            ),
            # What a real kubelet and containerd 2.3 say; each try has another port, another id.
            pytest.param(
                ContainerFacts("web", "web:2", "ErrImagePull", NO_ANSWER.format(port=16353)),
                Reason.IMAGE_PULL_FAILED,
                f'"web:2": {NO_ANSWER.replace(":{port}", "")}',
                id="no-answer-to-a-question-from-another-port",
            ),
            pytest.param(
                ContainerFacts(
                    "web",
                    "web:2",
                    "ErrImagePull",
                    "dial tcp: read udp [fd00::12]:40321->[fd00::a]:53: i/o timeout",
                ),
                Reason.IMAGE_PULL_FAILED,
                '"web:2": dial tcp: read udp [fd00::12]->[fd00::a]:53: i/o timeout',
                id="the-same-by-ipv6",
            ),
            pytest.param(
                ContainerFacts("web", waiting="PostStartHookError", message=HOOK),
                Reason.CONTAINER_CONFIG_INVALID,
                f"container web: {LASTING}",
                id="hook-of-a-pod-by-its-name",
            ),
            pytest.param(
                ContainerFacts(
                    "web",
                    waiting="CrashLoopBackOff",
                    message="back-off 20s restarting failed container=web pod=web-1-a_shop(uid)",
                    restarts=3,
                    exit_code=128,
                    ended="StartError",
                    last_words=NO_PROGRAM,
                ),
                Reason.CONTAINER_CONFIG_INVALID,
                f"container web: {NO_PROGRAM}",
                id="never-started-says-the-same-while-it-backs-off",
            ),
            pytest.param(
                ContainerFacts("web", waiting="RunContainerError", message=NO_PROGRAM),
                Reason.CONTAINER_CONFIG_INVALID,
                f"container web: {NO_PROGRAM}",
                id="never-started",
            ),
            pytest.param(
                ContainerFacts(
                    "web",
                    waiting="CrashLoopBackOff",
                    restarts=3,
                    exit_code=2,
                    ended="Error",
                    last_words="hunter2, from the application's own termination log",
                ),
                Reason.CRASH_LOOPING,
                "container web ends with exit code 2 (Error)",
                id="what-an-application-writes-is-not-repeated",
            ),
            pytest.param(
                ContainerFacts("web", restarts=2, exit_code=137, ended="OOMKilled"),
                Reason.CRASH_LOOPING,
                "container web ends with exit code 137 (OOMKilled)",
                id="runs-between-two-crashes",
            ),
        ],
    )
    def test_kubelet(self, facts: ContainerFacts, reason: Reason, detail: str) -> None:
        """The cause and the kubelet's words, without what changes from try to try."""
        assert of_containers([ContainerFacts("first"), facts]) == Trouble(reason, detail)

    @pytest.mark.parametrize(
        "facts",
        [
            ContainerFacts("web", waiting="ContainerCreating"),
            ContainerFacts("web", waiting="PodInitializing"),
            ContainerFacts("web", restarts=1, exit_code=1, ended="Error"),
            ContainerFacts("web", restarts=5, exit_code=0, ended="Completed"),
        ],
        ids=["creating", "initializing", "one-accident", "ended-well"],
    )
    def test_no_trouble_yet(self, facts: ContainerFacts) -> None:
        """What may only take its time is no trouble."""
        assert of_containers([facts]) is None


class TestScheduling:
    @pytest.mark.parametrize(
        ("message", "detail"),
        [
            (
                '0/8 nodes are available: persistentvolumeclaim "data" not found. not found',
                'persistentvolumeclaim "data" not found',
            ),
            (
                "0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
                "unbound immediate PersistentVolumeClaims",
            ),
            (
                '0/8 nodes are available: persistentvolumeclaim "data" is being deleted.',
                'persistentvolumeclaim "data" is being deleted',
            ),
        ],
    )
    def test_volume_missing(self, message: str, detail: str) -> None:
        """A volume that nobody has: no node would help."""
        trouble = of_scheduling("Unschedulable", message)
        assert trouble == Trouble(Reason.VOLUME_UNAVAILABLE, detail)

    def test_gated(self) -> None:
        """Somebody does not want it scheduled yet."""
        trouble = of_scheduling("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
        assert trouble is not None
        assert trouble.reason is Reason.SCHEDULING_GATED

    @pytest.mark.parametrize(
        "why",
        [
            f"4 node(s) didn't match PersistentVolume's node affinity, {OTHERS}",
            "4 node(s) had volume node affinity conflict, 4 node(s) had untolerated taint {a: b}.",  # < 1.33
            "4 node(s) didn't find available persistent volumes to bind, 4 node(s) were unschedulable.",
        ],
    )
    def test_volume_elsewhere(self, why: str) -> None:
        """The nodes that are left cannot reach the volume."""
        trouble = of_scheduling("Unschedulable", f"0/8 nodes are available: {why}{TAIL}")
        assert trouble is not None
        assert trouble.reason is Reason.VOLUME_ZONE_CONFLICT

    @pytest.mark.parametrize(
        "why",
        [
            f"4 Insufficient cpu, {OTHERS}",
            f"3 Insufficient memory, 1 node(s) didn't match PersistentVolume's node affinity, {OTHERS}",
            f"4 Too many pods, {OTHERS}",
            f"4 node(s) didn't have free ports for the requested pod ports, {OTHERS}",
            f"4 node(s) didn't match pod anti-affinity rules, {OTHERS}",
            f"4 node(s) didn't match pod topology spread constraints (missing required label), {OTHERS}",
            f"1 node(s) were unschedulable, 3 node(s) had untolerated taint(s), {OTHERS}",
            OTHERS,
            "something that no scheduler says today.",
        ],
    )
    def test_nodes_missing(self, why: str) -> None:
        """Everything that more nodes would cure, and all that is not understood, is a shortage."""
        assert of_scheduling("Unschedulable", f"0/8 nodes are available: {why}{TAIL}") is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("message", "reason", "detail"),
        [
            (f'pods "web-spot-67c8-fkqtt" is forbidden: {QUOTA}', Reason.QUOTA_EXCEEDED, QUOTA),
            (f'Pod "web-87mjr" is invalid: {LIMIT}', Reason.PODS_REFUSED, LIMIT),
            (f'pods "web-mr68g" is forbidden: {SECURITY}', Reason.PODS_REFUSED, SECURITY),
            (WEBHOOK, Reason.PODS_REFUSED, WEBHOOK),
        ],
        ids=["quota", "limit-range", "pod-security", "webhook"],
    )
    def test_api_server(self, message: str, reason: Reason, detail: str) -> None:
        """A quota is told from all else; the name of the pod, another with each try, is left out."""
        assert of_refusal(message) == Trouble(reason, detail)


def node(name: str, *, spot: bool = True, health: Health = Health.HEALTHY, **fields: object) -> NodeState:
    """Return a node; further words are labels, but `taints`."""
    taints = fields.pop("taints", ())
    assert isinstance(taints, tuple)
    capacity = CapacityClass.SPOT if spot else CapacityClass.ON_DEMAND
    labels = {"pool": "spot" if spot else "on-demand", **{key: str(text) for key, text in fields.items()}}
    return NodeState(name, f"uid-{name}", capacity, health, labels=labels, taints=taints)


def expression(key: str, *values: str) -> MatchExpression:
    """Return an expression that asks for a label."""
    return MatchExpression(key, "In", values)


SPOT = expression("pool", "spot")
ANY = PodRequest(affinity=(NodeTerm((SPOT,)),))
TEAM = Taint("team", "data")


class TestNodes:
    def test_taint(self) -> None:
        """Nodes that match and are tainted: the taint is named."""
        nodes = [node("a", taints=(TEAM,)), node("b", taints=(TEAM,)), node("od", spot=False)]
        assert of_nodes(ANY, nodes, spot=True) == Trouble(
            Reason.NODES_UNSUITABLE,
            "2 of 2 healthy spot nodes have a taint that it does not tolerate: team=data:NoSchedule",
        )

    def test_taint_of_those_that_match(self) -> None:
        """A node that would not match anyway does not count."""
        pod_in_a = PodRequest(node_selector={"zone": "a"})
        nodes = [node("a", zone="a", taints=(TEAM,)), node("b", zone="b")]
        assert of_nodes(pod_in_a, nodes, spot=True) == Trouble(
            Reason.NODES_UNSUITABLE,
            "1 of 2 healthy spot nodes match its affinity and have a taint that it does not tolerate:"
            " team=data:NoSchedule",
        )

    def test_taint_that_will_pass(self) -> None:
        """A node that still carries a mark of its registration is not there yet: nobody must tolerate it."""
        fresh = Taint("node.kubernetes.io/not-ready")
        assert of_nodes(ANY, [node("a", taints=(fresh,))], spot=True) is None
        trouble = of_nodes(ANY, [node("a", taints=(fresh, TEAM)), node("b", taints=(TEAM,))], spot=True)
        assert trouble is not None
        assert trouble.detail.startswith("1 of 1 healthy spot nodes have a taint")

    def test_all_of_a_kind_are_counted(self) -> None:
        """Nodes that are alike are looked at once, and counted each."""
        nodes = [node(f"a{number}", zone="a", taints=(TEAM,)) for number in range(40)]
        nodes += [node(f"b{number}", zone="b") for number in range(60)]
        trouble = of_nodes(PodRequest(node_selector={"zone": "a"}), nodes, spot=True)
        assert trouble is not None
        assert trouble.detail.startswith("40 of 100 healthy spot nodes match its affinity and have a taint")

    def test_of_more_nodes_than_are_looked_at(self) -> None:
        """What a pod that asks very much of them is kept away by is not known, and not said."""
        asks = PodRequest(node_selector={"zone": "a"}, requirements=10_000)
        assert of_nodes(asks, [node(f"b{number}") for number in range(100)], spot=True) is not None
        assert of_nodes(asks, [node(f"b{number}") for number in range(101)], spot=True) is None

    def test_many_requirements(self) -> None:
        """Each is held against the nodes once, and a few of its values are told."""
        zones = [expression("zone", *(f"z{number}.{zone}" for zone in range(9))) for number in range(5000)]
        terms = (NodeTerm(tuple(zones)), NodeTerm(tuple(reversed(zones))))
        trouble = of_nodes(PodRequest(affinity=terms), [node("a")], spot=True)
        assert trouble is not None
        assert "zone In (z0.0, z0.1, z0.2 and 6 more)" in trouble.detail
        assert trouble.detail.endswith("and 4997 more")

    def test_one_by_its_name(self) -> None:
        """Nodes that are alike but for their names are told apart where a pod asks by name."""
        by_name = PodRequest(affinity=(NodeTerm(fields=(expression("metadata.name", "b"),)),))
        assert of_nodes(by_name, [node("a"), node("b")], spot=True) is None

    def test_selector(self) -> None:
        """A node selector that no node has is named."""
        trouble = of_nodes(PodRequest(node_selector={"disk": "ssd"}), [node("a"), node("b")], spot=True)
        assert trouble == Trouble(Reason.NODES_UNSUITABLE, "0 of 2 healthy spot nodes have disk=ssd")

    def test_affinity(self) -> None:
        """Of the terms, with our own wish in each, the user's is named."""
        eks, gpu = expression("eks", "spot"), expression("gpu", "a100", "h100")
        request = PodRequest(affinity=(NodeTerm((gpu, SPOT)), NodeTerm((gpu, eks))))
        trouble = of_nodes(request, [node("a")], spot=True)
        assert trouble == Trouble(
            Reason.NODES_UNSUITABLE, "0 of 1 healthy spot nodes have gpu In (a100, h100)"
        )

    def test_affinity_together(self) -> None:
        """Each wish is met somewhere, but not all on one node."""
        wishes = expression("zone", "a"), expression("disk", "ssd")
        nodes = [node("a", zone="a"), node("b", disk="ssd")]
        trouble = of_nodes(PodRequest(affinity=(NodeTerm(wishes),)), nodes, spot=True)
        assert trouble == Trouble(
            Reason.NODES_UNSUITABLE, "0 of 2 healthy spot nodes match its node selector and affinity"
        )

    @pytest.mark.parametrize(
        "nodes",
        [
            pytest.param([], id="none"),
            pytest.param([node("od", spot=False, taints=(TEAM,))], id="none-of-the-pool"),
            pytest.param([node("a", taints=(TEAM,), health=Health.DOOMED)], id="doomed"),
            pytest.param([node("a", taints=(TEAM,), health=Health.GONE)], id="gone"),
            pytest.param([node("a", taints=(TEAM,)), node("b")], id="one-would"),
            pytest.param([node("a", taints=(Taint("team", "data", "PreferNoSchedule"),))], id="preferred"),
        ],
    )
    def test_capacity(self, nodes: list[NodeState]) -> None:
        """No healthy node, or one that would take it if it had room: capacity is what is missing."""
        assert of_nodes(ANY, nodes, spot=True) is None

    def test_tolerated(self) -> None:
        """A tolerated taint keeps nobody away."""
        request = PodRequest(tolerations=(Toleration("team", "Exists"),))
        assert of_nodes(request, [node("a", taints=(TEAM,))], spot=True) is None

    def test_on_demand(self) -> None:
        """The other pool's nodes are held against its own pods alike; an unknown node is on-demand."""
        trouble = of_nodes(PodRequest(), [node("od", spot=False, taints=(TEAM,)), node("a")], spot=False)
        assert trouble is not None
        assert trouble.detail.startswith("1 of 1 healthy on-demand nodes have a taint")


def waiting(name: str = "w", trouble: Trouble | None = None, **fields: Any) -> Replica:  # noqa: ANN401 (fields of the view)
    """Return a pod that the scheduler cannot place."""
    return pod(name, NodeStatus.UNBOUND, unschedulable_since=ago(10), trouble=trouble, **fields)


class TestTwins:
    def test_hindered(self) -> None:
        """Refused replicas and those that wait for something of their own; not those that lack a node."""
        refused = Trouble(Reason.QUOTA_EXCEEDED, QUOTA)
        sets = [
            replica_set(
                "a", 5, [pod(), waiting("w", NO_VOLUME), waiting("x")], attachment=Attachment.ATTACHED
            ),
            replica_set("b", 4, [pod("y")], attachment=Attachment.ATTACHED, refusal=refused),
        ]
        assert hindered(twin_of(Pool.SPOT, sets, updated=3)) == 1 + 3

    def test_stale_refusal(self) -> None:
        """A refusal without a missing pod is of yesterday."""
        of = [pod("a"), pod("b")]
        assert replica_set("b", 2, of, refusal=Trouble(Reason.QUOTA_EXCEEDED, QUOTA)).refused == 0

    @pytest.mark.parametrize(
        "one",
        [
            waiting(),
            waiting(trouble=NO_VOLUME, terminating=True),
            waiting(trouble=Trouble(Reason.VOLUME_ZONE_CONFLICT, "")),
            pod(ready=False, trouble=Trouble(Reason.IMAGE_PULL_FAILED, "")),
        ],
        ids=["no-node", "going", "volume-elsewhere", "bound"],
    )
    def test_not_hindered(self, one: Replica) -> None:
        """What a node would help, or what has one, is not hindered."""
        assert one.state is not ReplicaState.HINDERED

    def test_unplaceable(self) -> None:
        """Our own view of the nodes goes before what the scheduler says about one pod."""
        elsewhere = Trouble(Reason.VOLUME_ZONE_CONFLICT, "")
        tainted = Trouble(Reason.NODES_UNSUITABLE, "")
        sets = [
            replica_set(
                "a", 2, [waiting("a", NO_VOLUME), waiting("b", elsewhere)], attachment=Attachment.ATTACHED
            )
        ]
        assert unplaceable(twin_of(Pool.SPOT, sets, updated=2)) == elsewhere
        assert unplaceable(twin_of(Pool.SPOT, sets, updated=2, excluded=tainted)) == tainted
        assert unplaceable(twin_of(Pool.SPOT, [replica_set("a", 1, [waiting()])], updated=1)) is None
