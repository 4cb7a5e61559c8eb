"""A twin beside what the API server would make of a rendered one: what differs is what would change."""

from typing import Any

import pytest

from builders import observation, pods, twin
from kube.server import Script, connected, json, refusal
from splitter.core.errors import SplitterError
from splitter.core.model import Rendered
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.kube.client import ApiError
from splitter.plugin.kube.comparison import compare

MADE = {
    pool: Rendered(
        f'{{"metadata": {{"name": "web-{pool}", "namespace": "shop"}}, "spec": {{}}}}',
        "hash",
        template_set="small",
    )
    for pool in Pool
}
NOT_THERE = refusal(404, "NotFound", "no")


def deployment(
    pool: Pool, replicas: int, annotations: dict[str, str] | None = None, **labels: str
) -> dict[str, Any]:
    """Return a twin as the API server shows it."""
    metadata = {
        "name": f"web-{pool}",
        "namespace": "shop",
        "uid": "u",
        "labels": labels,
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {"replicas": 9}}


class TestCompare:
    async def test_says_what_would_change(self) -> None:
        """Labels, annotations and spec; not what only splitter and controllers keep there."""
        ours = {"splitter.io/rendered-hash": "x", "deployment.kubernetes.io/revision": "3", "note": "kept"}
        script = Script().then(
            json(deployment(Pool.ON_DEMAND, 4, app="new")),
            json(deployment(Pool.ON_DEMAND, 4, ours, app="old")),
            json(deployment(Pool.SPOT, 0)),
            NOT_THERE,
        )
        async with connected(script) as client:
            first, second = await compare(client, observation(), MADE)
        assert (first.name, second.name) == ("web-on-demand", "web-spot")
        assert first.live == {
            "metadata": {"labels": {"app": "old"}, "annotations": {"note": "kept"}},
            "spec": {"replicas": 4},
        }
        assert first.would_be == {"metadata": {"labels": {"app": "new"}}, "spec": {"replicas": 4}}
        assert second.live == {}, "there is none yet"

    async def test_writes_nothing_and_keeps_the_counts(self) -> None:
        """A dry run of what stands there, with the replicas that it has."""
        answers = [json(deployment(pool, 6)) for pool in Pool for _ in ("would be", "is")]
        script = Script().then(*answers)
        seen = observation(on_demand=twin(Pool.ON_DEMAND, pods(6)), spot=twin(Pool.SPOT))
        async with connected(script) as client:
            await compare(client, seen, MADE)
        patches = [asked for asked in script.asked if asked.method == "PATCH"]
        assert [asked.query["dryRun"] for asked in patches] == ["All", "All"]
        payloads = [asked.body for asked in patches]
        assert [payload["spec"]["replicas"] for payload in payloads if isinstance(payload, dict)] == [6, 0]

    async def test_a_refusal_is_the_template_sets(self) -> None:
        """In words, as the controller would say it."""
        invalid = 'Deployment.apps "web" is invalid: spec.template.spec.containers[0].image: Required value'
        async with connected(Script().then(refusal(422, "Invalid", invalid))) as client:
            with pytest.raises(SplitterError) as caught:
                await compare(client, observation(), MADE)
        assert caught.value.reason is Reason.TEMPLATE_INVALID
        assert 'as the template set "small" renders it' in caught.value.message

    async def test_no_answer_is_no_difference(self) -> None:
        """It is told as what it is."""
        async with connected(Script().then(refusal(503, "ServiceUnavailable", "later"))) as client:
            with pytest.raises(ApiError, match="503"):
                await compare(client, observation(), MADE)
