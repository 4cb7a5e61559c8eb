"""What of objects goes into a bundle: secrets are planted wherever a user's values may stand."""

import json
from typing import Any

import pytest

from splitter.plugin.report.bundle import files, overview

PLANTED = "hunter2-planted"
TEMPLATE: dict[str, Any] = {
    "metadata": {"annotations": {"example.com/a": PLANTED}, "labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": f"r.example/{PLANTED}",
                "args": [f"--password={PLANTED}", PLANTED],
                "command": [PLANTED],
                "env": [{"name": "PASSWORD", "value": PLANTED}],
                "lifecycle": {"preStop": {"exec": {"command": [PLANTED]}}},
            }
        ],
        "initContainers": [{"name": "init", "args": [PLANTED]}],
        "hostAliases": [{"ip": PLANTED}],
    },
}
QUOTED = f'spec.template.spec.containers[0].image: Invalid value: "{PLANTED}": must not be empty'


def named(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 (whatever metadata has)
    """Make metadata with secrets in an annotation and in the fields that somebody applied."""
    return {
        "namespace": "shop",
        "name": name,
        "labels": {"splitter.io/split": "twin"},
        "annotations": {
            "splitter.io/soak": "10m",
            "example.com/a": PLANTED,
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(TEMPLATE),
        },
        "managedFields": [{"manager": PLANTED}],
        **more,
    }


CONDITION = {"type": "Progressing", "status": "False", "reason": "Failed", "message": QUOTED}
TWIN = {
    "metadata": named(
        "web-spot", ownerReferences=[{"kind": "Deployment", "name": "web", "controller": True}]
    ),
    "spec": {"replicas": 3, "paused": False, "template": TEMPLATE, "strategy": {"type": "RollingUpdate"}},
    "status": {"readyReplicas": 2, "conditions": [CONDITION]},
}
SPLIT = {
    "metadata": named("web"),
    "spec": {"source": {"kind": "Deployment", "name": "web"}, "unheardOf": PLANTED},
    "status": {
        "state": "Held",
        "reason": "TemplateInvalid",
        "message": QUOTED,
        "desired": 4,
        "conditions": [CONDITION],
        "decisions": [{"reason": "Denied", "message": f"the webhook denied the request: {PLANTED}"}],
    },
}
CONTROLLER = {
    "metadata": named("splitter"),
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "serviceAccountName": "splitter",
                "containers": [
                    {
                        "name": "splitter",
                        "image": "splitter:0.1.0",
                        "args": [
                            "run",
                            "--settings",
                            "/etc/splitter/settings.yaml",
                            f"--any={PLANTED}",
                            "--other",
                            PLANTED,
                        ],
                        "env": [
                            {"name": "SPLITTER_WORKERS", "value": "4"},
                            {"name": "HTTPS_PROXY", "value": f"http://me:{PLANTED}@proxy"},
                            {"name": "SPLITTER_TUNING_FAST_S", "value": "4"},
                            {"name": "SPLITTER_UNKNOWN", "value": PLANTED},
                            {"name": "SPLITTER_TUNING_UNKNOWN", "value": PLANTED},
                            {
                                "name": "SPLITTER_CONTEXT",
                                "valueFrom": {"secretKeyRef": {"name": PLANTED, "key": "a"}},
                            },
                        ],
                    }
                ],
            }
        },
    },
}
POD = {
    "metadata": named("splitter-1"),
    "spec": {"nodeName": "node-1", **TEMPLATE["spec"]},
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "splitter",
                "restartCount": 1,
                "lastState": {"terminated": {"reason": "Error", "exitCode": 1, "message": PLANTED}},
            }
        ],
    },
}


def event(name: str, by: str, note: str, kind: str = "Deployment") -> dict[str, Any]:
    """Make an Event in `shop`."""
    return {
        "metadata": {"namespace": "shop", "name": "e"},
        "regarding": {"kind": kind, "namespace": "shop", "name": name},
        "reason": "Told",
        "reportingController": by,
        "note": note,
    }


OURS = "splitter.io/splitter"
OBJECTS: dict[str, list[Any]] = {
    "version": [{"gitVersion": "v1.36.3", "platform": "linux/amd64", "buildDate": PLANTED}],
    "deployment": [CONTROLLER],
    "settings": [
        {
            "data": {
                "settings.yaml": (
                    f"grace_s: 60\npassword: {PLANTED}\ntuning: {{calm_s: 5, password: {PLANTED}}}\n"
                ),
                "other": PLANTED,
            }
        }
    ],
    "pods": [POD],
    "lease": [{"metadata": named("splitter"), "spec": {"holderIdentity": "splitter-1_ab"}}],
    "splits": [SPLIT],
    "deployments": [TWIN],
    "statefulsets": [{**TWIN, "spec": {**TWIN["spec"], "volumeClaimTemplates": [PLANTED]}}],
    "replicasets": [TWIN],
    "events": [
        event("web", OURS, f"refused: {QUOTED}"),
        event("web-spot", "kubelet", f"Error: cannot run {PLANTED}"),
        event("other", "kubelet", PLANTED),
    ],
}


@pytest.fixture
def parts() -> dict[str, Any]:
    """Return every file, as it is read again."""
    return {name: json.loads(text) for name, text in files(OBJECTS).items()}


class TestFiles:
    def test_have_no_value_of_a_users(self) -> None:
        """Not one of the planted secrets is anywhere."""
        reported = files(OBJECTS)
        assert json.dumps(OBJECTS).count(PLANTED) > 50
        assert [name for name, text in reported.items() if PLANTED in text] == []
        assert set(reported) == {f"{name}.json" for name in OBJECTS}

    def test_count_the_twins(self, parts: dict[str, Any]) -> None:
        """Names, labels, owners, counts, conditions without quotations, annotations of splitter's own."""
        [twin] = parts["deployments.json"]
        assert twin["metadata"]["annotations"] == {"splitter.io/soak": "10m"}
        assert twin["metadata"]["owners"] == [{"kind": "Deployment", "name": "web", "controller": True}]
        assert twin["spec"]["replicas"] == 3
        assert twin["status"]["readyReplicas"] == 2
        [condition] = twin["status"]["conditions"]
        assert condition["message"].endswith("image: Invalid value: …: must not be empty")

    def test_tell_the_splits(self, parts: dict[str, Any]) -> None:
        """State, reason, counts and decisions; of its spec what is splitter's."""
        [split] = parts["splits.json"]
        assert split["spec"] == {"source": {"kind": "Deployment", "name": "web"}}
        assert split["status"]["reason"] == "TemplateInvalid"
        assert split["status"]["desired"] == 4
        assert split["status"]["decisions"][0]["message"] == "the webhook denied the request: …"

    def test_tell_the_settings_in_force(self, parts: dict[str, Any]) -> None:
        """Settings of the file and of the environment; of a Secret that it is one, of other words none."""
        assert parts["settings.json"] == [
            {"grace_s": 60, "password": "…", "tuning.calm_s": 5, "tuning.password": "…"}
        ]
        [container] = parts["deployment.json"][0]["containers"]
        assert container["image"] == "splitter:0.1.0"
        assert container["args"] == [
            "run",
            "--settings",
            "/etc/splitter/settings.yaml",
            "--any=…",
            "--other",
            "…",
        ]
        assert container["env"] == [
            {"name": "SPLITTER_WORKERS", "value": "4"},
            {"name": "HTTPS_PROXY", "value": "…"},
            {"name": "SPLITTER_TUNING_FAST_S", "value": "4"},
            {"name": "SPLITTER_UNKNOWN", "value": "…"},
            {"name": "SPLITTER_TUNING_UNKNOWN", "value": "…"},
            {"name": "SPLITTER_CONTEXT", "from": ["secretKeyRef"]},
        ]

    @pytest.mark.parametrize(
        ("text", "reported"),
        [
            ("a: [", [{"unreadable": "settings.yaml is no YAML"}]),
            ("a: 2026-99-99", [{"unreadable": "settings.yaml is no YAML"}]),
            ("a: !!bool maybe", [{"unreadable": "settings.yaml is no YAML"}]),
            ("[]", [{}]),
            ("", [{}]),
        ],
    )
    def test_take_any_settings_file(self, text: str, reported: list[object]) -> None:
        """One that cannot be read is said to be so."""
        made = files({"settings": [{"data": {"settings.yaml": text}}]})
        assert json.loads(made["settings.json"]) == reported

    def test_tell_how_the_pods_ended(self, parts: dict[str, Any]) -> None:
        """The code and the reason, and not the last words."""
        [pod] = parts["pods.json"]
        assert pod["node"] == "node-1"
        ended = pod["containers"][0]["lastState"]
        assert ended == {"terminated": {"reason": "Error", "exitCode": 1}}

    def test_tell_events_about_splitters_objects(self, parts: dict[str, Any]) -> None:
        """Its own with their sentence, others' about a twin with their reason, and no others."""
        own, other = parts["events.json"]
        assert own["note"].startswith("refused: spec.template.spec.containers[0].image")
        assert other["regarding"]["name"] == "web-spot"
        assert "note" not in other

    def test_leave_out_what_was_not_read(self) -> None:
        """A part that could not be read has no file; an empty one has."""
        assert files({"splits": []}) == {"splits.json": "[]\n"}

    @pytest.mark.parametrize("part", [one for one in OBJECTS if one != "events"])
    def test_take_objects_with_nothing_in_them(self, part: str) -> None:
        """What an object lacks is left out; none is too poor."""
        assert len(json.loads(files({part: [{}]})[f"{part}.json"])) == 1


class TestOverview:
    def test_says_what_is_missing_and_why(self) -> None:
        """Each part with its reason, which quotes nothing."""
        reported = overview("0.1.0", ["a.json"], {"splits": f'refused: "{PLANTED}"'}, "")
        assert "leader: unknown" in reported
        assert "  a.json" in reported
        assert "  splits: refused: …" in reported
        assert PLANTED not in reported
