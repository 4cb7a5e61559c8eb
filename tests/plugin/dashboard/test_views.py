"""What is rendered: rows once a change, a picture for all browsers, and every word of others escaped."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from markupsafe import Markup

from plugin.dashboard.paper_view import NOON, PaperView, key_of
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.facts import Health
from splitter.kube.records import SplitRecord
from splitter.plugin.dashboard.views import Tellers, Views, path_of, sent

SCRIPT = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


def explained(split: SplitRecord) -> list[str]:
    """Return what explain would say."""
    return [f"{split.name}: {SCRIPT}", *(f"line {number}" for number in range(500))]


async def planned(key: Key) -> list[str]:
    """Return what plan would say."""
    return [f"{key}: {SCRIPT}", *(f"line {number}" for number in range(500))]


def views_of(view: PaperView) -> Views:
    """Return what renders a cluster."""
    return Views(view.model, Tellers(explained, planned), f"sandbox {SCRIPT}")


class TestRows:
    def test_are_rendered_once_a_change(self) -> None:
        """And every five minutes, for what they save."""
        view = PaperView()
        web, api = view.put("web"), view.put("api")
        views = views_of(view)
        rows = views.row(web), views.row(api)
        assert (views.row(web), views.row(api)) == rows
        assert views.row(web) is rows[0]
        view.put("web", state="Held", reason="SpotShort")
        assert "Held" in views.row(web)
        assert views.row(api) is rows[1]
        view.now += timedelta(minutes=5)
        assert views.row(api) is not rows[1]

    def test_of_what_is_gone_are_forgotten(self) -> None:
        """One that comes again is rendered anew; else the page would grow with all that ever were."""
        view = PaperView()
        web = view.put("web")
        views = views_of(view)
        assert path_of(web) in views.fleet_page()
        view.delete(web)
        assert path_of(web) not in views.fleet_page()
        assert not views._rows  # noqa: SLF001 - what is kept is shown by nothing else

    @pytest.mark.parametrize(
        ("state", "sign", "kind"),
        [("Steady", "●", "good"), ("Held", "!", "warn"), ("Refused", "×", "bad"), ("Odd", "·", "busy")],  # noqa: RUF001 (the sign that is meant)
    )
    def test_show_the_state_by_more_than_a_colour(self, state: str, sign: str, kind: str) -> None:
        """One that nobody knows, of a later version, too."""
        view = PaperView()
        row = views_of(view).row(view.put("web", state=state))
        assert f'<span class="state {kind}"><span class="sign" aria-hidden="true">{sign}</span>{state}' in row

    def test_show_no_more_than_the_whole(self) -> None:
        """A bar that ends where all replicas are; none wanted is no division by zero."""
        view = PaperView()
        views = views_of(view)
        full = views.row(view.put("web", on_demand=5, spot=5))
        assert 'class="on-demand" width="48.0"' in full
        assert 'class="spot" x="48.0" width="48.0"' in full
        more = views.row(view.put("web", on_demand=5, spot=5, on_demand_ready=15))
        assert 'class="on-demand" width="72.0"' in more
        assert 'class="on-demand" width="0.0"' in views.row(view.put("web", on_demand=0, spot=0))

    def test_name_another_kind(self) -> None:
        """Two may have the same name."""
        view = PaperView()
        web = view.put("web")
        key = replace(web, kind=STATEFUL_SET)
        view.model.statuses[key] = view.model.statuses[web]
        assert "statefulset/</span>web" in views_of(view).row(key)
        assert path_of(key) == "workload/shop/statefulset/web"


class TestPictures:
    def test_are_shared_for_a_while(self) -> None:
        """Two seconds, and longer with more workloads; a clock that is set back ends that as well."""
        view = PaperView()
        view.put("web")
        views = views_of(view)
        first = views.fleet_parts()["timeline"]
        view.now += timedelta(seconds=1)
        view.put("api")
        assert views.fleet_parts()["timeline"] is first
        view.now += timedelta(seconds=2)
        second = views.fleet_parts()["timeline"]
        assert second is not first
        view.now -= timedelta(minutes=1)
        assert views.fleet_parts()["timeline"] is not second

    def test_are_left_out_where_nobody_wants_them(self) -> None:
        """None is drawn for them."""
        views = views_of(PaperView())
        assert set(views.fleet_parts(pictures=False)) == {"notices", "figures", "going"}


class TestParts:
    def test_say_what_may_not_be_seen(self) -> None:
        """Instead of that there is nothing."""
        view = PaperView(missing=("nodes may not be listed",), unseen=frozenset({"nodes"}))
        parts = views_of(view).fleet_parts()
        assert "nodes may not be listed" in parts["notices"]
        assert "these credentials may not list nodes" in parts["going"]
        assert "No node with replicas is announced to go" in views_of(PaperView()).fleet_parts()["going"]

    def test_of_a_node_that_goes(self) -> None:
        """A long label may be broken behind a slash; a deadline is a time of day."""
        view = PaperView()
        web = view.put("web")
        view.put_node("spot-1", Health.DOOMED, signal="taint a/b", deadline=NOON + timedelta(seconds=90))
        view.on_nodes = {"spot-1": {web: 2}}
        going = views_of(view).fleet_parts()["going"]
        assert "taint a/<wbr>b" in going
        assert "12:01:30" in going
        assert '<a href="workload/shop/deployment/web">shop/web</a> (2)' in going

    async def test_of_words_are_bounded(self) -> None:
        """400 lines of explain, and of plan."""
        view = PaperView()
        web = view.put("web")
        views = views_of(view)
        for part in (views.workload_parts(web)["explain"], await views.plan_part(web)):
            assert "line 398" in part
            assert "line 399" not in part

    def test_of_what_is_not_there(self) -> None:
        """A workload that is not shown, or has gone this moment."""
        view = PaperView()
        views = views_of(view)
        with pytest.raises(KeyError):
            views.workload_page(key_of("web"))
        web = view.put("web")
        del view.splits[web]
        with pytest.raises(KeyError):
            views.workload_page(web)
        assert "Not here" in views.missing_page("web")


class TestWordsOfOthers:
    @pytest.mark.parametrize(
        "page",
        [
            lambda views: views.fleet_page(),
            lambda views: views.workload_page(key_of("web")),
            lambda views: views.missing_page(SCRIPT),
        ],
        ids=["fleet", "workload", "missing"],
    )
    def test_are_escaped_on_each_page(self, page: Callable[[Views], str]) -> None:
        """Sentences, signals, reasons, the name of the context, and what the address says."""
        view = PaperView(missing=(SCRIPT,))
        decisions = [(NOON, SCRIPT, f"scale spot 1 -> 2 (+1): {SCRIPT}")]
        view.put("web", state=SCRIPT, reason=SCRIPT, message=SCRIPT, decisions=decisions)
        view.put_node("spot-1", Health.DOOMED, signal=SCRIPT)
        shown = page(views_of(view))
        assert SCRIPT not in shown
        assert ESCAPED in shown

    def test_are_sent_as_text(self) -> None:
        """What was made safe once is not taken for safe once more."""
        (value,) = sent({"a": Markup("<b>")}).values()
        assert type(value) is str
