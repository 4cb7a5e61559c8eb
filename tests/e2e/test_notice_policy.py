"""Who may announce the end of a node by an Event: whoever could taint the node, once the policy is applied.

No controller runs in these tests: the policy alone answers.
"""

import json
from collections.abc import Callable, Iterator

import pytest
import yaml

from e2e.support.account import api_of
from e2e.support.admission import checked, steadily
from e2e.support.shop import DEADLINE_S, JsonObject
from splitter.bundled import bundled_path
from splitter.core.nodes.signals import HINT_EVENTS, NOTICE_EVENTS
from splitter.sandbox import Sandbox
from splitter.sandbox.errors import ApiError, SandboxError
from splitter.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

POLICY = "splitter-notices"
FILE = bundled_path("manifests/admission/notices.yaml")
REASONS = sorted(NOTICE_EVENTS | HINT_EVENTS)
TENANT, HANDLER = "notices-tenant", "notices-handler"  # accounts in `default`
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
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"], "resourceNames": ["spot-1"]}
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


def core_event(reason: str, kind: str = "Node", name: str = "spot-1") -> JsonObject:
    """Return an Event as termination handlers write it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name} | ({"namespace": "default"} if kind == "Pod" else {}),
        "reason": reason,
        "message": "m",
        "type": "Warning",
    }


def new_event(reason: str, name: str = "spot-1") -> JsonObject:
    """Return the same Event in the newer form, which the watch shows as one of the older."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "regarding": {"kind": "Node", "name": name},
        "reason": reason,
        "action": "Drain",
        "type": "Warning",
        "eventTime": "2026-01-05T10:00:00.000000Z",
        "reportingController": "example.com/handler",
        "reportingInstance": "handler-1",
    }


class Server:
    """An API server that keeps the policy, and two accounts, of which one may patch `spot-1`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.kubectl = sandbox.kubectl
        self._accounts = {
            name: api_of(sandbox.service_account_kubeconfig("default", name)) for name in (TENANT, HANDLER)
        }

    def refusal(self, account: str, event: JsonObject) -> str:
        """Return why an account cannot write an Event; nothing when it could."""
        version = event["apiVersion"]
        root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        path, query = f"{root}/namespaces/default/events", {"dryRun": "All"}
        try:
            self._accounts[account].request("POST", path, query=query, body=event)
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


@pytest.mark.parametrize("form", [core_event, new_event])
@pytest.mark.parametrize("reason", REASONS)
def test_who_may_patch_the_node_may_announce_its_end(
    server: Server, reason: str, form: Callable[..., JsonObject]
) -> None:
    """In either form of an Event, about that node only; who may not is told why."""
    assert "is for those who may patch the Node" in server.refusal(TENANT, form(reason))
    assert server.refusal(HANDLER, form(reason)) == ""
    assert server.refusal(HANDLER, form(reason, name="spot-2"))
    assert server.refusal(HANDLER, form(reason, name=""))


def test_other_events_are_not_looked_at(server: Server) -> None:
    """A tenant's own Events, and all others about nodes."""
    for event in (core_event("NodeNotReady"), core_event("SpotInterrupted", "Pod"), new_event("Rebooted")):
        assert server.refusal(TENANT, event) == ""


def test_an_event_does_not_become_a_notice(server: Server) -> None:
    """An Event can be changed after it was written."""
    server.kubectl("apply", "-f", "-", stdin=json.dumps(core_event("Rebooted")))
    try:
        change = ("patch", "event", "told", "-n", "default", "-p", '{"reason": "SpotInterrupted"}')
        with pytest.raises(SandboxError, match="may patch the Node"):
            server.kubectl(*change, f"--as=system:serviceaccount:default:{TENANT}")
    finally:
        server.kubectl("delete", "event", "told", "-n", "default")


@pytest.mark.usefixtures("server")
def test_it_has_no_mistake_of_types(sandbox: Sandbox) -> None:
    """Kubernetes has looked at its expressions, and has nothing to say."""
    assert checked(sandbox, POLICY)["status"].get("typeChecking", {}).get("expressionWarnings") is None


def test_it_knows_the_reasons_that_splitter_believes() -> None:
    """No more and no fewer."""
    [policy] = [raw for raw in yaml.safe_load_all(FILE.read_text()) if raw["kind"].endswith("Policy")]
    [condition] = policy["spec"]["matchConditions"]
    listed = condition["expression"].partition("in [")[2].partition("]")[0]
    assert sorted(yaml.safe_load(f"[{listed}]")) == REASONS
