"""No placeholder takes the last of a ResourceQuota."""

from typing import Any

import pytest

from splitter.core.relief.model import Amounts
from splitter.kube.client import ApiError, Json
from splitter.kube.paths import ResourcePath
from splitter.kube.quotas import lacks_objects, lacks_room

REPLICA = Amounts(500.0, 1024.0**3)


class Served:
    """A reader that answers with these items, or fails."""

    def __init__(self, items: Any, error: ApiError | None = None) -> None:  # noqa: ANN401
        self._items, self._error = items, error

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """Answer."""
        assert str(path) == "/api/v1/namespaces/shop/resourcequotas"
        assert query == {"limit": "101"}  # no more is looked at
        if self._error is not None:
            raise self._error
        return {"items": self._items}


async def lacking(items: Any, error: ApiError | None = None) -> str:  # noqa: ANN401
    """Return why there are no two placeholders beside the replica."""
    return await lacks_room(Served(items, error), "shop", 2, REPLICA)  # type: ignore[arg-type]


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> Json:
    """Return a ResourceQuota."""
    return {"metadata": {"name": "small"}, "status": {"hard": hard, "used": used or {}}}


@pytest.mark.parametrize(
    ("hard", "used", "near"),
    [
        ({}, {}, False),
        ({"secrets": "1"}, {"secrets": "1"}, False),
        ({"pods": "20"}, {"pods": "17"}, False),
        ({"pods": "20"}, {"pods": "18"}, True),
        ({"count/pods": "20"}, {"count/pods": "18"}, True),
        ({"pods": "100"}, {"pods": "91"}, True),
        ({"requests.cpu": "4"}, {"requests.cpu": "3400m"}, False),
        ({"requests.cpu": "4"}, {"requests.cpu": "3500m"}, True),
        ({"cpu": "4"}, {"cpu": "3500m"}, True),
        ({"limits.memory": "4Gi"}, {"limits.memory": "3Gi"}, True),
        ({"pods": "20"}, {}, True),
        ({"pods": "20"}, {"pods": "25"}, True),
        ({"pods": "many"}, {"pods": "1"}, True),
    ],
)
async def test_is_near(hard: dict[str, str], used: dict[str, str], near: bool) -> None:
    """It lacks what placeholders and replica request together, or a tenth; one that is unread is near."""
    assert ("small" in await lacking([quota(hard, used)])) is near


async def test_one_of_several_is_enough() -> None:
    """Whatever it is about, by its scopes: that is not looked at."""
    assert await lacking([quota({}), quota({"pods": "1"}, {"pods": "1"})])
    assert await lacking([]) == ""


async def test_before_its_status_is_written() -> None:
    """Nobody knows yet what is used."""
    assert await lacking([{"metadata": {"name": "new"}, "spec": {"hard": {"pods": "99"}}}])


@pytest.mark.parametrize(
    ("items", "error", "said"),
    [
        (None, None, "cannot be read"),
        ([{}] * 101, None, "cannot be read"),
        ([], ApiError(403, "Forbidden", "no"), "apply manifests/relief.yaml"),
        ([], ApiError(0, "Timeout", "no answer"), "cannot be read: no answer"),
    ],
)
async def test_what_cannot_be_read_leaves_no_room(items: object, error: ApiError | None, said: str) -> None:
    """It is said why."""
    assert said in await lacking(items, error)


@pytest.mark.parametrize(
    ("hard", "used", "left"),
    [
        ({"count/replicasets.apps": "5"}, {"count/replicasets.apps": "2"}, None),
        ({"count/replicasets.apps": "4"}, {"count/replicasets.apps": "2"}, 2),
        ({"count/replicasets.apps": "2"}, {"count/replicasets.apps": "7"}, 0),
        ({"count/replicasets.apps": "2"}, {}, None),
        ({"count/secrets": "2"}, {"count/secrets": "2"}, None),
    ],
)
async def test_objects(hard: dict[str, str], used: dict[str, str], left: int | None) -> None:
    """Three are needed together; what is not counted yet says nothing."""
    served = Served([quota(hard, used)])
    said = await lacks_objects(served, "shop", {"count/replicasets.apps": 3})  # type: ignore[arg-type]
    assert said == (
        ""
        if left is None
        else f"ResourceQuota small has room for {left} more of count/replicasets.apps, and 3 are needed"
    )


async def test_objects_without_the_right_to_ask() -> None:
    """It is optional: each of them is asked for by itself."""
    served = Served([], ApiError(403, "Forbidden", "no"))
    assert not await lacks_objects(served, "shop", {"count/replicasets.apps": 3})  # type: ignore[arg-type]
