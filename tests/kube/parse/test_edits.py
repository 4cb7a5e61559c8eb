"""What others have written into a twin's pod template, told by who owns which field."""

from datetime import UTC, datetime

import pytest

from kube.managed import INTO_IT, in_container, ours, twin, writes
from kube.raw import Raw
from splitter.core.keyed import Edit
from splitter.kube import parse
from splitter.kube.parse.edits import MAX_EDITS


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
            writes("somebody", in_container(gone={})),
            writes("somebody", {"f:spec": {"f:containers": {'k:{"name":"gone"}': {"f:image": {}}}}}),
            writes("somebody", {"f:spec": {"f:containers": {'v:"web"': {}}}}),
            {"manager": "kubectl-scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "somebody"},
        ],
        ids=["ours", "a field", "an item", "a set", "a count", "nothing"],
    )
    def test_none(self, managed: Raw) -> None:
        """Our own fields, and what is no more there, are no edits."""
        assert parse.twin(twin(managed, command=["run"])).view.edits == ()

    def test_a_whole_list(self) -> None:
        """A list that is owned as one is told as one, with the time at which it was written."""
        written = {**writes("kubectl-edit", in_container(command={})), "time": "2026-01-05T10:00:00Z"}
        at = datetime(2026, 1, 5, 10, tzinfo=UTC)
        edits = parse.twin(twin(written, command=["run"])).view.edits
        assert edits == (Edit((*INTO_IT, "command"), ["run"], at),)


class TestOwned:
    """What is ours by our last apply: the only trace that a removed field leaves."""

    def test_changes_with_a_removed_field(self) -> None:
        """And with nothing else: not with the order of fields, nor with what others write beside them."""
        whole = parse.owned(twin(ours(image={}, livenessProbe={})))
        assert parse.owned(twin(ours(livenessProbe={}, image={}))) == whole
        beside = writes("kubectl-edit", in_container(tty={}))
        assert parse.owned(twin(beside, ours(image={}, livenessProbe={}))) == whole
        assert parse.owned(twin(ours(image={}))) != whole

    def test_is_nothing_before_our_first_apply(self) -> None:
        """A put of ours is an update, and owns by another name."""
        assert parse.owned(twin(writes("splitter", in_container(image={})))) == b""
