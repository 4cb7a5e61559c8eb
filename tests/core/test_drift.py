"""Which fields of a twin are new: paths, and never what stands there."""

import json
from dataclasses import replace

import pytest

from splitter.core.drift import changed_fields, missing, overwritten
from splitter.core.keyed import Edit
from splitter.core.model import Rendered


def rendered(**spec: object) -> Rendered:
    """Make a rendering of a twin with this spec."""
    return Rendered(json.dumps({"spec": spec}), "hash")


class TestChangedFields:
    def test_names_the_path(self) -> None:
        """A changed image is told as its path."""
        assert changed_fields(rendered(image="web:1"), rendered(image="web:2")) == ("spec.image",)

    def test_holds_no_value(self) -> None:
        """Neither the old nor the new value of a variable, an argument or an annotation is told."""

        def pod(secret: str) -> Rendered:
            env = [{"name": "DB_PASSWORD", "value": f"hunter2-{secret}"}]
            containers = [{"name": "web", "env": env, "args": [f"--token=hunter2-{secret}", "serve"]}]
            annotations = {"example.com/key": f"hunter2-{secret}"}
            return rendered(metadata={"annotations": annotations}, containers=containers)

        lines = changed_fields(pod("old"), pod("new"))
        assert lines == (
            "spec.containers.web.args.0",
            "spec.containers.web.env.DB_PASSWORD.value",
            "spec.metadata.annotations.example.com/key",
        )

    @pytest.mark.parametrize("before", [None, "x", 1, [], {}, ["y"], {"a": "b"}])
    @pytest.mark.parametrize("secret", ["hunter2", ["hunter2"], {"value": "hunter2"}, [{"value": "hunter2"}]])
    def test_holds_no_value_of_any_shape(self, before: object, secret: object) -> None:
        """What came, went or changed its shape is told as its path too."""
        for pair in ((rendered(a=before), rendered(a=secret)), (rendered(a=secret), rendered(a=before))):
            lines = changed_fields(*pair)
            assert lines
            assert "hunter2" not in " ".join(lines)

    @pytest.mark.parametrize("name", ["hunter2 is my password", "a=hunter2", "x" * 300, "ü", "", "{"])
    def test_holds_no_key_that_is_none(self, name: str) -> None:
        """A key that looks like no name of a field, a label or a variable is not repeated."""
        lines = changed_fields(rendered(), rendered(env=[{"name": name, "value": "x"}], labels={name: "x"}))
        assert lines == ("spec.env", "spec.labels")
        lines = changed_fields(rendered(labels={}), rendered(labels={name: "x"}))
        assert lines == ("spec.labels.*",)

    def test_is_empty_for_equal_renderings(self) -> None:
        """Nothing changed, nothing said."""
        assert changed_fields(rendered(a=1), rendered(a=1)) == ()

    def test_calls_items_by_their_names(self) -> None:
        """A container is told by its name, as people call it, wherever it stands in the list."""
        web, log = {"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}
        before, after = rendered(c=[web]), rendered(c=[log, {**web, "image": "web:2"}])
        assert changed_fields(before, after) == ("spec.c.log", "spec.c.web.image")

    def test_calls_other_items_by_their_number(self) -> None:
        """Items that have no name, or one name twice, are told by where they stand."""
        twice = [{"name": "a", "v": 1}, {"name": "a", "v": 2}]
        before, after = rendered(args=["x", "y"], e=twice), rendered(args=["x", "z"], e=twice[:1])
        assert changed_fields(before, after) == ("spec.args.1", "spec.e.1")

    def test_tells_another_order(self) -> None:
        """Containers in another order are another template, and roll."""
        web, log = {"name": "web"}, {"name": "log"}
        assert changed_fields(rendered(c=[web, log]), rendered(c=[log, web])) == (
            "spec.c.0.name",
            "spec.c.1.name",
        )

    def test_tells_what_became_empty_or_of_another_type(self) -> None:
        """What is empty has no parts, and is told itself; so is a number that became a text."""
        assert changed_fields(rendered(a={}), rendered(a=[])) == ("spec.a",)
        assert changed_fields(rendered(a=1), rendered(a="1")) == ("spec.a",)

    def test_tells_what_came_and_what_went(self) -> None:
        """A field that is there on one side only is told by its path."""
        assert changed_fields(rendered(a=1), rendered(b=None)) == ("spec.a", "spec.b")

    def test_leaves_out_our_marks(self) -> None:
        """The hashes differ because something else does: that is what is said."""
        before, after = (
            Rendered(json.dumps({"metadata": {"annotations": {"splitter.io/rendered-hash": one}}}), one)
            for one in ("a", "b")
        )
        assert changed_fields(before, after) == ()

    def test_is_bounded(self) -> None:
        """A change of everything does not flood the log."""
        before = rendered(**{f"f{number}": "x" * 500 for number in range(8)})
        after = rendered(**{f"f{number}": "y" * 500 for number in range(8)})
        lines = changed_fields(before, after)
        assert len(lines) == 6
        assert lines[-1] == "3 more"


class TestOverwritten:
    """What somebody has written over a twin, against what the templates render for it."""

    WEB = '{"name":"web"}'
    OURS = rendered(containers=[{"name": "log", "image": "log:1"}, {"name": "web", "image": "web:1"}])

    def test_another_value(self) -> None:
        """A value that is not ours is told as its path, the container by its name."""
        edit = Edit(("spec", "containers", self.WEB, "image"), "web:9")
        assert overwritten([edit], self.OURS) == ("spec.containers.web.image",)

    def test_keys_of_several_parts(self) -> None:
        """An item without a name is told by the values of its key; what looks like no name is left out."""
        port = '{"containerPort":80,"protocol":"TCP"}'
        odd = '{"mountPath":"/hunter2 is my password"}'
        ours = rendered(
            ports=[{"containerPort": 80, "protocol": "TCP", "hostPort": 1}],
            volumeMounts=[{"mountPath": "/hunter2 is my password", "readOnly": False}],
        )
        edits = [
            Edit(("spec", "ports", port, "hostPort"), 2),
            Edit(("spec", "volumeMounts", odd, "readOnly"), True),
        ]
        assert overwritten(edits, ours) == ("spec.ports.80/TCP.hostPort", "spec.volumeMounts.*.readOnly")

    def test_our_own_value(self) -> None:
        """Who writes what we have written changes nothing."""
        assert overwritten([Edit(("spec", "containers", self.WEB, "image"), "web:1")], self.OURS) == ()

    def test_is_bounded(self) -> None:
        """An edit of everything fits into one sentence."""
        ours = rendered(**{f"f{number}": "x" for number in range(8)})
        lines = overwritten([Edit(("spec", f"f{number}"), "y") for number in range(8)], ours)
        assert (len(lines), lines[-1]) == (6, "3 more")

    def test_what_was_added(self) -> None:
        """What the templates say nothing about is not in their way: a restart by annotation, a variable."""
        added = [
            Edit(("spec", "containers", self.WEB, "env", '{"name":"A"}', "value"), "1"),
            Edit(("spec", "containers", '{"name":"other"}', "image"), "other:1"),
            Edit(("metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now"),
            Edit(("spec", "containers", self.WEB, "image", "below"), "nothing"),
        ]
        assert overwritten(added, self.OURS) == ()

    def test_a_restart(self) -> None:
        """A restart by annotation replaces the pods once; putting it back would replace them again."""
        restarted = "kubectl.kubernetes.io/restartedAt"
        ours = Rendered(json.dumps({"metadata": {"annotations": {restarted: "then"}}}), "1")
        assert overwritten([Edit(("metadata", "annotations", restarted), "now")], ours) == ()
        assert missing([("metadata", "annotations", restarted)], ours) == ()

    def test_a_whole_list(self) -> None:
        """Beside what we say a list or map has the server's defaults; another item is another value."""
        ours = rendered(tolerations=[{"key": "a"}], command=["run", "fast"])
        same = Edit(("spec", "tolerations"), [{"key": "a", "operator": "Equal"}])
        assert overwritten([same, Edit(("spec", "command"), ["run", "fast"])], ours) == ()
        assert overwritten([Edit(("spec", "command"), ["run"])], ours) == ("spec.command",)
        assert overwritten([replace(same, value=[{"key": "b"}])], ours) == ("spec.tolerations",)


def test_what_is_missing() -> None:
    """What was removed and the templates render, a finalizer too; what the source has dropped is none."""
    ours = Rendered(json.dumps({"metadata": {"finalizers": ["example.com/a"]}, "spec": {"a": 1}}), "1")
    paths = [("spec", "a"), ("spec", "b"), ("metadata", "finalizers", '"example.com/a"')]
    assert missing(paths, ours) == ("metadata.finalizers.*", "spec.a")
