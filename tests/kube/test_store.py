"""The shelf: what it believes when watches, lists and answers to our own writes arrive in any order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kube.raw import Raw, metadata
from splitter.kube.store import Shelf


@dataclass(frozen=True)
class Thing:
    """A record of a kind that does not exist."""

    uid: str
    namespace: str
    version: int
    colour: str


def parse(raw: Mapping[str, Any]) -> Thing:
    """Parse a thing."""
    found = raw["metadata"]
    return Thing(found["uid"], found["namespace"], int(found["resourceVersion"]), raw["colour"])


def thing(name: str, version: int = 1, colour: str = "red", **fields: Any) -> Raw:  # noqa: ANN401 (metadata's)
    """Return a raw thing."""
    return {"metadata": metadata(name, version=version, **fields), "colour": colour}


class Told:
    """A shelf of things, and the changes it tells of: (colour before, colour after)."""

    def __init__(self) -> None:
        self.changes: list[tuple[str | None, str | None]] = []
        self.shelf = Shelf(parse, {"colour": lambda record: record.colour}, self._changed)

    def _changed(self, old: Thing | None, new: Thing | None) -> None:
        self.changes.append((old.colour if old else None, new.colour if new else None))

    def colours(self) -> dict[str, str]:
        """Return what the shelf holds."""
        return {record.uid: record.colour for record in self.shelf.values()}


@pytest.fixture
def told() -> Told:
    """Return an empty shelf."""
    return Told()


class TestVersions:
    def test_newer_wins(self, told: Told) -> None:
        """A newer object replaces an older one, and both are told of."""
        told.shelf.upsert(thing("a", 1, "red"))
        kept = told.shelf.upsert(thing("a", 2, "blue"))
        assert kept == told.shelf.get("shop", "uid-a")
        assert told.colours() == {"uid-a": "blue"}
        assert told.changes == [(None, "red"), ("red", "blue")]

    @pytest.mark.parametrize("version", [9, 10])
    def test_older_or_same_is_ignored(self, told: Told, version: int) -> None:
        """A late watch event never overwrites the answer to our own write; nobody is told."""
        told.shelf.upsert(thing("a", 10, "blue"))
        kept = told.shelf.upsert(thing("a", version, "red"))
        assert kept is not None
        assert (kept.colour, kept.version) == ("blue", 10)
        assert told.changes == [(None, "blue")]

    def test_versions_are_numbers(self, told: Told) -> None:
        """Version 10 is newer than 9, although "10" sorts before "9"."""
        told.shelf.upsert(thing("a", 9, "red"))
        told.shelf.upsert(thing("a", 10, "blue"))
        assert told.colours() == {"uid-a": "blue"}


class TestDeletions:
    def test_confirmed_deletion_is_final(self, told: Told) -> None:
        """An object whose deletion was confirmed to us does not come back with a late watch event."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.forget("uid-a")
        assert told.shelf.upsert(thing("a", 5)) is None
        assert (len(told.shelf), told.changes) == (0, [(None, "red"), ("red", None)])

    def test_forgotten_before_seen(self, told: Told) -> None:
        """An object that is deleted before the watch tells of it never appears; nobody is told."""
        told.shelf.forget("uid-a")
        told.shelf.upsert(thing("a", 5))
        assert (told.colours(), told.changes) == ({}, [])

    def test_real_deletion_is_final(self, told: Told) -> None:
        """DELETED with a deletionTimestamp buries the UID."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.remove(thing("a", 2, deletionTimestamp="2026-01-05T10:00:00Z"))
        told.shelf.upsert(thing("a", 3))
        assert told.colours() == {}

    def test_no_longer_matching_may_return(self, told: Told) -> None:
        """DELETED without a deletionTimestamp only left the selector: it may match again."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.remove(thing("a", 2))
        assert told.colours() == {}
        told.shelf.upsert(thing("a", 3, "blue"))
        assert told.colours() == {"uid-a": "blue"}

    def test_same_name_new_object(self, told: Told) -> None:
        """An object re-created under the same name has another UID and is not buried with the first."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.forget("uid-a")
        told.shelf.upsert(thing("a", 7, "blue", uid="uid-second"))
        assert told.colours() == {"uid-second": "blue"}

    def test_unknown_deletion_is_nothing(self, told: Told) -> None:
        """Telling of the end of something unknown tells nobody."""
        told.shelf.remove(thing("a", 2))
        assert told.changes == []

    def test_burials_are_bounded(self, told: Told) -> None:
        """Only the last few thousand deleted UIDs are remembered: the oldest could come again."""
        for number in range(4097):
            told.shelf.forget(f"uid-{number}")
        assert told.shelf.upsert(thing("0")) is not None
        assert told.shelf.upsert(thing("1")) is None


class TestReplace:
    def test_what_is_not_listed_is_gone(self, told: Told) -> None:
        """A complete list of all namespaces takes away what it does not name, in any namespace."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.upsert(thing("b", 1, namespace="other"))
        told.shelf.replace(map(told.shelf.read, [thing("c", 5, "blue")]), None, 9)
        assert told.colours() == {"uid-c": "blue"}

    def test_one_namespace_leaves_the_others(self, told: Told) -> None:
        """A complete list of one namespace says nothing about the others."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.upsert(thing("b", 1, namespace="other"))
        told.shelf.replace([], "shop", 9)
        assert told.colours() == {"uid-b": "red"}

    def test_only_changes_are_told(self, told: Told) -> None:
        """A re-list tells of what is new, changed and gone, not of what is the same."""
        for name in ("same", "changed", "gone"):
            told.shelf.upsert(thing(name, 1))
        told.changes.clear()
        told.shelf.replace(
            map(told.shelf.read, [thing("same", 1), thing("changed", 2, "blue"), thing("new", 3, "green")]),
            None,
            9,
        )
        assert told.changes == [("red", "blue"), (None, "green"), ("red", None)]

    def test_older_list_does_not_undo_a_write(self, told: Told) -> None:
        """A list older than the answer to our own write leaves that answer in place."""
        told.shelf.upsert(thing("a", 9, "blue"))
        told.shelf.replace(map(told.shelf.read, [thing("a", 3, "red")]), None, 9)
        assert told.colours() == {"uid-a": "blue"}

    def test_may_return_in_a_later_list(self, told: Told) -> None:
        """What one list lacked (a selector, a lagging server) is no confirmed deletion."""
        told.shelf.upsert(thing("a", 1))
        told.shelf.replace([], None, 9)
        told.shelf.replace(map(told.shelf.read, [thing("a", 2)]), None, 9)
        assert told.colours() == {"uid-a": "red"}


class TestIndexes:
    def test_find(self, told: Told) -> None:
        """An index finds all records filed under a key, and none under an unknown one."""
        for name, colour in (("a", "red"), ("b", "red"), ("c", "blue")):
            told.shelf.upsert(thing(name, 1, colour))
        assert {record.uid for record in told.shelf.find("colour", "red")} == {"uid-a", "uid-b"}
        assert told.shelf.find("colour", "green") == ()

    def test_moves_with_the_record(self, told: Told) -> None:
        """A record that changes its key is found under the new one only."""
        told.shelf.upsert(thing("a", 1, "red"))
        told.shelf.upsert(thing("a", 2, "blue"))
        assert told.shelf.find("colour", "red") == ()
        assert [record.version for record in told.shelf.find("colour", "blue")] == [2]

    def test_same_key_new_record(self, told: Told) -> None:
        """A record that keeps its key is found in its newest form."""
        told.shelf.upsert(thing("a", 1, "red"))
        told.shelf.upsert(thing("a", 2, "red"))
        assert [record.version for record in told.shelf.find("colour", "red")] == [2]

    def test_gone(self, told: Told) -> None:
        """What is gone is found no more."""
        told.shelf.upsert(thing("a", 1, "red"))
        told.shelf.forget("uid-a")
        assert told.shelf.find("colour", "red") == ()

    def test_one_is_the_newest(self, told: Told) -> None:
        """Of an old and a re-created object under one key, the newest counts."""
        told.shelf.upsert(thing("new", 8, "red"))
        told.shelf.upsert(thing("old", 3, "red"))
        newest = told.shelf.one("colour", "red")
        assert newest is not None
        assert newest.uid == "uid-new"
        assert told.shelf.one("colour", "green") is None


class TestSamples:
    def test_one_for_each_key(self, told: Told) -> None:
        """However many things there are of a colour; a colour that is gone has none."""
        for number, colour in enumerate(["red", "red", "blue", "green"]):
            told.shelf.upsert(thing(f"thing-{number}", 1, colour))
        told.shelf.remove(thing("thing-3", 2, "green"))
        assert sorted(record.colour for record in told.shelf.samples("colour")) == ["blue", "red"]


class TestOddObjects:
    @pytest.mark.parametrize(
        "odd",
        [
            {"metadata": metadata("odd")},
            thing("odd", colour=["red"]),  # type: ignore[arg-type]  # cannot be filed under
            {**thing("odd"), "metadata": {**metadata("odd"), "name": 7}},
        ],
    )
    def test_are_left_out(self, told: Told, odd: Raw) -> None:
        """What cannot be read or filed is not there, nobody is told, and all others are as before."""
        told.shelf.upsert(thing("a"))
        assert told.shelf.upsert(odd) is None
        told.shelf.upsert(thing("b", colour="blue"))
        assert told.colours() == {"uid-a": "red", "uid-b": "blue"}
        assert told.changes == [(None, "red"), (None, "blue")]

    def test_that_was_in_order(self, told: Told) -> None:
        """It is believed to be as it was, and mended when it can be read again."""
        told.shelf.upsert(thing("a"))
        told.shelf.upsert(thing("a", 2, colour=["blue"]))  # type: ignore[arg-type]  # as above
        assert told.colours() == {"uid-a": "red"}
        told.shelf.upsert(thing("a", 3, "green"))
        assert told.colours() == {"uid-a": "green"}
        assert told.shelf.find("colour", "red") == ()
