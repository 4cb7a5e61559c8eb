"""Which fields of a twin are new, in words."""

import json

from splitter.core.drift import changed_fields
from splitter.core.model import Rendered


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

    def test_is_bounded(self) -> None:
        """A change of everything does not flood the log, and long values are cut."""
        before = rendered(**{f"f{number}": "x" * 500 for number in range(8)})
        after = rendered(**{f"f{number}": "y" * 500 for number in range(8)})
        found = changed_fields(before, after)
        assert len(found) == 6
        assert found[-1] == "3 more"
        assert all(len(line) < 200 for line in found)
