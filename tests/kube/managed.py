"""Twins as the API server tells who owns which field of them (managedFields)."""

from typing import Any

from kube.raw import Raw, deployment

CONTAINER = '{"name":"web"}'
INTO_IT = ("spec", "template", "spec", "containers", CONTAINER)


def twin(*managed: Raw, **container: object) -> Raw:
    """Return a twin with one container, and who has written what."""
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"team": "shop"}},
        "spec": {"containers": [{"name": "log"}, {"name": "web", "image": "web:9", **container}]},
    }
    labels = {"splitter.io/split": "twin", "splitter.io/pool": "spot", "splitter.io/source": "web"}
    return deployment("web-spot", spec={"template": template}, labels=labels, managedFields=list(managed))


def writes(manager: str, template: dict[str, Any]) -> Raw:
    """Return an entry of managedFields about a pod template."""
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:template": template}}}


def in_container(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 (a tree of fields)
    """Return the fields of the container."""
    owned = {f"f:{name}": below for name, below in fields.items()}
    return {"f:spec": {"f:containers": {f"k:{CONTAINER}": {".": {}, **owned}}}}


def ours(**container: object) -> Raw:
    """Return our own entry of managedFields."""
    return {**writes("splitter", in_container(**container)), "operation": "Apply"}
