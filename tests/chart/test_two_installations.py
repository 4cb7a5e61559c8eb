"""Two installations in one cluster, each with namespaces of its own: they share no name."""

import json
from pathlib import Path

import pytest

from chart.rendered import LABELS, Objects, rendered
from e2e.support.helm import Helm
from splitter import __version__

CLUSTER = ""


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Return Helm without a cluster."""
    return Helm(None, tmp_path)


EVERYTHING = {
    "flowSchema": {"enabled": True},
    "monitoring": {
        "podMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True, "kubePrometheus": True},
        "dashboard": {"enabled": True},
    },
    "admission": {"placement": True, "notices": True, "keepPaused": True},
}


@pytest.fixture
def first(helm: Helm) -> Objects:
    """Return the installation with what a cluster has once."""
    values = {**EVERYTHING, "watchNamespaces": ["shop"]}
    return rendered(helm, values, release="splitter", namespace="one", hooks=True)


@pytest.fixture
def second(helm: Helm) -> Objects:
    """Return the other one."""
    values = {**EVERYTHING, "watchNamespaces": ["cart"], "shared": {"install": False}}
    return rendered(helm, values, release="blue", namespace="two", hooks=True)


class TestTwoInstallations:
    def test_share_no_name(self, first: Objects, second: Objects) -> None:
        """No object of one is an object of the other, in the cluster, in `default` and in `kube-system`."""
        assert not first.keys() & second.keys()
        assert {key[2] for key in second if key[1] == CLUSTER}
        assert all(key[2].startswith("blue-splitter") for key in second if key[1] != "two")

    def test_have_all_that_is_not_shared(self, first: Objects, second: Objects) -> None:
        """The second lacks what a cluster has once, and nothing else."""
        named = {
            (kind, {"one": "two", "shop": "cart"}.get(space, space), name.replace("splitter", "", 1))
            for kind, space, name in first
        }
        there = {
            (kind, space, name.replace("blue-splitter", "", 1).replace("splitter", "", 1))
            for kind, space, name in second
        }
        assert sorted({name for _, _, name in named - there}) == [
            "-edit",
            "-ignored-keys",
            "-keep-controller",
            "-keep-crd",
            "-notices",
            "-placeholder",
            "-placement",
            "-uninstall-crd",
            "-view",
            "-wrong-values",
            "placements..io",
            "splits..io",
        ]
        assert not there - named

    def test_refer_to_their_own(self, second: Objects) -> None:
        """Every binding, volume and account that the second names is its own, or is shared."""
        names = {(kind, name) for kind, _, name in second}
        for (kind, _, name), raw in second.items():
            for subject in raw.get("subjects", ()):
                assert subject["namespace"] == "two", name
                assert ("ServiceAccount", subject["name"]) in names, name
            if "roleRef" in raw:
                assert (raw["roleRef"]["kind"], raw["roleRef"]["name"]) in names, name
            if kind.endswith("PolicyBinding"):
                assert (kind.removesuffix("Binding"), raw["spec"]["policyName"]) in names, name
        [deployment] = [raw for (kind, _, _), raw in second.items() if kind == "Deployment"]
        pod = deployment["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == pod["priorityClassName"] == "blue-splitter"
        assert ("ConfigMap", pod["volumes"][0]["configMap"]["name"]) in names
        [schema] = [
            raw for (kind, _, name), raw in second.items() if (kind, name) == ("FlowSchema", "blue-splitter")
        ]
        assert schema["spec"]["priorityLevelConfiguration"] == {"name": "blue-splitter"}

    def test_are_judged_each_by_their_own_policies(self, second: Objects) -> None:
        """The policies of the second are about its account, its priority, its names."""

        def conditions(name: str) -> str:
            spec = second["ValidatingAdmissionPolicy", "", f"blue-splitter-{name}"]["spec"]
            return json.dumps([spec["matchConditions"], spec["validations"]])

        assert 'system:serviceaccount:two:blue-splitter\\"' in conditions("own-account")
        assert '== \\"blue-splitter\\"' in conditions("priority")
        assert 'request.namespace == \\"two\\"' in conditions("priority")

    def test_are_kept_paused_each_by_their_own_policy(self, first: Objects, second: Objects) -> None:
        """It exempts the account of its own installation, and looks at the namespaces of that one alone."""
        for one, name, account, namespace in (
            (first, "splitter", "one:splitter", "shop"),
            (second, "blue-splitter", "two:blue-splitter", "cart"),
        ):
            policy = one["MutatingAdmissionPolicy", "", f"{name}-keep-paused"]["spec"]
            binding = one["MutatingAdmissionPolicyBinding", "", f"{name}-keep-paused"]["spec"]
            exempt = f'request.userInfo.username != "system:serviceaccount:{account}"'
            assert exempt in [condition["expression"] for condition in policy["matchConditions"]]
            [where] = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
            assert where == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}

    def test_are_kept_by_the_first_one_alone(self, helm: Helm, second: Objects) -> None:
        """The policy is about the names of its release; the second would wait for the splits of the first."""
        policy = ("ValidatingAdmissionPolicy", "", "blue-splitter-keep-controller")
        assert policy not in second
        only = rendered(helm, release="blue", namespace="two")
        kept = only[policy]["spec"]["matchConditions"][1]["expression"]
        assert '["blue-splitter", "blue-splitter", "splitter-lease"].exists(start, oldObject.' in kept
        assert 'in ["blue-splitter", "blue-splitter-events", "blue-splitter-autoscaler-status"]' in kept
        assert 'startsWith("splitter")' not in kept

    def test_do_not_fit_into_one_namespace(self, helm: Helm, first: Objects) -> None:
        """Of two in one namespace one would stand by for ever: they share an object, so Helm refuses."""
        values = {"watchNamespaces": ["cart"], "shared": {"install": False}}
        other = rendered(helm, values, release="blue", namespace="one")
        assert set(first) & set(other) == {
            ("Role", "one", "splitter-lease"),
            ("RoleBinding", "one", "splitter-lease"),
        }

    def test_are_told_apart_by_labels(self, first: Objects, second: Objects) -> None:
        """Every object says of which release it is, of which version, and who manages it."""
        for one, release in ((first, "splitter"), (second, "blue")):
            for key, raw in one.items():
                labels = raw["metadata"]["labels"]
                assert [labels[name] for name in LABELS] == [release, "Helm", __version__], key
                assert labels["app.kubernetes.io/name"].startswith("splitter"), key


class TestDashboard:
    def test_may_be_switched_off(self, first: Objects) -> None:
        """It lacks the label by which keep-controller keeps ConfigMaps while anything is split."""
        labels = first["ConfigMap", "one", "splitter-dashboard"]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] != "splitter"
        assert labels["grafana_dashboard"] == "1"
