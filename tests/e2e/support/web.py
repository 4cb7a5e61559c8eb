"""A Deployment that real nodes run, and the Service in front of it: an application that behaves.

It is told to end 2 s before it stops listening, so that everybody has heard that it goes; it ends what it has
begun; and it is Ready when it answers.
"""

from e2e.support.planted import ANNOTATIONS, in_container
from e2e.support.shop import JsonObject
from splitter.sandbox.real import images

PORT = 8080
OLD, NEW = images.WEB


def service(name: str = "web") -> JsonObject:
    """Return the Service."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def budget(available: int, name: str = "web") -> JsonObject:
    """Return a budget that keeps so many pods available."""
    spec = {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}
    metadata = {"name": name}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def template(name: str = "web") -> JsonObject:
    """Return the pod template, which `shop.manifest` takes."""
    fields = {"POD": "metadata.name", "NODE": "spec.nodeName"}
    reported = [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()]
    planted = in_container()
    # A probe that fails because the machine is busy says nothing about the pod.
    patient = {"periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 5}
    container = {
        "name": "web",
        "image": OLD,
        "imagePullPolicy": "Never",
        "ports": [{"containerPort": PORT}],
        **planted,
        "env": [*planted["env"], *reported, {"name": "WORK", "value": "10ms"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT}, **patient},
        "lifecycle": {"preStop": {"sleep": {"seconds": 2}}},
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 10,
        "containers": [container],
    }
    return {"metadata": {"labels": {"app": name}, "annotations": dict(ANNOTATIONS)}, "spec": pod}
