"""What nodes and pods really use, as metrics.k8s.io tells it: what cannot be read counts as none."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from splitter.core.relief.model import Amounts, Sample
from splitter.kube.client import ApiError, Json
from splitter.kube.paths import ResourcePath
from splitter.kube.real_use import real_use

AT = "2026-01-05T10:00:00Z"
NOON = datetime(2026, 1, 5, 10, tzinfo=UTC)


class Served:
    """A reader that answers with these nodes and pods, or fails."""

    def __init__(self, nodes: Any = (), pods: Any = (), error: ApiError | None = None) -> None:  # noqa: ANN401
        self._answers = {"nodes": nodes, "pods": pods}
        self._error = error
        self.asked: list[str] = []

    async def get(self, path: ResourcePath, **query: str) -> Json:
        """Answer."""
        self.asked.append(f"{path}?{query}" if query else str(path))
        if self._error is not None:
            raise self._error
        items = self._answers[path.plural]
        return {"items": list(items) if isinstance(items, list | tuple) else items}

    async def find(self, path: ResourcePath) -> Json | None:
        """Never be asked."""
        raise AssertionError(path)

    def pages(self, path: ResourcePath, limit: int = 500, **query: str) -> AsyncIterator[Json]:
        """Never be asked."""
        raise AssertionError(path, limit, query)


def node(name: object = "node-1", cpu: object = "1500m", memory: object = "2Gi", at: object = AT) -> Json:
    """Return a NodeMetrics."""
    return {"metadata": {"name": name}, "timestamp": at, "usage": {"cpu": cpu, "memory": memory}}


class TestRealUse:
    async def test_is_read(self) -> None:
        """Of nodes their use, of pods the sum of their containers'; one request each."""
        usage = {"cpu": "123456789n", "memory": "1Mi"}
        pod = {
            "metadata": {"name": "web-1", "namespace": "shop"},
            "timestamp": AT,
            "containers": [{"usage": usage}, {"usage": usage}],
        }
        served = Served([node()], [pod])
        used = await real_use(served, ())
        assert used.nodes == {"node-1": Sample(NOON, Amounts(1500.0, 2.0 * 1024**3))}
        assert used.pods == {("shop", "web-1"): Sample(NOON, Amounts(248.0, 2.0 * 1024**2))}
        assert used.missing == ""
        assert served.asked == [
            "/apis/metrics.k8s.io/v1beta1/nodes",
            "/apis/metrics.k8s.io/v1beta1/pods?{'labelSelector': 'splitter.io/pool'}",
        ]

    async def test_of_pods_only_in_its_namespaces(self) -> None:
        """A namespaced install asks for nobody else's pods."""
        served = Served()
        await real_use(served, ("shop", "till"))
        assert [one.split("?")[0] for one in served.asked[1:]] == [
            "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods",
            "/apis/metrics.k8s.io/v1beta1/namespaces/till/pods",
        ]

    @pytest.mark.parametrize(
        "raw",
        [
            None,
            7,
            {},
            {"metadata": {"name": "node-1"}},
            node(name=None),
            node(name=["node-1"]),
            node(cpu=None),
            node(cpu=1500),
            node(cpu="much"),
            node(cpu="1e999999999"),
            node(cpu="9" * 5000),
            node(cpu="NaN"),
            node(cpu="٨"),
            node(memory={"Gi": 2}),
            node(at=None),
            node(at="yesterday"),
            node(at="2026-01-05T10:00:00Z" + " " * 50),
        ],
    )
    async def test_what_cannot_be_read_counts_as_none(self, raw: object) -> None:
        """It hides nobody else's."""
        used = await real_use(Served([raw, node("node-2")]), ())
        assert list(used.nodes) == ["node-2"]

    @pytest.mark.parametrize("containers", [None, [], {}, [7], [{"usage": None}], [{"usage": {}}] * 101])
    async def test_pods_too(self, containers: object) -> None:
        """A pod of which one container cannot be read has no use."""
        pod = {
            "metadata": {"name": "web-1", "namespace": "shop"},
            "timestamp": AT,
            "containers": containers,
        }
        assert (await real_use(Served([node()], [pod]), ())).pods == {}

    async def test_a_negative_one_is_left_to_who_judges(self) -> None:
        """`relief.samples` says of it that it is no amount."""
        used = await real_use(Served([node(cpu="-5")]), ())
        assert used.nodes["node-1"].used.cpu == -5000

    @pytest.mark.parametrize(
        ("error", "missing"),
        [
            (ApiError(403, "Forbidden", "no"), "apply manifests/relief.yaml"),
            (ApiError(404, "KindMissing", "404 page not found"), "install metrics-server"),
            (ApiError(503, "ServiceUnavailable", "down"), "nobody answers for metrics.k8s.io"),
            (ApiError(0, "Timeout", "no answer"), "metrics.k8s.io cannot be read: no answer"),
        ],
    )
    async def test_says_what_is_missing(self, error: ApiError, missing: str) -> None:
        """Each with what to do."""
        used = await real_use(Served(error=error), ())
        assert missing in used.missing
        assert (used.nodes, used.pods) == ({}, {})

    async def test_an_answer_of_another_shape(self) -> None:
        """Without items it is none."""
        assert "without items" in (await real_use(Served(nodes=7), ())).missing
