"""What a verb looks up, and what it writes as a person would."""

from typing import Any

import pytest

from kube.server import Answer, Script, connected, json, refusal
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.kube.as_user import PlacementAnswer, key_of, labelled, placement_answer
from splitter.kube.client import ApiError

DB = Key(STATEFUL_SET, "shop", "db")


def listed(kind: str, *names: str, namespace: str = "shop") -> dict[str, Any]:
    """Return a list of workloads."""
    items = [{"metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"}} for name in names]
    return {"kind": f"{kind}List", "metadata": {}, "items": items}


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


class TestLabelled:
    async def test_choose_of_both_kinds_and_all_namespaces(self) -> None:
        """In order of namespace and name, whatever kind they are."""
        answers = [
            json(listed("Deployment", "web")),
            json(listed("Deployment", "api", namespace="bank")),
            json(listed("StatefulSet", "db")),
            json(listed("StatefulSet")),
        ]
        script = Script().then(*answers)
        async with connected(script) as client:
            chosen = await labelled(client, ("shop", "bank"), "team=a")
        assert list(chosen.items()) == [
            (Key(DEPLOYMENT, "bank", "api"), "uid-api"),
            (Key(STATEFUL_SET, "shop", "db"), "uid-db"),
            (Key(DEPLOYMENT, "shop", "web"), "uid-web"),
        ]
        assert [asked.query["labelSelector"] for asked in script.asked] == ["team=a"] * 4


class TestKeyOfASplit:
    def test_is_that_of_its_source(self) -> None:
        """The Split of a StatefulSet has another name than its source."""
        source = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        named = {"namespace": "shop", "name": "db-sts"}
        assert key_of({"metadata": named, "spec": {"source": source}}) == DB

    def test_is_its_own_name_where_the_source_has_none(self) -> None:
        """Such as a name that no workload can have."""
        split = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"source": {"name": "no name"}}}
        assert key_of(split) == Key(DEPLOYMENT, "shop", "web")
