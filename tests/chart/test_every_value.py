"""Each value of the chart, changed once and wrong once: it does what it says, or is refused."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chart.rendered import Objects, at, merged, nested, refusal, rendered
from chart.values_table import values
from e2e.support.helm import NAMESPACE, Helm
from splitter import __version__

pytestmark = pytest.mark.slow

DIGEST = "sha256:" + "a" * 64
CONTROLLER = ("Deployment", NAMESPACE, "splitter")
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"
TERM = {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}}
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [TERM]}}
SPREAD = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}
PEER = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}


@dataclass(frozen=True, slots=True)
class Change:
    """A value other than its default, what is different then, and a value that is refused."""

    to: object
    where: tuple[str, str, str]
    part: str = ""
    """Of that object; with none the object is there, or, where `gives` is None, it is not."""
    gives: object = "there"
    wrong: object = 7
    beside: dict[str, Any] = field(default_factory=dict)
    """Other values, without which this one changes nothing."""


def _named(kind: str, name: str = "splitter") -> tuple[str, str, str]:
    return (kind, NAMESPACE, name)


MONITOR, RULE = _named("PodMonitor"), _named("PrometheusRule")
DASHBOARD = _named("ConfigMap", "splitter-dashboard")
NETWORK, BUDGET = _named("NetworkPolicy"), _named("PodDisruptionBudget")
ACCOUNT, OWN_ACCOUNT = _named("ServiceAccount"), _named("ServiceAccount", "own")
FLOW, LEVEL = ("FlowSchema", "", "splitter"), ("PriorityLevelConfiguration", "", "splitter")
NAMED = merged(nested("serviceAccount.name", "own"), nested("serviceAccount.create", True))
MONITORED = nested("monitoring.podMonitor.enabled", True)
ALERTED = nested("monitoring.prometheusRule.enabled", True)
SEEN = nested("monitoring.dashboard.enabled", True)
FLOWING = nested("flowSchema.enabled", True)
PULLED = [{"name": "pull"}]
TRUST = {"ca": {"secret": {"name": "cert", "key": "ca.crt"}}}
SOURCE = {"name": "ca", "configMap": {"name": "ca"}}
MOUNT = {"name": "ca", "mountPath": "/ca"}
UNINSTALLER = ("Job", NAMESPACE, "splitter-uninstall")

CHANGES: dict[str, Change] = {
    # The release is called "splitter", so that is in its name already unless the chart is called otherwise.
    "nameOverride": Change(
        "spot", _named("Deployment", "splitter-spot"), "metadata.name", "splitter-spot", "A!"
    ),
    "fullnameOverride": Change(
        "spot", _named("Deployment", "spot"), f"{POD}.serviceAccountName", "spot", "Spot"
    ),
    "commonLabels": Change({"team": "x"}, CONTROLLER, "metadata.labels.team", "x", {"team": "a b"}),
    "image.repository": Change(
        "r.example/s", CONTROLLER, f"{CONTAINER}.image", f"r.example/s:{__version__}", "a b"
    ),
    "image.tag": Change("1.2.3", CONTROLLER, f"{CONTAINER}.image", "splitter:1.2.3", "a/b"),
    "image.digest": Change(
        DIGEST, CONTROLLER, f"{CONTAINER}.image", f"splitter@{DIGEST}", "sha256:ab", nested("image.tag", "1")
    ),
    "image.requireDigest": Change(
        True,
        CONTROLLER,
        f"{CONTAINER}.image",
        f"splitter@{DIGEST}",
        "yes",
        nested("image.digest", DIGEST),
    ),
    "image.pullPolicy": Change("Always", CONTROLLER, f"{CONTAINER}.imagePullPolicy", "Always", "Often"),
    "imagePullSecrets": Change(PULLED, CONTROLLER, f"{POD}.imagePullSecrets", PULLED, ["pull"]),
    "serviceAccount.create": Change(False, OWN_ACCOUNT, gives=None, wrong="no", beside=NAMED),
    "serviceAccount.name": Change("own", CONTROLLER, f"{POD}.serviceAccountName", "own", "Own"),
    "serviceAccount.annotations": Change({"a": "b"}, ACCOUNT, "metadata.annotations.a", "b", {"a": 1}),
    "watchNamespaces": Change(["shop"], ("Role", "shop", "splitter"), wrong=["Shop"]),
    "settings": Change(
        {"grace_s": 60},
        _named("ConfigMap", "splitter-settings"),
        "data",
        {"settings.yaml": "grace_s: 60\n"},
        {"grace": 60},
    ),
    "crds.install": Change(
        False, ("CustomResourceDefinition", "", "splits.splitter.io"), gives=None, wrong="no"
    ),
    "shared.install": Change(
        False,
        ("PriorityClass", "", "splitter-placeholder"),
        gives=None,
        wrong="no",
        beside={"watchNamespaces": ["shop"]},
    ),
    "uninstall.enabled": Change(False, UNINSTALLER, gives=None, wrong="no"),
    "uninstall.timeoutSeconds": Change(9, UNINSTALLER, "spec.activeDeadlineSeconds", 34, 0),
    "admission.enabled": Change(
        False, ("ValidatingAdmissionPolicy", "", "splitter-own-account"), gives=None, wrong="no"
    ),
    "admission.placement": Change(True, ("MutatingAdmissionPolicy", "", "splitter-placement"), wrong="no"),
    "admission.keepPaused": Change(True, ("MutatingAdmissionPolicy", "", "splitter-keep-paused"), wrong=1),
    "admission.notices": Change(True, ("ValidatingAdmissionPolicy", "", "splitter-notices"), wrong="no"),
    "networkPolicy.enabled": Change(False, NETWORK, gives=None, wrong="no"),
    "networkPolicy.apiServerCidrs": Change(
        ["10.0.0.1/32"], NETWORK, "spec.egress.1.to", [{"ipBlock": {"cidr": "10.0.0.1/32"}}], ["10.0.0.1"]
    ),
    "networkPolicy.metricsFrom": Change([PEER], NETWORK, "spec.ingress.1.from", [PEER], [{"cidr": "x"}]),
    "networkPolicy.probesFrom": Change([PEER], NETWORK, "spec.ingress.0.from", [PEER], [{}]),
    "podDisruptionBudget.enabled": Change(False, BUDGET, gives=None, wrong="no"),
    "podDisruptionBudget.maxUnavailable": Change("50%", BUDGET, "spec.maxUnavailable", "50%", "half"),
    "podDisruptionBudget.minAvailable": Change(1, BUDGET, "spec.minAvailable", 1, "101%"),
    "priorityClass.create": Change(False, ("PriorityClass", "", "splitter"), gives=None, wrong="no"),
    "priorityClass.name": Change("urgent", CONTROLLER, f"{POD}.priorityClassName", "urgent", "Urgent!"),
    "flowSchema.enabled": Change(True, ("FlowSchema", "", "splitter-lease"), wrong="no"),
    "flowSchema.matchingPrecedence": Change(800, FLOW, "spec.matchingPrecedence", 800, 0, FLOWING),
    "flowSchema.nominalConcurrencyShares": Change(
        7, LEVEL, "spec.limited.nominalConcurrencyShares", 7, 0, FLOWING
    ),
    "sourceStatus.enabled": Change(True, ("ClusterRole", "", "splitter-source-status"), wrong="no"),
    "relief.enabled": Change(True, ("ClusterRole", "", "splitter-relief"), wrong="no"),
    "metrics.tls.secretName": Change(
        "cert",
        CONTROLLER,
        f"{POD}.volumes.1",
        {"name": "metrics-tls", "secret": {"secretName": "cert"}},
        "Cert",
    ),
    "metrics.tls.clientCertificates": Change(
        True,
        _named("ConfigMap", "splitter-settings"),
        "data",
        {
            "settings.yaml": "metrics_client_ca: /etc/splitter-metrics/ca.crt\n"
            "metrics_tls: /etc/splitter-metrics\n"
        },
        "yes",
        nested("metrics.tls.secretName", "cert"),
    ),
    "monitoring.podMonitor.enabled": Change(True, MONITOR, wrong="no"),
    "monitoring.podMonitor.labels": Change({"a": "b"}, MONITOR, "metadata.labels.a", "b", ["a"], MONITORED),
    "monitoring.podMonitor.interval": Change(
        "30s", MONITOR, "spec.podMetricsEndpoints.0.interval", "30s", "often", MONITORED
    ),
    "monitoring.podMonitor.scrapeTimeout": Change(
        "5s", MONITOR, "spec.podMetricsEndpoints.0.scrapeTimeout", "5s", "5", MONITORED
    ),
    "monitoring.podMonitor.tlsConfig": Change(
        TRUST, MONITOR, "spec.podMetricsEndpoints.0.tlsConfig", TRUST, {"ca": {"file": "/ca"}}, MONITORED
    ),
    "monitoring.prometheusRule.enabled": Change(True, RULE, wrong="no"),
    "monitoring.prometheusRule.kubePrometheus": Change(
        True, _named("PrometheusRule", "splitter-kube-prometheus"), wrong="no"
    ),
    "monitoring.prometheusRule.labels": Change({"a": "b"}, RULE, "metadata.labels.a", "b", ["a"], ALERTED),
    "monitoring.prometheusRule.runbookUrlPrefix": Change(
        "https://git.example/",
        RULE,
        "spec.groups.1.rules.0.annotations.runbook_url",
        "https://git.example/docs/runbooks/SplitterDown.md",
        "git.example",
        ALERTED,
    ),
    "monitoring.dashboard.enabled": Change(True, DASHBOARD, wrong="no"),
    "monitoring.dashboard.labels": Change({"a": "b"}, DASHBOARD, "metadata.labels.a", "b", ["a"], SEEN),
    "monitoring.dashboard.annotations": Change(
        {"folder": "x y"}, DASHBOARD, "metadata.annotations.folder", "x y", ["a"], SEEN
    ),
    "replicas": Change(0, CONTROLLER, "spec.replicas", 0, 6),
    "strategy": Change(STRATEGY, CONTROLLER, "spec.strategy", STRATEGY, {"type": "Slow"}),
    "terminationGracePeriodSeconds": Change(5, CONTROLLER, f"{POD}.terminationGracePeriodSeconds", 5, -1),
    "resources": Change(
        {"requests": {"memory": "1Gi"}},
        CONTROLLER,
        f"{CONTAINER}.resources",
        {"requests": {"memory": "1Gi"}},
        {"memory": "1Gi"},
    ),
    "affinity": Change(AFFINITY, CONTROLLER, f"{POD}.affinity", AFFINITY, {"node": {}}),
    "nodeSelector": Change({"a": "b"}, CONTROLLER, f"{POD}.nodeSelector", {"a": "b"}, {"a": 1}),
    "tolerations": Change(
        [{"operator": "Exists"}], CONTROLLER, f"{POD}.tolerations", [{"operator": "Exists"}], [{"name": "a"}]
    ),
    "topologySpreadConstraints": Change(
        [SPREAD], CONTROLLER, f"{POD}.topologySpreadConstraints", [SPREAD], [{"maxSkew": 0}]
    ),
    # As OpenShift wants it; what is not said stays strict.
    "podSecurityContext": Change(
        {"runAsUser": 1000660000},
        CONTROLLER,
        f"{POD}.securityContext",
        {
            "runAsNonRoot": True,
            "runAsUser": 1000660000,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        {"user": 1},
    ),
    "securityContext": Change(
        {"readOnlyRootFilesystem": False},
        CONTROLLER,
        f"{CONTAINER}.securityContext",
        {
            "readOnlyRootFilesystem": False,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        {"readOnly": True},
    ),
    "podAnnotations": Change({"a": "b"}, CONTROLLER, "spec.template.metadata.annotations.a", "b", {"a": 1}),
    "podLabels": Change({"a": "b"}, CONTROLLER, "spec.template.metadata.labels.a", "b", {"a": "b c"}),
    "extraArgs": Change(["--help"], CONTROLLER, f"{CONTAINER}.args.3", "--help", [1]),
    "extraEnv": Change(
        [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        CONTROLLER,
        f"{CONTAINER}.env.1.name",
        "HTTPS_PROXY",
        [{"name": "SPLITTER_OWN_NAMESPACE", "value": "x"}],
    ),
    "extraVolumes": Change([SOURCE], CONTROLLER, f"{POD}.volumes.1", SOURCE, [{"name": "settings"}]),
    "extraVolumeMounts": Change(
        [MOUNT], CONTROLLER, f"{CONTAINER}.volumeMounts.1", MOUNT, [{"name": "ca", "path": "/ca"}]
    ),
}


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Return Helm without a cluster."""
    return Helm(None, tmp_path)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Objects]:
    """Return what the chart makes without a change, of each values that changes need: rendered once."""
    helm = Helm(None, tmp_path_factory.mktemp("before"))

    @cache
    def of(values: str) -> Objects:
        return rendered(helm, json.loads(values), hooks=True)

    return lambda values: of(json.dumps(values))


def _part(objects: Objects, change: Change) -> object:
    """Return what a change is about: None where the object, or the part of it, is not there."""
    raw = objects.get(change.where)
    if not change.part:
        return None if raw is None else "there"
    return at(raw, change.part)


class TestEveryValue:
    def test_is_tried(self) -> None:
        """No value is forgotten here."""
        assert list(CHANGES) == [one.path for one in values()]

    def test_is_told(self) -> None:
        """Each has a comment."""
        assert not [one.path for one in values() if not one.reported]

    @pytest.mark.parametrize("path", CHANGES)
    def test_changes_what_it_says(
        self, helm: Helm, before: Callable[[dict[str, Any]], Objects], path: str
    ) -> None:
        """Without the value it is otherwise, with it as the value says."""
        change = CHANGES[path]
        after = rendered(helm, merged(change.beside, nested(path, change.to)), hooks=True)
        assert _part(after, change) == change.gives
        # With requireDigest nothing is otherwise: it is about what is refused, below.
        unchanged = _part(before(change.beside), change)
        assert (unchanged == change.gives) is (path == "image.requireDigest")

    def test_is_refused_when_wrong(self, helm: Helm) -> None:
        """Every wrong value is named by its path, all of them at once."""
        wrong: dict[str, Any] = {}
        for path, change in CHANGES.items():
            wrong = merged(wrong, nested(path, change.wrong))
        complaint = refusal(helm, wrong)
        unnamed = [path for path in CHANGES if f"at '/{path.replace('.', '/')}" not in complaint]
        assert not unnamed, complaint

    def test_unknown_ones_are_refused(self, helm: Helm) -> None:
        """A misspelled value is named, at every depth, all of them at once."""
        folders = {one.path.rpartition(".")[0] for one in values()} - {""} | {"settings"}
        misspelt: dict[str, Any] = {"misspelt": 1, "extraEnv": [{"name": "A", "misspelt": 1}]}
        for path in folders:
            misspelt = merged(misspelt, nested(path, {"misspelt": 1}))
        complaint = refusal(helm, misspelt)
        places = ["", *("/" + path.replace(".", "/") for path in folders), "/extraEnv/0"]
        said = "at '{}': additional properties 'misspelt' not allowed"
        unnamed = [place for place in places if said.format(place) not in complaint]
        assert not unnamed, complaint


class TestTogether:
    """Values that the schema cannot judge one by one."""

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"image": {"requireDigest": True}}, "image.digest"),
            (
                {
                    "image": {"requireDigest": True, "digest": DIGEST},
                    "admission": {"placement": True},
                },
                "settings.placeholder_image",
            ),
            (
                {
                    "image": {"requireDigest": True, "digest": DIGEST},
                    "settings": {"placeholder_image": "pause:3.10"},
                },
                "settings.placeholder_image",
            ),
            (
                {"image": {"requireDigest": True, "digest": DIGEST}, "relief": {"enabled": True}},
                "settings.placeholder_image",
            ),
            ({"serviceAccount": {"create": False}}, "serviceAccount.name"),
            (
                {"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}},
                "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable",
            ),
            ({"shared": {"install": False}}, "watchNamespaces"),
            ({"watchNamespaces": ["shop", "default"]}, "watchNamespaces"),
            ({"metrics": {"tls": {"clientCertificates": True}}}, "metrics.tls.secretName"),
        ],
    )
    def test_are_refused(self, helm: Helm, wrong: dict[str, Any], words: str) -> None:
        """The complaint begins with the path of the value to change."""
        assert f"{words}: " in refusal(helm, wrong)

    def test_a_digest_for_the_placeholders_too(self, helm: Helm) -> None:
        """With digests for both images nothing is refused, and the uninstaller runs the same image."""
        result = rendered(
            helm,
            {
                "image": {"requireDigest": True, "digest": DIGEST, "tag": "1.2.3"},
                "admission": {"placement": True},
                "settings": {"placeholder_image": f"pause@{DIGEST}", "placeholder_pull_secrets": ["pull"]},
            },
            hooks=True,
        )
        images = [at(result[one], f"{CONTAINER}.image") for one in (CONTROLLER, UNINSTALLER)]
        assert images == [f"splitter@{DIGEST}"] * 2
        assert "- pull" in result[_named("ConfigMap", "splitter-settings")]["data"]["settings.yaml"]

    def test_metrics_over_tls(self, helm: Helm) -> None:
        """The controller has the Secret where its settings say, and Prometheus asks over TLS."""
        objects = rendered(helm, merged(nested("metrics.tls.secretName", "cert"), MONITORED), hooks=True)
        [mount] = [
            one
            for one in at(objects[CONTROLLER], f"{CONTAINER}.volumeMounts")
            if one["name"] == "metrics-tls"
        ]
        assert mount["readOnly"] is True
        said = objects[_named("ConfigMap", "splitter-settings")]["data"]["settings.yaml"]
        assert said == f"metrics_tls: {mount['mountPath']}\n"
        assert at(objects[MONITOR], "spec.podMetricsEndpoints.0.scheme") == "https"
        assert "metrics-tls" not in str(objects[UNINSTALLER])

    @pytest.mark.parametrize("changed", [{}, {"podSecurityContext": {"runAsUser": 7}, "securityContext": {}}])
    def test_the_uninstaller_is_as_strict(self, helm: Helm, changed: dict[str, Any]) -> None:
        """The Job of `helm uninstall` has the security contexts of the controller, whatever they are."""
        result = rendered(helm, changed, hooks=True)
        for part in (f"{POD}.securityContext", f"{CONTAINER}.securityContext"):
            assert at(result[UNINSTALLER], part) == at(result[CONTROLLER], part) != {}
