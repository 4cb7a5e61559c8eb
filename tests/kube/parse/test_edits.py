"""What others have written into a twin's pod template, told by who owns which field."""

from datetime import datetime
from typing import Any

import pytest

from kube.raw import Raw, deployment
from splitter.core.keyed import Edit
from splitter.core.nodes.facts import NodeFacts, NodeState
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.mutations import NONE, Mutations
from splitter.kube.parse.edits import MAX_EDITS

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
        assert parse.twin(raw).view.edits == (Edit((*INTO_IT, "image"), "web:9"),)

    def test_a_variable(self) -> None:
        """A list in a list is followed to the value."""
        variable = {"name": "MODE", "value": "fast"}
        below: Raw = {'k:{"name":"MODE"}': {"f:value": {}}}
        raw = twin(writes("kubectl-set", in_container(env=below)), env=[variable])
        assert parse.twin(raw).view.edits == (Edit((*INTO_IT, "env", '{"name":"MODE"}', "value"), "fast"),)

    def test_very_many(self) -> None:
        """One is reason enough to write a twin anew, so no more are kept than say where."""
        names = [f"V{number}" for number in range(MAX_EDITS + 5)]
        below: Raw = {f'k:{{"name":"{name}"}}': {"f:value": {}} for name in reversed(names)}
        raw = twin(writes("x", in_container(env=below)), env=[{"name": name, "value": "1"} for name in names])
        result = parse.twin(raw).view.edits
        assert len(result) == MAX_EDITS
        assert {edit.value for edit in result} == {"1"}

    def test_an_annotation(self) -> None:
        """Names with dots and slashes are names like any other."""
        raw = twin(writes("somebody", {"f:metadata": {"f:annotations": {"f:team": {}}}}))
        assert parse.twin(raw).view.edits == (
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
        assert parse.twin(twin(managed, command=["run"])).view.edits == ()


class TestOwned:
    """What is ours by our last apply: the only trace that a removed field leaves."""

    def ours(self, **container: object) -> Raw:
        """Return our own entry of managedFields."""
        return {**writes("splitter", in_container(**container)), "operation": "Apply"}

    def test_changes_with_a_removed_field(self) -> None:
        """And with nothing else: not with the order of fields, nor with what others write beside them."""
        whole = parse.owned(twin(self.ours(image={}, livenessProbe={})))
        assert parse.owned(twin(self.ours(livenessProbe={}, image={}))) == whole
        beside = writes("kubectl-edit", in_container(tty={}))
        assert parse.owned(twin(beside, self.ours(image={}, livenessProbe={}))) == whole
        assert parse.owned(twin(self.ours(image={}))) != whole

    def test_is_nothing_before_our_first_apply(self) -> None:
        """A put of ours is an update, and owns by another name."""
        assert parse.owned(twin(writes("splitter", in_container(image={})))) == ""


class TestStripped:
    """Known since our last write; what was removed before we came is not."""

    def cache(self) -> Cache:
        """Return an empty cache that enqueues nobody."""
        return Cache(no_node, lambda *_, **__: None)

    def test_after_a_removal(self) -> None:
        """It is over with our next write."""
        cache, owner = self.cache(), TestOwned()
        whole, less = owner.ours(image={}, livenessProbe={}), owner.ours(image={})
        cache.twin_applied(twin(whole))
        (record,) = cache.twins.values()
        assert not cache.is_stripped(record)
        cache.twins.upsert(newer(twin(less), 2))
        (record,) = cache.twins.values()
        assert cache.is_stripped(record)
        cache.twin_applied(newer(twin(whole), 3))
        (record,) = cache.twins.values()
        assert not cache.is_stripped(record)

    def test_what_a_policy_made_of_it(self) -> None:
        """Known until the next write of ours, and forgotten with the twin."""
        cache, raw = self.cache(), twin(TestOwned().ours(image={}))
        cache.twin_applied(raw, Mutations(changed=("spec.replicas",)))
        (record,) = cache.twins.values()
        assert cache.mutated(record) == Mutations(changed=("spec.replicas",))
        cache.twin_applied(newer(raw, 3))
        assert cache.mutated(record) == NONE

    def test_before_our_first_write(self) -> None:
        """A controller that has just started takes twins as they are."""
        cache = self.cache()
        cache.twins.upsert(twin(TestOwned().ours(image={})))
        (record,) = cache.twins.values()
        assert not cache.is_stripped(record)


def newer(raw: Raw, version: int) -> Raw:
    """Return the object as it is somewhat later."""
    raw["metadata"]["resourceVersion"] = str(version)
    return raw


def no_node(facts: NodeFacts, *, now: datetime | None = None) -> NodeState:
    """Judge no node: there is none."""
    raise AssertionError((facts, now))
