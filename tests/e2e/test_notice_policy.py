"""Under the policy, accounts that may patch an object may write the Events that splitter believes about it.

Of kubelets only the Node's own: the Node authorizer lets each kubelet patch every Node, and the admission
plugin NodeRestriction refuses it afterwards. No controller runs in these tests: the policy alone answers.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from e2e.support.account import api_of
from e2e.support.admission import checked, steadily
from lab.fixtures.shop import DEADLINE_S, JsonObject
from lab.sandbox import Sandbox
from lab.sandbox.errors import ApiError
from lab.sandbox.waiting import wait_until
from splitter.bundled import bundled_path
from splitter.core.nodes.believed_events import BELIEVED, BelievedEvents

pytestmark = pytest.mark.e2e

POLICY = "splitter-notices"
FILE = bundled_path("manifests/admission/notices.yaml")
# Accounts in `default`, and two kubelets.
TENANT, HANDLER, KUBELET, OTHER_KUBELET = "notices-tenant", "notices-handler", "spot-1", "spot-2"
EVENTS = "/api/v1/namespaces/default/events"
MINE = "spot-1"  # what the handler may patch: a Node and a NodeClaim
MAY: JsonObject = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": TENANT, "namespace": "default"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": HANDLER, "namespace": "default"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": HANDLER},
            "rules": [
                {
                    "apiGroups": ["", "karpenter.sh"],
                    "resources": ["nodes", "nodeclaims"],
                    "verbs": ["patch"],
                    "resourceNames": [MINE],
                }
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": TENANT, "namespace": "default"},
            "rules": [{"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["*"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": TENANT, "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT},
            "subjects": [
                {"kind": "ServiceAccount", "name": name, "namespace": "default"} for name in (TENANT, HANDLER)
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": HANDLER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": HANDLER},
            "subjects": [{"kind": "ServiceAccount", "name": HANDLER, "namespace": "default"}],
        },
    ],
}


def core_event(reason: str, kind: str = "Node", name: str = MINE, **about: str) -> JsonObject:
    """Return an Event as termination handlers write it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "heard", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name, **about},
        "reason": reason,
        "message": "m",
        "type": "Warning",
    }


def new_event(reason: str, kind: str = "Node", name: str = MINE, **about: str) -> JsonObject:
    """Return the same Event in the newer form, which the watch shows as one of the older."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "heard", "namespace": "default"},
        "regarding": {"kind": kind, "name": name, **about},
        "reason": reason,
        "action": "Drain",
        "type": "Warning",
        "eventTime": "2026-01-05T10:00:00.000000Z",
        "reportingController": "example.com/handler",
        "reportingInstance": "handler-1",
    }


class Server:
    """An API server that keeps the policy; two accounts, of which one may patch `MINE`, and two kubelets."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.api = sandbox.api
        self._accounts = {
            name: api_of(sandbox.service_account_kubeconfig("default", name)) for name in (TENANT, HANDLER)
        } | {node: sandbox.as_kubelet(node) for node in (KUBELET, OTHER_KUBELET)}

    def refusal(self, account: str, event: JsonObject) -> str:
        """Return why an account cannot write an Event; nothing when it could."""
        version = event["apiVersion"]
        root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        return self.refused(account, "POST", f"{root}/namespaces/default/events", event)

    def refused(self, account: str, method: str, path: str, body: object = None) -> str:
        """Return why an account cannot send a request; nothing when it could. It has no effect."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self._accounts[account].request(
                method, path, query={"dryRun": "All"}, body=body, content_type=kind
            )
        except ApiError as refused:
            if f"ValidatingAdmissionPolicy '{POLICY}'" in str(refused):
                return str(refused)
            raise
        return ""


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Server]:
    """Put the policy into force; other tests write such Events without more rights, so it goes afterwards."""
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(MAY))
    sandbox.kubectl("apply", "-f", str(FILE))
    one = Server(sandbox)

    def held() -> bool:
        event = core_event("SpotInterrupted")
        try:
            return bool(one.refusal(TENANT, event)) and not one.refusal(HANDLER, event)
        except ApiError:  # the authorizer hears of their rights by a watch
            return False

    wait_until(lambda: steadily(held), what="the policy to be in force", deadline_s=DEADLINE_S)
    yield one
    sandbox.kubectl("delete", "-f", str(FILE))
    sandbox.kubectl("delete", "-f", "-", stdin=json.dumps(MAY))


@pytest.fixture
def written(server: Server) -> Iterator[Callable[[JsonObject], str]]:
    """Return what stores an Event, as the administrator, and returns its path."""
    paths: list[str] = []

    def write(event: JsonObject) -> str:
        server.api.create(EVENTS, event)
        paths.append(f"{EVENTS}/{event['metadata']['name']}")
        return paths[-1]

    yield write
    for path in paths:
        server.api.delete(path)


SAID = [(row, reason) for row in BELIEVED for reason in sorted(row.reasons)]
AS_WORDS = [f"{row.kind}-{reason}" for row, reason in SAID]


@pytest.mark.parametrize("form", [core_event, new_event])
@pytest.mark.parametrize(("row", "reason"), SAID, ids=AS_WORDS)
def test_who_may_patch_the_object_may_write_the_event(
    server: Server, row: BelievedEvents, reason: str, form: Callable[..., JsonObject]
) -> None:
    """In either form of an Event, about that object only; others read why not. Each row of the table."""
    event = form(reason, row.kind)
    assert f"may patch the {row.kind}" in server.refusal(TENANT, event)
    assert server.refusal(HANDLER, event) == ""
    assert server.refusal(HANDLER, form(reason, row.kind, "spot-2"))
    assert server.refusal(HANDLER, form(reason, row.kind, ""))


@pytest.mark.parametrize("form", [core_event, new_event])
@pytest.mark.parametrize(("row", "reason"), SAID, ids=AS_WORDS)
def test_a_kubelet_speaks_of_its_own_node_alone(
    server: Server, row: BelievedEvents, reason: str, form: Callable[..., JsonObject]
) -> None:
    """Its conditions say as much. It can change no other Node, and no NodeClaim, not of its name either."""
    event = form(reason, row.kind)
    assert bool(server.refusal(KUBELET, event)) is (row.kind != "Node")
    assert server.refusal(OTHER_KUBELET, event)


def test_a_node_has_no_namespace_and_any_version(server: Server) -> None:
    """What else an Event says of its object changes nothing: splitter looks at kind, name and UID."""
    for about in ({"namespace": "default"}, {"apiVersion": "example.com/v9"}, {"fieldPath": "spec"}):
        assert server.refusal(TENANT, core_event("SpotInterrupted", **about))
        assert server.refusal(TENANT, new_event("SpotInterrupted", **about))


def test_other_events_are_not_looked_at(server: Server) -> None:
    """A tenant's own Events, all others about nodes, and reasons that mean something of another kind."""
    for event in (
        core_event("NodeNotReady"),
        core_event("SpotInterrupted", "Pod", namespace="default"),
        core_event("SpotInterrupted", "NodeClaim"),
        core_event("InsufficientCapacityError"),
        new_event("Rebooted"),
    ):
        assert server.refusal(TENANT, event) == ""


def test_an_event_does_not_become_one_that_is_believed(
    server: Server, written: Callable[[JsonObject], str]
) -> None:
    """An Event can be changed after it was written: its reason, and what it is about."""
    path = written(core_event("Rebooted"))
    assert server.refused(TENANT, "PATCH", path, {"reason": "SpotInterrupted"})
    assert server.refused(KUBELET, "PATCH", path, {"reason": "SpotInterrupted"}) == ""
    assert server.refused(OTHER_KUBELET, "PATCH", path, {"reason": "SpotInterrupted"})
    event = core_event("SpotInterrupted", "Pod", namespace="default")
    path = written({**event, "metadata": {"name": "about-a-pod", "namespace": "default"}})
    assert server.refused(TENANT, "PATCH", path, {"involvedObject": {"kind": "Node"}})


CHANGES: list[JsonObject] = [
    {"reason": "Rebooted"},
    {"involvedObject": {"kind": "Pod", "namespace": "default"}},
    {"involvedObject": {"name": "spot-2"}},
    {"count": 7, "lastTimestamp": "2026-01-05T10:00:00Z"},
    {"series": {"count": 2, "lastObservedTime": "2026-01-05T10:00:00.000000Z"}},
]


@pytest.mark.parametrize("change", CHANGES, ids="-".join)
def test_an_event_that_is_believed_is_changed_by_who_may_write_it(
    server: Server, written: Callable[[JsonObject], str], change: JsonObject
) -> None:
    """No other account makes it another's, repeats it, or takes it back: a true notice is not silenced."""
    path = written(core_event("SpotInterrupted"))
    assert server.refused(TENANT, "PATCH", path, change)
    assert server.refused(OTHER_KUBELET, "PATCH", path, change)
    if change != {"involvedObject": {"name": "spot-2"}}:  # it may not patch that Node
        assert server.refused(HANDLER, "PATCH", path, change) == ""


def test_an_event_that_is_believed_is_deleted_by_who_may_write_it(
    server: Server, written: Callable[[JsonObject], str]
) -> None:
    """One by one, and all Events at once; a tenant's own go as ever."""
    path = written(core_event("SpotInterrupted"))
    mine = written({**core_event("Rebooted"), "metadata": {"name": "mine", "namespace": "default"}})
    assert server.refused(TENANT, "DELETE", path)
    assert server.refused(TENANT, "DELETE", EVENTS)
    assert server.refused(TENANT, "DELETE", mine) == ""
    assert server.refused(HANDLER, "DELETE", path) == ""


@pytest.mark.usefixtures("server")
def test_it_has_no_mistake_of_types(sandbox: Sandbox) -> None:
    """Kubernetes has looked at its expressions, and has nothing to say."""
    assert checked(sandbox, POLICY)["status"].get("typeChecking", {}).get("expressionWarnings") is None
