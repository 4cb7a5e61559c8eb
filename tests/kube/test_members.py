"""The pods of a StatefulSet: a stranger's pod is none of them, whatever it says of its owner."""

from dataclasses import replace

import pytest

from builders import NOW
from kube.raw import pod
from splitter.core.stateful import StatefulView
from splitter.kube import parse
from splitter.kube.members import members_of, rolls
from splitter.kube.records import PodRecord


def named(name: str, revision: str = "new", **fields: object) -> PodRecord:
    """Return a pod."""
    return replace(parse.pod(pod(name)), name=name, revision=revision, **fields)  # type: ignore[arg-type]


class TestMembers:
    def test_are_called_as_they_are_called(self) -> None:
        """`NAME-ORDINAL`, and nothing that only looks so."""
        names = ["db-0", "db-12", "db-2-0", "db-x", "db-01", "db", "dba-1", f"db-{'9' * 40}", "other-3"]
        assert [(ordinal, one.name) for ordinal, one in members_of(map(named, names), "db")] == [
            (0, "db-0"),
            (12, "db-12"),
        ]

    def test_are_in_order_of_their_names(self) -> None:
        """Whatever order they were seen in: the same is planned of the same."""
        seen = [named("db-2"), named("db-10"), named("db-0")]
        assert [one.name for _, one in members_of(seen, "db")] == ["db-0", "db-10", "db-2"]


class TestRolls:
    @pytest.mark.parametrize(
        ("pods", "partition", "first", "result"),
        [
            ([named("db-0"), named("db-1")], 0, 0, False),
            ([named("db-0"), named("db-1", "old")], 0, 0, True),
            ([named("db-0", "old"), named("db-1")], 1, 0, False),  # below the partition the old one stays
            ([named("db-5", "old"), named("db-6")], 1, 5, False),  # which counts from the first ordinal
            ([named("db-6", "old")], 1, 5, True),
            ([named("db-1", "old", terminating=True)], 0, 0, False),  # it is being replaced
            ([named("other-1", "old")], 0, 0, False),
            ([], 0, 0, False),
        ],
    )
    def test_while_a_pod_is_to_be_replaced(
        self, pods: list[PodRecord], partition: int, first: int, *, result: bool
    ) -> None:
        """A member above the partition that has another template."""
        of = StatefulView(2, 2, 2, NOW, revision="new", partition=partition, first_ordinal=first)
        assert rolls(pods, "db", of) is result
        assert not rolls(pods, "db", replace(of, on_delete=True))
