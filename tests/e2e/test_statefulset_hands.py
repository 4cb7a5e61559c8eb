"""StatefulSets that are refused, that others write to, and that an autoscaler scales by their Split."""

import json
from collections.abc import Iterator

import pytest

from e2e.support.statefulset_hands import autoscaler
from lab.fixtures.database import BY_TWINS, Database
from lab.fixtures.metrics_api import A_LITTLE_LESS, TARGET_CPU_M, MetricsApi
from lab.sandbox import Sandbox

pytestmark = pytest.mark.e2e


@pytest.fixture
def metrics(sandbox: Sandbox) -> Iterator[MetricsApi]:
    """Yield the metrics of all pods."""
    with MetricsApi(sandbox) as serving:
        yield serving


def test_an_autoscaler_of_the_split(database: Database, metrics: MetricsApi) -> None:
    """The real controller scales `Split/db-sts` by the pods of both twins, out and in again."""
    shop = database.shop
    metrics.load(shop.namespace, int(3 * TARGET_CPU_M * A_LITTLE_LESS))
    database.deploy(3, annotations=BY_TWINS)
    database.label()
    database.wait_split(on_demand=2, spot=1)
    shop.apply(autoscaler("splitter.io/v1alpha1", "Split", "db-sts"))
    with database.watch() as watched:
        metrics.load(shop.namespace, int(7 * TARGET_CPU_M * A_LITTLE_LESS))
        database.wait_split(on_demand=4, spot=3)
        metrics.load(shop.namespace, int(4 * TARGET_CPU_M * A_LITTLE_LESS))
        database.wait_split(on_demand=3, spot=1)
        assert watched.lowest() >= 3
    raw = json.loads(shop.kubectl("get", "hpa", "db", "-o", "json"))
    assert raw["status"]["desiredReplicas"] == 4
    assert (database.split() or {})["spec"]["replicas"] == 4
