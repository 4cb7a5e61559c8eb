"""`splitter uninstall`: which labels go, how long it waits, and what it says at the end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube.server import Answer, Script, connected, json, refusal
from splitter.core.labels_annotations import ANNOTATION_KEEP, CRD_NAME, LABEL_SPLIT, SOURCES_SELECTOR
from splitter.exits import Exit
from splitter.giving_back import give_back
from splitter.kube.client import Client
from splitter.settings import Settings

NOBODY: dict[str, Any] = {"items": []}
WEB = {"items": [{"metadata": {"namespace": "shop", "name": "web", "uid": "1"}}]}
SPLIT = {"items": [{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"source": {"name": "web"}}}]}
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD_NAME}"


def give(
    script: Script, timeout_s: float = 60, namespace: str | None = None, selector: str | None = None
) -> Exit:
    """Give back in a cluster that answers by the script."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Client, Settings]]:
        async with connected(script) as client:
            yield client, Settings()

    return give_back(connect, namespace, selector, timeout_s)


class TestGiveBack:
    def test_removes_each_label_and_lets_the_crd_go(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Once no Split is left: it looks again until then."""
        script = Script().then(*map(json, (WEB, NOBODY, {}, NOBODY, {})))
        assert give(script) is Exit.DONE
        assert capsys.readouterr().out.splitlines() == [
            "label removed from deployment shop/web",
            "everything is given back; the controller, manifests/rbac.yaml and the CRD may go now",
        ]
        assert [asked.body for asked in script.asked if asked.method == "PATCH"] == [
            {"metadata": {"uid": "1", "labels": {LABEL_SPLIT: None}}},
            {"metadata": {"annotations": {ANNOTATION_KEEP: None}}},
        ]

    @pytest.mark.parametrize(
        ("namespace", "selector", "says"),
        [("shop", None, "everything is given back;"), (None, "a=b", "every workload with a=b is given back")],
    )
    def test_keeps_the_crd_where_others_may_be_split(
        self, namespace: str | None, selector: str | None, says: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """In another namespace, or with other labels."""
        script = Script().then(json(NOBODY))
        assert give(script, namespace=namespace, selector=selector) is Exit.DONE
        assert capsys.readouterr().out.startswith(says)
        assert CRD not in {asked.path for asked in script.asked}

    def test_removes_only_what_has_the_labels(self) -> None:
        """And is split."""
        script = Script().then(json(NOBODY))
        give(script, selector="a=b")
        selectors = {query for asked in script.asked if (query := asked.query.get("labelSelector"))}
        assert selectors == {"a=b", f"{SOURCES_SELECTOR},a=b"}

    def test_says_who_is_left_when_the_time_is_over(self, capsys: pytest.CaptureFixture[str]) -> None:
        """With the way on, and a code of its own."""
        lease = {"metadata": {"namespace": "splitter-system", "name": "splitter"}, "spec": {}}
        script = Script().then(*map(json, (NOBODY, NOBODY, SPLIT, lease)))
        assert give(script, timeout_s=-1) is Exit.NOT_ALL_BACK
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "not given back within -1 s: shop/web. Is the controller running" in printed.err

    @pytest.mark.parametrize(
        ("answer", "complaint"),
        [(json({}), ""), (refusal(403, "Forbidden", "no"), f"you may not change the CRD {CRD_NAME};")],
    )
    def test_names_who_lets_the_crd_go(
        self, answer: Answer, complaint: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """All is given back all the same."""
        script = Script().then(*map(json, (NOBODY, NOBODY, NOBODY)), answer)
        assert give(script) is Exit.DONE
        assert capsys.readouterr().err.startswith(complaint)
        assert script.asked[-1].path == CRD
