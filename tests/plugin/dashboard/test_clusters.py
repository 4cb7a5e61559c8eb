"""Several clusters on one page: each workload in all of them, its sum, and what the hub asks for."""

import re
from collections.abc import Mapping

import aiohttp
import pytest

from plugin.dashboard.paper_view import PaperView, key_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.names import Key
from splitter.core.rebalance import Tuning
from splitter.kube.records import SplitRecord
from splitter.plugin.dashboard import (
    Clusters,
    ClustersViews,
    Member,
    Simulator,
    Tellers,
    Views,
    Wishes,
    serve_clusters,
)

SCRIPT = "<script>alert(1)</script>"
WEB, API = key_of("web"), key_of("api")


def members() -> tuple[PaperView, PaperView]:
    """Return two clusters: both have `web`, the second one `api`, too."""
    m1, m2 = PaperView(), PaperView()
    m1.put("web", on_demand=2, spot=10)
    m2.put("web", on_demand=2, spot=6, spot_ready=4, state="Held", reason="SpotShort")
    m2.put("api", on_demand=1, spot=2)
    return m1, m2


def clusters(views: tuple[PaperView, ...], asked: Mapping[Key, int] | None = None, *missing: str) -> Clusters:
    """Return them together, with a hub that asks for so many."""
    wishes = None if asked is None else Wishes("karmada", asked.get, lambda: missing, lambda: len(missing))
    named = [Member(f"m{number}", view.model) for number, view in enumerate(views, 1)]
    return Clusters(named, wishes)


def row(text: str, words: str) -> str:
    """Return the words of the row that has these."""
    rows = [re.sub(r"<[^>]+>", " ", one) for one in text.split("<tr")]
    having = [" ".join(one.split()) for one in rows if words in " ".join(one.split())]
    assert len(having) == 1
    return having[0]


class TestTogether:
    def test_adds_each_workload_up(self) -> None:
        """By namespace and name, with each cluster that has it."""
        together = clusters(members(), {WEB: 20}).together()
        assert [(str(one.key), [part.name for part in one.parts]) for one in together.workloads] == [
            ("shop/api", ["m2"]),
            ("shop/web", ["m1", "m2"]),
        ]
        api, web = together.workloads
        assert (web.desired, web.ready, web.on_demand, web.spot, web.asked, web.short) == (
            20,
            18,
            4,
            14,
            20,
            True,
        )
        assert (api.desired, api.ready, api.asked, api.short) == (3, 3, None, False)
        assert (together.desired, together.ready, together.hub) == (23, 21, "karmada")
        assert together.on_spot == 16 / 21
        assert (together.at_rest, len(together.parts), together.cover, together.seen) == (2, 3, 0, 2)

    def test_is_short_by_what_the_hub_asks_for(self) -> None:
        """Though each cluster has all that it was given."""
        m1 = PaperView()
        m1.put("web", on_demand=2, spot=10)
        [web] = clusters((m1,), {WEB: 20}).together().workloads
        assert (web.ready, web.desired, web.short) == (12, 12, True)

    def test_of_nothing(self) -> None:
        """No share of nothing."""
        together = clusters((PaperView(),)).together()
        assert (together.workloads, together.on_spot, together.hub) == ((), None, "")

    def test_of_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first ones are shown, and the rest is counted."""
        monkeypatch.setattr("splitter.plugin.dashboard.clusters._MOST_WORKLOADS", 1)
        together = clusters(members()).together()
        assert ([str(one.key) for one in together.workloads], together.more) == (["shop/api"], 1)

    def test_names_the_cluster_that_is_away(self) -> None:
        """And the hub: the others are shown."""
        m1, m2 = members()
        m1.missing = ("splits are not up to date",)
        together = clusters((m1, m2), {}, "what the hub asks for is not shown").together()
        assert together.missing == (
            "m1: splits are not up to date",
            "karmada: what the hub asks for is not shown",
        )
        assert (len(together.workloads), together.seen) == (2, 1)


class TestRendered:
    def test_has_each_cluster_and_the_sum(self) -> None:
        """In a table whose rows lead to the workload's own view."""
        text = ClustersViews(clusters(members(), {WEB: 20}), "m1, m2").page()
        assert row(text, "shop/ web").endswith("shop/ web 2 clusters 18 /20 4 14 karmada asks for 20")
        assert row(text, "shop/ api").endswith("karmada has no such workload")
        assert "m1 12 /12 2 /2 10 /10 ● Steady Balanced" in row(text, "m1 12")
        assert 'href="cluster/1/workload/shop/deployment/web"' in text

    def test_is_rendered_once_a_change(self) -> None:
        """For all browsers; of whichever cluster."""
        m1, m2 = members()
        views = ClustersViews(clusters((m1, m2)), "m1, m2")
        before = views.parts()["clusters"]
        assert views.parts()["clusters"] is before
        m2.put("web", on_demand=2, spot=6)
        assert "20<small>/20" in str(views.parts()["clusters"])

    def test_escapes_what_others_write(self) -> None:
        """Contexts, reasons and sentences are text."""
        m1 = PaperView()
        m1.put("web", reason=SCRIPT)
        m1.missing = (SCRIPT,)
        named = Clusters([Member(SCRIPT, m1.model)], Wishes(SCRIPT, {WEB: 1}.get))
        assert SCRIPT not in ClustersViews(named, SCRIPT).page()


async def _plan(key: Key) -> list[str]:
    return [str(key)]


def _explained(split: SplitRecord) -> list[str]:
    return [split.name]


class TestServed:
    async def test_each_cluster_is_below(self) -> None:
        """The page, a cluster's own views with a way back, files, and what changes as it happens."""
        m1, m2 = members()
        each = [
            (
                view.model,
                Views(view.model, Tellers(_explained, _plan), name, above=True),
                Simulator(Policy(), Tuning()),
            )
            for name, view in (("m1", m1), ("m2", m2))
        ]
        views = ClustersViews(clusters((m1, m2)), "m1, m2")
        async with serve_clusters(views, each) as page, aiohttp.ClientSession(page.address) as session:

            async def text(path: str) -> str:
                async with session.get(path) as answer:
                    assert answer.status == 200
                    return await answer.text()

            assert "2 clusters" in await text("")
            fleet = await text("cluster/1/")
            assert "api" in fleet
            assert 'href="../../">Clusters' in fleet
            assert 'href="../../../../../">Clusters' in await text("cluster/1/workload/shop/deployment/web")
            assert "Simulator" in await text("cluster/0/simulator")
            for below in ("", "cluster/0/"):
                assert "--paper" in await text(f"{below}static/page.css")
            async with session.get("cluster/2/") as answer:
                assert answer.status == 404
            async with session.get("events/clusters") as stream:
                assert b"clusters" in await stream.content.readuntil(b"\n\n")
                m1.put("web", state="Held", reason="SpotShort")
                while b"SpotShort" not in (message := await stream.content.readuntil(b"\n\n")):
                    assert message
