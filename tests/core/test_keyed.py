"""Lists by key: what is found, what is no key, and that a list is walked once."""

from collections.abc import Iterator

import pytest

from splitter.core.keyed import KeyedLists

PORTS = [
    {"containerPort": 80, "protocol": "TCP", "name": "web"},
    {"containerPort": 80, "protocol": "UDP"},
    {"containerPort": 80, "protocol": "TCP", "name": "again"},
    "no map",
    {"containerPort": {}, "protocol": "TCP"},
    {"protocol": "TCP"},
]


class Counted(list[object]):
    """A list that counts how often it is walked."""

    walks = 0

    def __iter__(self) -> Iterator[object]:
        """Begin another walk."""
        self.walks += 1
        return super().__iter__()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ('{"containerPort":80,"protocol":"UDP"}', PORTS[1]),
        ('{"protocol":"TCP","containerPort":80}', PORTS[0]),
        ('{"containerPort":81,"protocol":"TCP"}', None),
        ('{"containerPort":{},"protocol":"TCP"}', None),
        ('{"containerPort":[],"protocol":"TCP"}', None),
        ('["containerPort"]', None),
    ],
)
def test_the_first_item_with_this_key(key: str, value: object) -> None:
    """All its fields are the item's, in whatever order; what no key can be is found nowhere."""
    assert KeyedLists().find(PORTS, key) == value


def test_what_is_no_json_is_told() -> None:
    """Who asks reads an object, and leaves it out."""
    with pytest.raises(ValueError, match="Expecting"):
        KeyedLists().find(PORTS, "web")


def test_a_list_is_walked_once_whatever_it_is_asked_for() -> None:
    """Whoever writes an object chooses the number of items and of keys."""
    items, lists = Counted({"name": f"v{number}"} for number in range(50)), KeyedLists()
    assert [lists.find(items, f'{{"name":"v{number}"}}') for number in range(50)] == list(items)
    assert all(lists.find(items, f'{{"other{number}":1}}') is None for number in range(50))
    assert items.walks == 2  # ours, and the comparison above
