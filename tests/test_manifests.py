"""The manifests fit together: what one names, another one has."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from splitter.bundled import bundled_path

MANIFESTS = bundled_path("manifests")
# Needs a newer API server than the rest: applied by who wants it.
BY_HAND = {"admission/placement.yaml", "admission/notices.yaml", "flowcontrol.yaml", "relief.yaml"}
BY_HAND |= {"source-status.yaml", "admission/keep-paused.yaml"}

Json = dict[str, Any]


def objects(file: str) -> list[Json]:
    """Return the objects of a file."""
    return [raw for raw in yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8")) if raw]


def one(file: str, kind: str) -> Json:
    """Return the only object of a kind in a file."""
    [collected] = [raw for raw in objects(file) if raw["kind"] == kind]
    return collected


@pytest.fixture
def template() -> Json:
    """Return the pod template of the controller."""
    result: Json = one("deployment.yaml", "Deployment")["spec"]["template"]
    return result


class TestKustomization:
    def test_has_every_file(self) -> None:
        """Nothing lies in the folder that `kubectl apply -k manifests` leaves out unsaid."""
        named = set(yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text("utf-8"))["resources"])
        files = [*MANIFESTS.glob("*.yaml"), *(MANIFESTS / "admission").glob("*.yaml")]
        there = {path.relative_to(MANIFESTS).as_posix() for path in files} - {"kustomization.yaml"}
        assert there == named | BY_HAND


class TestAggregatedRoles:
    def test_let_users_write_nothing(self) -> None:
        """Kubernetes' roles contain each other (view, edit, admin), so each rule is added once."""
        view, edit = objects("aggregated-roles.yaml")
        for role, word in ((view, "view"), (edit, "edit")):
            labels = {name for name in role["metadata"]["labels"] if "aggregate" in name}
            assert labels == {f"rbac.authorization.k8s.io/aggregate-to-{word}"}
        ours = [raw["spec"]["names"]["plural"] for raw in objects("crd.yaml")]
        for role, verbs in ((view, ["get", "list", "watch"]), (edit, ["delete"])):
            assert role["rules"] == [{"apiGroups": ["splitter.io"], "resources": ours, "verbs": verbs}]


class TestSelectors:
    def test_pick_the_controller(self, template: Json) -> None:
        """Deployment, budget, network policy and both spreads select the pods that there are."""
        labels = template["metadata"]["labels"].items()
        spreads = template["spec"]["topologySpreadConstraints"]
        selectors = [
            one("deployment.yaml", "Deployment")["spec"]["selector"],
            one("availability.yaml", "PodDisruptionBudget")["spec"]["selector"],
            one("network.yaml", "NetworkPolicy")["spec"]["podSelector"],
            *(spread["labelSelector"] for spread in spreads),
        ]
        assert all(selector["matchLabels"].items() <= labels for selector in selectors)
        assert {spread["topologyKey"] for spread in spreads} == {
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        }


class TestPriority:
    def test_of_its_own_pods(self, template: Json) -> None:
        """The class that the pods name is there, and the policy lets that class into their namespace only."""
        deployment, made = one("deployment.yaml", "Deployment"), one("deployment.yaml", "PriorityClass")
        spec = one("admission/priority.yaml", "ValidatingAdmissionPolicy")["spec"]
        assert template["spec"]["priorityClassName"] == made["metadata"]["name"]
        [condition], [validation] = spec["matchConditions"], spec["validations"]
        assert condition["expression"].endswith(f'== "{made["metadata"]["name"]}"')
        assert validation["expression"] == f'request.namespace == "{deployment["metadata"]["namespace"]}"'


class TestPod:
    def test_every_port_that_is_let_in_is_there(self, template: Json) -> None:
        """The network policy names the container's ports, each in a rule that can be narrowed."""
        [container] = template["spec"]["containers"]
        ingress = one("network.yaml", "NetworkPolicy")["spec"]["ingress"]
        assert [[port["port"] for port in rule["ports"]] for rule in ingress] == [
            [port["name"]] for port in container["ports"]
        ]

    def test_finds_its_settings(self, template: Json) -> None:
        """The file that it is started with is a key of the ConfigMap that is mounted there."""
        [container] = template["spec"]["containers"]
        file = Path(container["args"][container["args"].index("--settings") + 1])
        [mount] = [each for each in container["volumeMounts"] if each["mountPath"] == str(file.parent)]
        [volume] = [each for each in template["spec"]["volumes"] if each["name"] == mount["name"]]
        config_map = one("settings.yaml", "ConfigMap")
        assert volume["configMap"]["name"] == config_map["metadata"]["name"]
        assert file.name in config_map["data"]
        assert mount["readOnly"]

    def test_gets_no_more_than_it_needs(self, template: Json) -> None:
        """A token because it says so, not by its account; no variables of Services; no disk to write on."""
        pod = template["spec"]
        account = one("rbac.yaml", "ServiceAccount")
        assert (account["automountServiceAccountToken"], pod["automountServiceAccountToken"]) == (False, True)
        assert pod["enableServiceLinks"] is False
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert not [volume for volume in pod["volumes"] if "emptyDir" in volume or "hostPath" in volume]
        assert "cpu" not in container["resources"]["limits"]

    def test_prefers_nodes_that_are_not_spot(self, template: Json) -> None:
        """Each label that tells a spot node is named, and only avoided: there may be no other node."""
        node_affinity = template["spec"]["affinity"]["nodeAffinity"]
        [preferred] = node_affinity.pop("preferredDuringSchedulingIgnoredDuringExecution")
        assert not node_affinity
        terms = preferred["preference"]["matchExpressions"]
        assert all(term["operator"] in {"NotIn", "DoesNotExist"} for term in terms)
        assert {term["key"] for term in terms} >= {
            "karpenter.sh/capacity-type",
            "eks.amazonaws.com/capacityType",
            "cloud.google.com/gke-spot",
            "kubernetes.azure.com/scalesetpriority",
        }


class TestNetwork:
    def test_lets_out_names_and_https_only(self) -> None:
        """To any address, for a policy cannot name the API server."""
        spec = one("network.yaml", "NetworkPolicy")["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        ports = [
            (each["port"], each.get("protocol", "TCP")) for rule in spec["egress"] for each in rule["ports"]
        ]
        assert ports == [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")]


class TestPolicies:
    @pytest.mark.parametrize(
        ("file", "policy"), [("own-account", "Fail"), ("notices", "Fail"), ("priority", "Ignore")]
    )
    def test_fail_as_the_page_says(self, file: str, policy: str) -> None:
        """Closed for splitter's own account and for notices; open for the pods of all others. Each denies."""
        assert one(f"admission/{file}.yaml", "ValidatingAdmissionPolicy")["spec"]["failurePolicy"] == policy
        bound = one(f"admission/{file}.yaml", "ValidatingAdmissionPolicyBinding")["spec"]
        assert bound["validationActions"] == ["Deny"]
