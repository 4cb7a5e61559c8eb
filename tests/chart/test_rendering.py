"""What the chart renders, by a real Helm: what the kustomizations are, and what its values change."""

import subprocess
from pathlib import Path

import pytest
import yaml

from chart.rendered import LABELS, Objects, objects, rendered
from e2e.support.helm import CHART, KEEP, NAMESPACE, RELEASE, Helm
from lab.fixtures.shop import DEADLINE_S
from lab.sandbox import build
from splitter import __version__
from splitter.bundled import bundled_path


@pytest.fixture
def renders(tmp_path: Path) -> Helm:
    """Return Helm without a cluster."""
    return Helm(None, tmp_path)


def kustomized(folder: str) -> Objects:
    """Return what a kustomization makes; the namespace is left out, which Helm's users make themselves."""
    answer = subprocess.run(
        [build.programs(print).kubectl, "kustomize", bundled_path(folder)],
        env={},  # nothing of the user's own
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    result = objects(answer.stdout)
    del result["Namespace", "", NAMESPACE]
    return result


def unmarked(rendered: Objects) -> Objects:
    """Take from both CRDs the one mark that tells Helm to keep them."""
    for kind in ("splits", "placements"):
        metadata = rendered["CustomResourceDefinition", "", f"{kind}.splitter.io"]["metadata"]
        annotations = metadata.pop("annotations")
        assert {KEEP: annotations.pop(KEEP)} == {KEEP: "keep"}
        if annotations:
            metadata["annotations"] = annotations
    for raw in rendered.values():
        # And from each object what says that it is Helm's; the pods say it too.
        template = raw["spec"]["template"]["metadata"]["labels"] if raw["kind"] == "Deployment" else {}
        for labels in filter(None, (raw["metadata"]["labels"], template)):
            assert [labels.pop(name) for name in LABELS] == [RELEASE, "Helm", __version__]
    return rendered


class TestRendering:
    @pytest.mark.parametrize("values", [(), ("--set", "watchNamespaces={shop,cart},settings.grace_s=60")])
    def test_is_linted(self, renders: Helm, values: tuple[str, ...]) -> None:
        """`helm lint --strict` has nothing to say, cluster-wide and namespaced."""
        assert "0 chart(s) failed" in renders("lint", "--strict", str(CHART), *values)

    def test_is_the_kustomization(self, renders: Helm) -> None:
        """With no values it is `kubectl kustomize manifests`, object for object; the CRD is to be kept."""
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE))
        assert unmarked(rendered) == kustomized("manifests")

    def test_the_right_to_write_status_is_namespaced_too(self, renders: Helm) -> None:
        """With `watchNamespaces` it is a Role in each."""
        values = ("--set", "watchNamespaces={shop},sourceStatus.enabled=true")
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *values))
        there = {kind for kind, _, name in rendered if name.endswith("source-status")}
        assert there == {"Role", "RoleBinding"}
        assert ("Role", "shop", "splitter-source-status") in rendered

    def test_namespaced_is_the_other_kustomization(self, renders: Helm) -> None:
        """With `watchNamespaces` it is `kubectl kustomize examples/namespaced`."""
        values = ("--set", "watchNamespaces={shop}")
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *values))
        wanted = kustomized("examples/namespaced")
        assert rendered.keys() == wanted.keys()
        controller = ("Deployment", NAMESPACE, "splitter")
        template = rendered[controller]["spec"]["template"]["metadata"]
        assert set(template.pop("annotations")) == {"checksum/settings"}
        for one in (rendered, wanted):
            file = one["ConfigMap", NAMESPACE, "splitter-settings"]["data"]
            file["settings.yaml"] = yaml.safe_load(file["settings.yaml"])
        unmarked(rendered)
        for kind in ("Role", "RoleBinding"):
            assert wanted[kind, "shop", "splitter"]["metadata"]["labels"].pop("splitter.io/watched") == "true"
        assert rendered == wanted

    def test_values_reach_the_controller(self, renders: Helm) -> None:
        """Each value changes what it says, and another namespace is the namespace everywhere."""
        values = {
            "image.repository": "registry.example/splitter",
            "image.tag": "1.2.3",
            "image.pullPolicy": "Always",
            "imagePullSecrets[0].name": "pull",
            "settings.grace_s": "60",
            "replicas": "0",
            "resources.requests.memory": "1Gi",
            "nodeSelector.pool": "system",
            "podLabels.team": "platform",
            "podAnnotations.told": "yes",
            "priorityClass.create": "false",
            "priorityClass.name": "system",
            "networkPolicy.apiServerCidrs[0]": "10.0.0.1/32",
            "podDisruptionBudget.enabled": "false",
            "crds.install": "false",
            "admission.enabled": "false",
            "admission.placement": "true",
            "uninstall.enabled": "false",
        }
        reported = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        text = renders("template", RELEASE, str(CHART), "--namespace", "elsewhere", *reported)
        result = objects(text)
        deployment = result["Deployment", "elsewhere", "splitter"]["spec"]
        pod = deployment["template"]["spec"]
        [container] = pod["containers"]
        assert deployment["replicas"] == 0
        assert container["image"] == "registry.example/splitter:1.2.3"
        assert container["imagePullPolicy"] == "Always"
        assert container["resources"] == {"requests": {"memory": "1Gi"}}
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert pod["nodeSelector"] == {"pool": "system"}
        assert pod["priorityClassName"] == "system"
        metadata = deployment["template"]["metadata"]
        assert (
            metadata["labels"].items() >= {"app.kubernetes.io/name": "splitter", "team": "platform"}.items()
        )
        assert metadata["annotations"]["told"] == "yes"
        file = result["ConfigMap", "elsewhere", "splitter-settings"]["data"]["settings.yaml"]
        assert yaml.safe_load(file) == {"grace_s": 60}
        egress = result["NetworkPolicy", "elsewhere", "splitter"]["spec"]["egress"]
        assert egress[-1]["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
        kinds = {kind for kind, _, _ in result}
        assert not kinds & {"PodDisruptionBudget", "CustomResourceDefinition"}
        # That of the placeholders stays: no other class will do for them.
        assert [name for kind, _, name in result if kind == "PriorityClass"] == ["splitter-placeholder"]
        assert "MutatingAdmissionPolicy" in kinds
        assert "ValidatingAdmissionPolicy" not in kinds
        assert NAMESPACE not in text
        assert "helm.sh/hook" not in text

    @pytest.mark.parametrize(
        ("values", "kept_to"),
        [
            ((), '"splitter"'),
            (("priorityClass.name=urgent",), '"urgent"'),
            (("priorityClass.create=false", "priorityClass.name=system-cluster-critical"), None),
            (("priorityClass.name=",), None),
        ],
    )
    def test_the_policy_follows_the_priority_class(
        self, renders: Helm, values: tuple[str, ...], kept_to: str | None
    ) -> None:
        """The class that the chart makes is kept to its own pods; one of somebody else's is left alone."""
        reported = [word for value in values for word in ("--set", value)]
        result = objects(renders("template", RELEASE, str(CHART), "--namespace", "elsewhere", *reported))
        policies = {key[0]: raw["spec"] for key, raw in result.items() if key[2] == "splitter-priority"}
        if kept_to is None:
            assert not policies
            return
        assert set(policies) == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
        spec = policies["ValidatingAdmissionPolicy"]
        assert spec["matchConditions"][0]["expression"].endswith(f"== {kept_to}")
        assert spec["validations"][0]["expression"] == 'request.namespace == "elsewhere"'

    def test_the_policy_leaves_the_same_namespaces_alone(self, renders: Helm) -> None:
        """Of the system's namespaces, it writes nothing in those that the settings exclude."""
        values = ("--set", "settings.excluded_namespaces={kube-system,db}")
        rendered = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *values))
        policy = rendered["ValidatingAdmissionPolicy", "", "splitter-own-account"]["spec"]
        [alone] = [one for one in policy["validations"] if "excluded_namespaces" in one["message"]]
        assert '["kube-system"] +' in alone["expression"]

    @pytest.mark.parametrize("name", ["123", "null", "0x1f", "true"])
    def test_names_that_yaml_reads_as_something_else(self, renders: Helm, name: str) -> None:
        """All of these are names that a namespace and a class can have, and none is a number or nothing."""
        watched = "true" if name == "0x1f" else "0x1f"
        values = {
            "watchNamespaces": [watched],
            "priorityClass": {"create": False, "name": name},
            "flowSchema": {"enabled": True},
        }
        plain = rendered(renders, {**values, "watchNamespaces": ["shop"]}, namespace="elsewhere", hooks=True)
        result = rendered(renders, values, namespace=name, hooks=True)
        other = {"shop": watched, "elsewhere": name}
        assert set(result) == {(kind, other.get(space, space), own) for kind, space, own in plain}
        accounts = [one for raw in result.values() for one in raw.get("subjects") or ()]
        assert {one["namespace"] for one in accounts if one["kind"] == "ServiceAccount"} == {name}
        [rule] = result["FlowSchema", "", "splitter-lease"]["spec"]["rules"]
        assert rule["resourceRules"][0]["namespaces"] == [name]
        assert rule["subjects"][0]["serviceAccount"]["namespace"] == name
        job = result["Job", name, "splitter-uninstall"]["spec"]["template"]["spec"]
        assert job["priorityClassName"] == name

    def test_who_may_ask(self, renders: Helm) -> None:
        """Metrics and probes are narrowed each by itself."""
        values = {
            "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team": "monitoring",
            "networkPolicy.probesFrom[0].ipBlock.cidr": "10.0.0.0/16",
        }
        reported = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        result = objects(renders("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *reported))
        health, metrics = result["NetworkPolicy", NAMESPACE, "splitter"]["spec"]["ingress"]
        assert health == {"from": [{"ipBlock": {"cidr": "10.0.0.0/16"}}], "ports": [{"port": "health"}]}
        assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
        assert metrics["ports"] == [{"port": "metrics"}]

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("networkPolicy.metricsFrom[0].cidr=10.0.0.0/16", "metricsFrom"),
            ("settings.grace=60", "grace"),
            ("settings.grace_s=often", "grace_s"),
            ("settings.tuning.calm_s=often", "calm_s"),
            ("settings.calm_s=60", "calm_s"),
            ("settings.watch_namespaces={shop}", "watch_namespaces"),
            ("watchNamespaces={Shop}", "watchNamespaces"),
            ("image.name=splitter", "name"),
        ],
    )
    def test_wrong_values_are_named(self, renders: Helm, value: str, words: str) -> None:
        """A value that nobody reads, or that the controller would not start with, is refused."""
        answer = renders.ask("template", RELEASE, str(CHART), "--set", value)
        assert answer.returncode != 0
        assert "don't meet the specifications of the schema" in answer.stderr
        assert words in answer.stderr
