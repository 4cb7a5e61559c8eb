"""N in an annotation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.statefulset.databases import DB, stateful
from splitter.core.labels_annotations import source_of_split, split_name
from splitter.core.labels_annotations.saved import parse_saved, saved_value
from splitter.core.names import STATEFUL_SET, Key


class TestSaved:
    @given(st.integers(0, 999), st.integers(0, 999))
    def test_is_read_as_written(self, replicas: int, left: int) -> None:
        """Both numbers come back."""
        saved_replicas = parse_saved(saved_value(replicas, left))
        assert saved_replicas is not None
        assert (saved_replicas.replicas, saved_replicas.left) == (replicas, left)

    @pytest.mark.parametrize(
        "text", [None, "", "five", "-1", "true", "[5]", '{"replicas":"5"}', "5.5", "2147483648", "9" * 5000]
    )
    def test_nonsense_is_nothing(self, text: str | None) -> None:
        """What nobody of ours wrote counts as not saved, and N is found elsewhere."""
        assert parse_saved(text) is None

    def test_the_split_has_a_name_of_its_own(self) -> None:
        """A Deployment of the same name has another Split."""
        assert split_name(DB) == "db-sts"
        assert split_name(Key("Deployment", "shop", "db")) == "db"
        assert source_of_split(STATEFUL_SET, "shop", "db-sts") == DB
        copy = source_of_split(STATEFUL_SET, "shop", "db")
        assert copy == Key("Deployment", "shop", "db")

    @pytest.mark.parametrize(
        ("spec", "saved", "left", "by_others"),
        [
            (5, None, 0, False),
            (0, 5, 0, False),
            (3, 5, 3, False),
            (5, 5, 0, True),
            (7, 5, 3, True),
            (0, 5, 3, False),
        ],
    )
    def test_who_wrote_it(self, spec: int, saved: int | None, left: int, by_others: bool) -> None:
        """Another number than we have left is somebody's N; 0 is nobody's."""
        assert stateful(spec, saved=saved, left=left).is_written_by_others is by_others
