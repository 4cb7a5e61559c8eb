"""Objects out of lists: what was listed is not asked for, what was not is asked for once."""

import pytest

from kube.raw import deployment, metadata
from kube.server import Script, connected, json, refusal
from splitter.kube.client import ApiError
from splitter.kube.listed import Listed
from splitter.kube.paths import claims, placements, workloads

HERE, THERE = workloads("Deployment", "shop"), workloads("Deployment", "bank")


async def test_a_known_collection_answers_alone() -> None:
    """What is not in it is not there, in any namespace, and nobody is asked."""
    script = Script().then(refusal(500, "Broken", "never asked"))
    async with connected(script) as client:
        listed = Listed(client)
        listed.know(workloads("Deployment"))
        listed.keep(HERE, deployment("web"))
        result = await listed.find(HERE.of("web"))
        assert result is not None
        assert result["metadata"]["name"] == "web"
        assert await listed.find(HERE.of("api")) is None
        assert await listed.find(THERE.of("web")) is None
        assert [page["items"] async for page in listed.pages(HERE)] == [[result]]
        assert [page["items"] async for page in listed.pages(THERE)] == [[]]
    assert script.asked == []


async def test_any_other_is_asked_for_once() -> None:
    """Also when the answer was no."""
    script = Script().then(json({"metadata": metadata("data")}), refusal(403, "Forbidden", "no"))
    async with connected(script) as client:
        listed = Listed(client)
        for _ in range(2):
            assert await listed.find(claims("shop").of("data")) is not None
            assert await listed.find(claims("shop").of("logs")) is None
        with pytest.raises(ApiError, match="no"):
            await listed.get(claims("shop").of("logs"))
    assert len(script.asked) == 2


async def test_a_kind_is_asked_for_in_one_namespace() -> None:
    """Whether it is there is the same in all."""
    script = Script().then(json({"items": []}))
    async with connected(script) as client:
        listed = Listed(client)
        for namespace in ("shop", "bank"):
            assert await listed.get(placements(namespace), limit="1") == {"items": []}
    assert [asked.path for asked in script.asked] == [str(placements("shop"))]
