"""What others have written into a twin's pod template, told by who owns which field."""

from typing import Any

import pytest

from kube.raw import Raw, deployment
from splitter.core.model import Edit
from splitter.kube import parse

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


class TestEdits:
    def test_a_value(self) -> None:
        """`kubectl set image` is told with its path and its value, the container by its name."""
        raw = twin(writes("kubectl-set", in_container(image={})))
        assert parse.twin(raw).edits == (Edit((*INTO_IT, "image"), "web:9"),)

    def test_a_variable(self) -> None:
        """A list in a list is followed to the value."""
        variable = {"name": "MODE", "value": "fast"}
        below: Raw = {'k:{"name":"MODE"}': {"f:value": {}}}
        raw = twin(writes("kubectl-set", in_container(env=below)), env=[variable])
        assert parse.twin(raw).edits == (Edit((*INTO_IT, "env", '{"name":"MODE"}', "value"), "fast"),)

    def test_an_annotation(self) -> None:
        """Names with dots and slashes are names like any other."""
        raw = twin(writes("somebody", {"f:metadata": {"f:annotations": {"f:team": {}}}}))
        assert parse.twin(raw).edits == (
            Edit(("spec", "template", "metadata", "annotations", "team"), "shop"),
        )

    @pytest.mark.parametrize(
        "managed",
        [
            writes("splitter", in_container(image={})),
            writes("somebody", in_container(command={})),
            writes("somebody", in_container(gone={})),
            writes("somebody", {"f:spec": {"f:containers": {'k:{"name":"gone"}': {"f:image": {}}}}}),
            writes("somebody", {"f:spec": {"f:containers": {'v:"web"': {}}}}),
            {"manager": "kubectl-scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "somebody"},
        ],
        ids=["ours", "a list", "a field", "an item", "a set", "a count", "nothing"],
    )
    def test_none(self, managed: Raw) -> None:
        """Our own fields, whole lists, and what is no more there are no edits."""
        assert parse.twin(twin(managed, command=["run"])).edits == ()
