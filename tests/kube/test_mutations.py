"""What came back otherwise than it was sent, and what only looks so."""

import json
from typing import Any

import pytest

from splitter.kube.mutations import NONE, Mutations, mutations


def templated(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 (fields of any type)
    """Return a workload with these fields in its pod spec."""
    return {"spec": {"template": {"spec": spec}}}


def container(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 (fields of any type)
    """Return a workload with one container."""
    return templated(containers=[{"name": "web", "image": "web:1", **fields}])


SAME = {
    "equal": (container(), container()),
    "a quantity in its own spelling": (
        container(resources={"limits": {"cpu": "1000m", "memory": 1024}}),
        container(resources={"limits": {"cpu": "1", "memory": "1Ki"}}),
    ),
    "a part of a cpu": (
        container(resources={"requests": {"cpu": "0.5"}}),
        container(resources={"requests": {"cpu": "500m"}}),
    ),
    "a quantity in a list without keys": (
        {"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}]}},
        {
            "spec": {
                "volumeClaimTemplates": [
                    {
                        "kind": "PersistentVolumeClaim",
                        "metadata": {"creationTimestamp": None},
                        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
                        "status": {"phase": "Pending"},
                    }
                ]
            }
        },
    ),
    "defaults": (
        container(ports=[{"containerPort": 80}]),
        container(
            ports=[{"containerPort": 80, "protocol": "TCP"}],
            imagePullPolicy="IfNotPresent",
            terminationMessagePath="/dev/termination-log",
            resources={},
        ),
    ),
    "what is nothing is left out": (
        container(env=[{"name": "A", "value": ""}], args=[], stdin=False),
        container(env=[{"name": "A"}]),
    ),
    "null": (templated(tolerations=None), templated()),
    "another order of containers": (
        templated(containers=[{"name": "a"}, {"name": "b"}]),
        templated(containers=[{"name": "b"}, {"name": "a"}]),
    ),
    "another order of tolerations": (
        templated(tolerations=[{"key": "a"}, {"key": "b"}]),
        templated(tolerations=[{"key": "b"}, {"key": "a"}]),
    ),
    "a label of the object": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
    ),
    "preconditions": (
        {"metadata": {"uid": "u", "resourceVersion": "7"}},
        {"metadata": {"resourceVersion": "8"}},
    ),
    "a number of the object that was not sent": ({"spec": {}}, {"spec": {"progressDeadlineSeconds": 600}}),
}
CHANGED = {
    "an image": (container(), container(image="mirror/web:1"), "spec.template.spec.containers.web.image"),
    "a container gone": (
        templated(containers=[{"name": "a"}, {"name": "b"}]),
        templated(containers=[{"name": "a"}]),
        "spec.template.spec.containers.b",
    ),
    "replicas": ({"spec": {"replicas": 0}}, {"spec": {"replicas": 2}}, "spec.replicas"),
    "a pause taken back": ({"spec": {"paused": True}}, {"spec": {"paused": False}}, "spec.paused"),
    "a quantity": (
        container(resources={"limits": {"cpu": "1"}}),
        container(resources={"limits": {"cpu": "2"}}),
        "spec.template.spec.containers.web.resources.limits.cpu",
    ),
    "a value of a variable that reads like a quantity": (
        container(env=[{"name": "CPUS", "value": "1000m"}]),
        container(env=[{"name": "CPUS", "value": "1"}]),
        "spec.template.spec.containers.web.env.CPUS.value",
    ),
    "a label": (
        {"metadata": {"labels": {"app": "web"}}},
        {"metadata": {"labels": {}}},
        "metadata.labels.app",
    ),
    "arguments in another order": (
        container(args=["a", "b"]),
        container(args=["b", "a"]),
        "spec.template.spec.containers.web.args",
    ),
    "a toleration": (
        templated(tolerations=[{"key": "a"}]),
        templated(tolerations=[{"key": "b"}]),
        "spec.template.spec.tolerations",
    ),
    "a bool": (templated(hostNetwork=True), templated(), "spec.template.spec.hostNetwork"),
    "the size of a claim": (
        {"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1Gi"}}}}]}},
        {"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}]}},
        "spec.volumeClaimTemplates",
    ),
    "all of it": (container(), {}, "spec"),
}
ADDED = {
    "a container": (
        container(),
        templated(containers=[{"name": "web", "image": "web:1"}, {"name": "proxy"}]),
        "spec.template.spec.containers.proxy",
    ),
    "an init container where there was none": (
        container(),
        templated(initContainers=[{"name": "init"}], containers=[{"name": "web", "image": "web:1"}]),
        "spec.template.spec.initContainers",
    ),
    "a variable": (
        container(env=[{"name": "A", "value": "1"}]),
        container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
        "spec.template.spec.containers.web.env.B",
    ),
    "a toleration": (
        templated(tolerations=[{"key": "a"}]),
        templated(tolerations=[{"key": "a"}, {"key": "b"}]),
        "spec.template.spec.tolerations",
    ),
    "a node selector": (
        templated(nodeSelector={"a": "1"}),
        templated(nodeSelector={"a": "1", "type": "fast"}),
        "spec.template.spec.nodeSelector.type",
    ),
    "a limit": (
        container(resources={"limits": {"cpu": "1"}}),
        container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        "spec.template.spec.containers.web.resources.limits.memory",
    ),
    "a class of its runtime": (
        templated(),
        {"spec": {"template": {"spec": {"runtimeClassName": "gvisor"}}}},
        "spec.template.spec.runtimeClassName",
    ),
    "an annotation of its pods": (
        {"spec": {"template": {"metadata": {"annotations": {"a": "1"}}}}},
        {"spec": {"template": {"metadata": {"annotations": {"a": "1", "b": "2"}}}}},
        "spec.template.metadata.annotations.b",
    ),
    "a term of the selector": (
        {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
        {"spec": {"selector": {"matchLabels": {"app": "web", "tier": "x"}}}},
        "spec.selector.matchLabels.tier",
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_no_change(what: str) -> None:
    """What the API server itself makes of a write."""
    sent, answer = SAME[what]
    assert mutations(sent, answer) == NONE


@pytest.mark.parametrize("what", CHANGED)
def test_what_was_sent_came_back_otherwise(what: str) -> None:
    """With the path of the field, and no value."""
    sent, answer, path = CHANGED[what]
    assert mutations(sent, answer) == Mutations(changed=(path,))


@pytest.mark.parametrize("what", ADDED)
def test_what_was_added_to_a_template(what: str) -> None:
    """Apart from defaults."""
    sent, answer, path = ADDED[what]
    assert mutations(sent, answer) == Mutations(added=(path,))


def test_what_a_patch_takes_off() -> None:
    """Null is gone, or it is no merge."""
    body, there = {"metadata": {"labels": {"app": None}}}, {"metadata": {"labels": {"app": "web"}}}
    assert mutations(body, {"metadata": {}}, merged=True) == NONE
    assert mutations(body, there, merged=True).changed == ("metadata.labels.app",)
    assert mutations(body, there) == NONE


def test_five_paths_and_how_many_more() -> None:
    """However many fields a policy changes."""
    sent = {"spec": {f"f{number}": 1 for number in range(9)}}
    assert mutations(sent, {"spec": {}}).changed == (*(f"spec.f{n}" for n in range(5)), "4 more")


def test_no_part_of_a_path_is_a_text_of_the_users() -> None:
    """Keys of lists may be any."""
    sent, answer = container(env=[{"name": "a text!", "value": "1"}]), container(env=[{"name": "b"}])
    assert mutations(sent, answer).changed == ("spec.template.spec.containers.web.env.*",)


def test_long_lists_are_compared_in_one_pass() -> None:
    """Whoever writes a template chooses how long they are."""
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(20_000)]
    sent, answer = templated(tolerations=many), templated(tolerations=[*reversed(many), {"key": "x"}])
    assert mutations(sent, answer).added == ("spec.template.spec.tolerations",)
    assert len(json.dumps(sent)) > 512 * 1024
