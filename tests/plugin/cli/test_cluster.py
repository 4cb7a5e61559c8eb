"""Which cluster, namespace and workloads a verb is asked about: as kubectl finds them."""

from pathlib import Path
from typing import Any

import pytest
import typer

from kube.server import Script, connected, json
from splitter.core.labels_annotations import SOURCES_SELECTOR
from splitter.core.names import DEPLOYMENT, Key
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.target import Target


def listed(kind: str, *names: str, namespace: str = "shop") -> dict[str, Any]:
    """Return a list of workloads."""
    items = [{"metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"}} for name in names]
    return {"kind": f"{kind}List", "metadata": {}, "items": items}


class TestTarget:
    def test_a_name_and_labels_contradict_each_other(self) -> None:
        """Either is meant."""
        with pytest.raises(typer.BadParameter, match="name a workload, or choose by -l, not both"):
            Cluster(selector="a=b", namespace="shop").target("web")

    def test_is_in_the_namespace_of_the_context_unless_another_is_named(self, tmp_path: Path) -> None:
        """Or all are."""
        file = tmp_path / "config"
        context = {"name": "here", "context": {"namespace": "bank"}}
        file.write_text(f"current-context: here\ncontexts: [{context}]\n", encoding="utf-8")
        for cluster, namespace in (
            (Cluster(kubeconfig=file), "bank"),
            (Cluster(kubeconfig=file, namespace="shop"), "shop"),
            (Cluster(kubeconfig=file, everywhere=True), None),
            (Cluster(kubeconfig=file, context="nowhere"), "default"),
        ):
            assert cluster.target(None).namespace == namespace


class TestLabels:
    async def test_and_the_target_are_both_heeded(self) -> None:
        """Without labels the API server is not even asked."""
        target = Target("shop", None, DEPLOYMENT)
        web, other = Key(DEPLOYMENT, "shop", "web"), Key(DEPLOYMENT, "bank", "web")
        script = Script().then(json(listed("Deployment", "web")), json(listed("StatefulSet")))
        async with connected(script) as client:
            includes = await Cluster().chosen(client, target)
            assert (includes(web), includes(other), script.asked) == (True, False, [])
            includes = await Cluster(selector="a=b").chosen(client, target)
        assert [includes(key) for key in (web, other, Key(DEPLOYMENT, "shop", "api"))] == [True, False, False]

    async def test_of_the_split_are_added_to_ones_own(self) -> None:
        """Nobody else's label is written or removed."""
        script = Script().then(json(listed("Deployment")), json(listed("StatefulSet")))
        async with connected(script) as client:
            assert await Cluster(selector="a=b").sources(client, ("shop",)) == {}
        assert {asked.query["labelSelector"] for asked in script.asked} == {f"{SOURCES_SELECTOR},a=b"}
