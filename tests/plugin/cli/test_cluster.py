"""Which cluster, namespace and workloads a verb is asked about: as kubectl finds them."""

import os
from pathlib import Path
from typing import Any

import pytest
import typer

from kube.server import Script, connected, json
from splitter.core.labels_annotations import SOURCES_SELECTOR
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.plugin.cli.cluster import Cluster, kubeconfig_path, labelled
from splitter.plugin.cli.target import Target


def listed(kind: str, *names: str, namespace: str = "shop") -> dict[str, Any]:
    """Return a list of workloads."""
    items = [{"metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"}} for name in names]
    return {"kind": f"{kind}List", "metadata": {}, "items": items}


class TestKubeconfig:
    def test_is_where_kubectl_looks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """KUBECONFIG, else the file in the home; none where there is none."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert kubeconfig_path() is None
        usual = tmp_path / ".kube" / "config"
        usual.parent.mkdir()
        usual.touch()
        assert kubeconfig_path() == usual
        monkeypatch.setenv("KUBECONFIG", "")
        assert kubeconfig_path() == usual

    def test_of_several_files_those_that_there_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With none there all are named: who connects says what is missing."""
        one, other, missing = (tmp_path / name for name in ("a", "b", "c"))
        one.touch()
        other.touch()
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (missing, one, other))))
        assert str(kubeconfig_path()) == f"{one}{os.pathsep}{other}"
        monkeypatch.setenv("KUBECONFIG", f"{missing}{os.pathsep}{missing}")
        assert str(kubeconfig_path()) == f"{missing}{os.pathsep}{missing}"


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
