"""What a verb looks up before it writes what a person would."""

import pytest

from kube.server import Answer, Script, connected, json, refusal
from splitter.core.names import STATEFUL_SET, Key
from splitter.kube.as_user import PlacementAnswer, placement_answer
from splitter.kube.client import ApiError

DB = Key(STATEFUL_SET, "shop", "db")


async def seen(answer: Answer) -> PlacementAnswer:
    """Return what is said of shop/db when its Split is read like this."""
    script = Script().then(answer)
    async with connected(script) as client:
        result = await placement_answer(client, DB)
    assert script.asked[0].path == "/apis/splitter.io/v1alpha1/namespaces/shop/splits/db-sts"
    return result


class TestReported:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [({"onDemandOrdinals": [0, 1]}, True), ({"onDemandOrdinals": []}, True), ({}, False)],
    )
    async def test_is_placed_by_the_ordinals(self, spec: dict[str, object], expected: bool) -> None:
        """None on on-demand is a placement too; a Split of twins has no ordinals."""
        assert await seen(json({"spec": {"takeOver": True, **spec}})) == PlacementAnswer(placed=expected)

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ({"reason": "NoSelector", "message": "it selects nothing"}, "NoSelector: it selects nothing"),
            ({"reason": "WaitingForTurn"}, "WaitingForTurn"),
            ({}, "not looked at yet"),
        ],
    )
    async def test_is_refused_in_the_controllers_words(self, status: dict[str, str], expected: str) -> None:
        """It is labelled, reported on, and not taken over."""
        assert await seen(json({"spec": {"takeOver": False}, "status": status})) == PlacementAnswer(
            refused=expected
        )

    @pytest.mark.parametrize("status", [403, 404])
    async def test_is_nothing_where_no_split_can_be_read(self, status: int) -> None:
        """Then the annotation is written, which does no harm."""
        assert await seen(refusal(status, "No", "no")) == PlacementAnswer()

    async def test_other_refusals_are_no_answer(self) -> None:
        """They are the user's to read."""
        with pytest.raises(ApiError):
            await seen(refusal(400, "BadRequest", "no"))
