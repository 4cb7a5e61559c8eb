"""Which fields of a twin are new, in words."""

import json

from splitter.core.drift import changed_fields, overwritten
from splitter.core.model import Edit, Rendered


def rendered(**spec: object) -> Rendered:
    """Make a rendering of a twin with this spec."""
    return Rendered(json.dumps({"spec": spec}), "hash")


class TestChangedFields:
    def test_names_the_path_and_both_values(self) -> None:
        """A changed image is told as path, old and new."""
        before, after = rendered(image="web:1"), rendered(image="web:2")
        assert changed_fields(before, after) == ("spec.image: 'web:1' -> 'web:2'",)

    def test_is_empty_for_equal_renderings(self) -> None:
        """Nothing changed, nothing said."""
        assert changed_fields(rendered(a=1), rendered(a=1)) == ()

    def test_calls_items_by_their_names(self) -> None:
        """A container is told by its name, as people call it, wherever it stands in the list."""
        web, log = {"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}
        before, after = rendered(c=[web]), rendered(c=[log, {**web, "image": "web:2"}])
        assert changed_fields(before, after) == (
            "spec.c.log: not present -> {'name': 'log', 'image': 'log:1'}",
            "spec.c.web.image: 'web:1' -> 'web:2'",
        )

    def test_calls_other_items_by_their_number(self) -> None:
        """Items that have no name, or one name twice, are told by where they stand."""
        twice = [{"name": "a", "v": 1}, {"name": "a", "v": 2}]
        before, after = rendered(args=["x", "y"], e=twice), rendered(args=["x", "z"], e=twice[:1])
        assert changed_fields(before, after) == (
            "spec.args.1: 'y' -> 'z'",
            "spec.e.1: {'name': 'a', 'v': 2} -> not present",
        )

    def test_tells_another_order(self) -> None:
        """Containers in another order are another template, and roll."""
        web, log = {"name": "web"}, {"name": "log"}
        assert changed_fields(rendered(c=[web, log]), rendered(c=[log, web])) == (
            "spec.c.0.name: 'web' -> 'log'",
            "spec.c.1.name: 'log' -> 'web'",
        )

    def test_tells_an_object_that_became_empty(self) -> None:
        """What is empty has no parts, and is told itself."""
        assert changed_fields(rendered(a={}), rendered(a=[])) == ("spec.a: {} -> []",)

    def test_tells_what_came_and_what_went(self) -> None:
        """A field without a value on one side says so."""
        assert changed_fields(rendered(a=1), rendered(b=None)) == (
            "spec.a: 1 -> not present",
            "spec.b: not present -> None",
        )

    def test_leaves_out_our_marks(self) -> None:
        """The hashes differ because something else does: that is what is said."""
        before, after = (
            Rendered(json.dumps({"metadata": {"annotations": {"splitter.io/rendered-hash": one}}}), one)
            for one in ("a", "b")
        )
        assert changed_fields(before, after) == ()

    def test_is_bounded(self) -> None:
        """A change of everything does not flood the log, and long values are cut."""
        before = rendered(**{f"f{number}": "x" * 500 for number in range(8)})
        after = rendered(**{f"f{number}": "y" * 500 for number in range(8)})
        found = changed_fields(before, after)
        assert len(found) == 6
        assert found[-1] == "3 more"
        assert all(len(line) < 200 for line in found)


class TestOverwritten:
    """What somebody has written over a twin, against what the templates render for it."""

    WEB = '{"name":"web"}'
    OURS = rendered(containers=[{"name": "log", "image": "log:1"}, {"name": "web", "image": "web:1"}])

    def test_another_value(self) -> None:
        """A value that is not ours is told, the container by its name."""
        edit = Edit(("spec", "containers", self.WEB, "image"), "web:9")
        assert overwritten([edit], self.OURS) == ("spec.containers.web.image: 'web:1' -> 'web:9'",)

    def test_our_own_value(self) -> None:
        """Who writes what we have written changes nothing."""
        assert overwritten([Edit(("spec", "containers", self.WEB, "image"), "web:1")], self.OURS) == ()

    def test_what_was_added(self) -> None:
        """What the templates say nothing about is not in their way: a restart by annotation, a variable."""
        added = [
            Edit(("spec", "containers", self.WEB, "env", '{"name":"A"}', "value"), "1"),
            Edit(("spec", "containers", '{"name":"other"}', "image"), "other:1"),
            Edit(("metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now"),
            Edit(("spec", "containers", self.WEB, "image", "below"), "nothing"),
        ]
        assert overwritten(added, self.OURS) == ()
