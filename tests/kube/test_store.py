"""The indexer: what it believes when watches, lists and answers to our own writes arrive in any order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kube.raw import Raw, metadata
from splitter.kube.records import Record
from splitter.kube.store import Indexer


@dataclass(frozen=True)
class Thing(Record):
    """A record of a kind that does not exist."""

    colour: str


def parse(raw: Mapping[str, Any]) -> Thing:
    """Parse a thing."""
    result = raw["metadata"]
    return Thing(result["namespace"], result["uid"], int(result["resourceVersion"]), raw["colour"])


def thing(name: str, version: int = 1, colour: str = "red", **fields: Any) -> Raw:  # noqa: ANN401 (metadata's)
    """Return a raw thing."""
    return {"metadata": metadata(name, version=version, **fields), "colour": colour}


class Reported:
    """An indexer of things, and the changes it tells of: (colour before, colour after)."""

    def __init__(self) -> None:
        self.changes: list[tuple[str | None, str | None]] = []
        self.indexer = Indexer(parse, {"colour": lambda record: record.colour}, self._changed)

    def _changed(self, old: Thing | None, new: Thing | None) -> None:
        self.changes.append((old.colour if old else None, new.colour if new else None))

    def colours(self) -> dict[str, str]:
        """Return what the indexer holds."""
        return {record.uid: record.colour for record in self.indexer.values()}


@pytest.fixture
def reported() -> Reported:
    """Return an empty indexer."""
    return Reported()


class TestVersions:
    def test_newer_wins(self, reported: Reported) -> None:
        """A newer object replaces an older one, and both are told of."""
        reported.indexer.upsert(thing("a", 1, "red"))
        kept = reported.indexer.upsert(thing("a", 2, "blue"))
        assert kept == reported.indexer.get("shop", "uid-a")
        assert reported.colours() == {"uid-a": "blue"}
        assert reported.changes == [(None, "red"), ("red", "blue")]

    @pytest.mark.parametrize("version", [9, 10])
    def test_older_or_same_is_ignored(self, reported: Reported, version: int) -> None:
        """A late watch event never overwrites the answer to our own write; nobody is told."""
        reported.indexer.upsert(thing("a", 10, "blue"))
        kept = reported.indexer.upsert(thing("a", version, "red"))
        assert kept is not None
        assert (kept.colour, kept.version) == ("blue", 10)
        assert reported.changes == [(None, "blue")]

    def test_versions_are_numbers(self, reported: Reported) -> None:
        """Version 10 is newer than 9, although "10" sorts before "9"."""
        reported.indexer.upsert(thing("a", 9, "red"))
        reported.indexer.upsert(thing("a", 10, "blue"))
        assert reported.colours() == {"uid-a": "blue"}


class TestDeletions:
    def test_confirmed_deletion_is_final(self, reported: Reported) -> None:
        """An object whose deletion was confirmed to us does not come back with a late watch event."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.forget("uid-a")
        assert reported.indexer.upsert(thing("a", 5)) is None
        assert (len(reported.indexer), reported.changes) == (0, [(None, "red"), ("red", None)])

    def test_forgotten_before_seen(self, reported: Reported) -> None:
        """An object that is deleted before the watch tells of it never appears; nobody is told."""
        reported.indexer.forget("uid-a")
        reported.indexer.upsert(thing("a", 5))
        assert (reported.colours(), reported.changes) == ({}, [])

    def test_real_deletion_is_final(self, reported: Reported) -> None:
        """DELETED with a deletionTimestamp buries the UID."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.remove(thing("a", 2, deletionTimestamp="2026-01-05T10:00:00Z"))
        reported.indexer.upsert(thing("a", 3))
        assert reported.colours() == {}

    def test_no_longer_matching_may_return(self, reported: Reported) -> None:
        """DELETED without a deletionTimestamp only left the selector: it may match again."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.remove(thing("a", 2))
        assert reported.colours() == {}
        reported.indexer.upsert(thing("a", 3, "blue"))
        assert reported.colours() == {"uid-a": "blue"}

    def test_same_name_new_object(self, reported: Reported) -> None:
        """An object re-created under the same name has another UID and is not buried with the first."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.forget("uid-a")
        reported.indexer.upsert(thing("a", 7, "blue", uid="uid-second"))
        assert reported.colours() == {"uid-second": "blue"}

    def test_unknown_deletion_is_nothing(self, reported: Reported) -> None:
        """Telling of the end of something unknown tells nobody."""
        reported.indexer.remove(thing("a", 2))
        assert reported.changes == []

    def test_burials_are_bounded(self, reported: Reported) -> None:
        """Only the last few thousand deleted UIDs are remembered: the oldest could come again."""
        for number in range(4097):
            reported.indexer.forget(f"uid-{number}")
        assert reported.indexer.upsert(thing("0")) is not None
        assert reported.indexer.upsert(thing("1")) is None


class TestReplace:
    def test_what_is_not_listed_is_gone(self, reported: Reported) -> None:
        """A complete list of all namespaces takes away what it does not name, in any namespace."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.upsert(thing("b", 1, namespace="other"))
        reported.indexer.replace(map(reported.indexer.read, [thing("c", 5, "blue")]), None, 9)
        assert reported.colours() == {"uid-c": "blue"}

    def test_one_namespace_leaves_the_others(self, reported: Reported) -> None:
        """A complete list of one namespace says nothing about the others."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.upsert(thing("b", 1, namespace="other"))
        reported.indexer.replace([], "shop", 9)
        assert reported.colours() == {"uid-b": "red"}

    def test_only_changes_are_told(self, reported: Reported) -> None:
        """A re-list tells of what is new, changed and gone, not of what is the same."""
        for name in ("same", "changed", "gone"):
            reported.indexer.upsert(thing(name, 1))
        reported.changes.clear()
        reported.indexer.replace(
            map(
                reported.indexer.read,
                [thing("same", 1), thing("changed", 2, "blue"), thing("new", 3, "green")],
            ),
            None,
            9,
        )
        assert reported.changes == [("red", "blue"), (None, "green"), ("red", None)]

    def test_says_what_is_gone(self, reported: Reported) -> None:
        """What was seen to go, what a later list lacks; not what is there, unreadable, or not seen yet."""
        indexer = reported.indexer
        indexer.upsert(thing("there", 1))
        indexer.upsert(thing("went", 1))
        indexer.remove(thing("went", 2, deletionTimestamp="2026-01-05T10:00:00Z"))
        assert not indexer.is_gone("shop", "uid-there", 5)
        assert indexer.is_gone("shop", "uid-went", 5)
        assert not indexer.is_gone("shop", "uid-new", 5)
        indexer.replace(map(indexer.read, [thing("there", 1)]), "other", 9)
        assert not indexer.is_gone("shop", "uid-new", 5), "the list was of another namespace"
        indexer.replace(map(indexer.read, [thing("there", 1)]), "shop", 9)
        assert indexer.is_gone("shop", "uid-new", 9)
        assert not indexer.is_gone("shop", "uid-new", 10)

    def test_a_list_buries_what_it_lacks(self, reported: Reported) -> None:
        """Whatever the version of what it has made; and it may come back."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.replace([], None, 9)
        assert reported.indexer.is_gone("shop", "uid-a", 20)
        assert reported.indexer.upsert(thing("a", 11)) is not None
        assert not reported.indexer.is_gone("shop", "uid-a", 20)

    def test_older_list_does_not_undo_a_write(self, reported: Reported) -> None:
        """A list older than the answer to our own write leaves that answer in place."""
        reported.indexer.upsert(thing("a", 9, "blue"))
        reported.indexer.replace(map(reported.indexer.read, [thing("a", 3, "red")]), None, 9)
        assert reported.colours() == {"uid-a": "blue"}

    def test_may_return_in_a_later_list(self, reported: Reported) -> None:
        """What one list lacked (a selector, a lagging server) is no confirmed deletion."""
        reported.indexer.upsert(thing("a", 1))
        reported.indexer.replace([], None, 9)
        reported.indexer.replace(map(reported.indexer.read, [thing("a", 2)]), None, 9)
        assert reported.colours() == {"uid-a": "red"}


class TestIndexes:
    def test_find(self, reported: Reported) -> None:
        """An index finds all records filed under a key, and none under an unknown one."""
        for name, colour in (("a", "red"), ("b", "red"), ("c", "blue")):
            reported.indexer.upsert(thing(name, 1, colour))
        assert {record.uid for record in reported.indexer.find("colour", "red")} == {"uid-a", "uid-b"}
        assert reported.indexer.find("colour", "green") == ()

    def test_moves_with_the_record(self, reported: Reported) -> None:
        """A record that changes its key is found under the new one only."""
        reported.indexer.upsert(thing("a", 1, "red"))
        reported.indexer.upsert(thing("a", 2, "blue"))
        assert reported.indexer.find("colour", "red") == ()
        assert [record.version for record in reported.indexer.find("colour", "blue")] == [2]

    def test_same_key_new_record(self, reported: Reported) -> None:
        """A record that keeps its key is found in its newest form."""
        reported.indexer.upsert(thing("a", 1, "red"))
        reported.indexer.upsert(thing("a", 2, "red"))
        assert [record.version for record in reported.indexer.find("colour", "red")] == [2]

    def test_gone(self, reported: Reported) -> None:
        """What is gone is found no more."""
        reported.indexer.upsert(thing("a", 1, "red"))
        reported.indexer.forget("uid-a")
        assert reported.indexer.find("colour", "red") == ()

    def test_one_is_the_newest(self, reported: Reported) -> None:
        """Of an old and a re-created object under one key, the newest counts."""
        reported.indexer.upsert(thing("new", 8, "red"))
        reported.indexer.upsert(thing("old", 3, "red"))
        newest = reported.indexer.one("colour", "red")
        assert newest is not None
        assert newest.uid == "uid-new"
        assert reported.indexer.one("colour", "green") is None


class TestSamples:
    def test_one_for_each_key(self, reported: Reported) -> None:
        """However many things there are of a colour; a colour that is gone has none."""
        for number, colour in enumerate(["red", "red", "blue", "green"]):
            reported.indexer.upsert(thing(f"thing-{number}", 1, colour))
        reported.indexer.remove(thing("thing-3", 2, "green"))
        assert sorted(record.colour for record in reported.indexer.samples("colour")) == ["blue", "red"]


class TestOddObjects:
    @pytest.mark.parametrize(
        "odd",
        [
            {"metadata": metadata("odd")},
            thing("odd", colour=["red"]),  # type: ignore[arg-type]  # cannot be filed under
            {**thing("odd"), "metadata": {**metadata("odd"), "name": 7}},
        ],
    )
    def test_are_left_out(self, reported: Reported, odd: Raw) -> None:
        """What cannot be read or filed is not there, nobody is told, and all others are as before."""
        reported.indexer.upsert(thing("a"))
        assert reported.indexer.upsert(odd) is None
        reported.indexer.upsert(thing("b", colour="blue"))
        assert reported.colours() == {"uid-a": "red", "uid-b": "blue"}
        assert reported.changes == [(None, "red"), (None, "blue")]

    def test_are_logged_once(self, reported: Reported, caplog: pytest.LogCaptureFixture) -> None:
        """However often one is written again: its author chooses that."""
        for version in range(1, 4):
            reported.indexer.upsert(thing("odd", version, colour=["red"]))  # type: ignore[arg-type]  # as above
        assert [record.message.partition(":")[0] for record in caplog.records] == [
            "object shop/odd cannot be read and is left out"
        ]

    def test_that_was_in_order(self, reported: Reported) -> None:
        """It is believed to be as it was, and mended when it can be read again."""
        reported.indexer.upsert(thing("a"))
        reported.indexer.upsert(thing("a", 2, colour=["blue"]))  # type: ignore[arg-type]  # as above
        assert reported.colours() == {"uid-a": "red"}
        reported.indexer.upsert(thing("a", 3, "green"))
        assert reported.colours() == {"uid-a": "green"}
        assert reported.indexer.find("colour", "red") == ()
