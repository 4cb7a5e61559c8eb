"""What a verb looks up before it writes what a person would."""

import pytest

from kube.server import Answer, Script, connected, json, refusal
from splitter.core.model import STATEFUL_SET, Key
from splitter.kube.as_user import is_placed
from splitter.kube.client import ApiError

DB = Key(STATEFUL_SET, "shop", "db")


async def placed(answer: Answer) -> bool:
    """Return what is said of shop/db when its Split is read like this."""
    script = Script().then(answer)
    async with connected(script) as client:
        found = await is_placed(client, DB)
    assert script.asked[0].path == "/apis/splitter.io/v1alpha1/namespaces/shop/splits/db-sts"
    return found


class TestIsPlaced:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [({"onDemandOrdinals": [0, 1]}, True), ({"onDemandOrdinals": []}, True), ({}, False)],
    )
    async def test_goes_by_the_ordinals(self, spec: dict[str, object], expected: bool) -> None:
        """None on on-demand is a placement too; a Split of twins has no ordinals."""
        assert await placed(json({"spec": spec})) is expected

    @pytest.mark.parametrize("status", [403, 404])
    async def test_is_not_where_no_split_can_be_read(self, status: int) -> None:
        """Then the annotation is written, which does no harm."""
        assert not await placed(refusal(status, "No", "no"))

    async def test_other_refusals_are_no_answer(self) -> None:
        """They are the user's to read."""
        with pytest.raises(ApiError):
            await placed(refusal(400, "BadRequest", "no"))
