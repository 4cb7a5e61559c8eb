"""What the page shows is kept up to date change by change, and who comes back is told what was missed."""

from datetime import timedelta

import pytest

from plugin.dashboard.paper_view import NOON, PaperView, key_of
from splitter.plugin.dashboard.model import Model


class TestChanges:
    def test_are_numbered(self) -> None:
        """Who has seen up to one is told of those since, by workload; of a node it is a number alone."""
        view = PaperView()
        web = view.put("web")
        seen = view.model.last_change
        api = view.put("api")
        view.model.changed(None)
        view.put("api", ready=3)
        assert view.model.last_change == seen + 3
        assert view.model.since(seen) == {api}
        assert view.model.since(0) == {web, api}
        assert view.model.since(view.model.last_change) == set()

    def test_that_are_gone_are_told_to_nobody(self) -> None:
        """A row that is deleted is no row that has changed; the membership says so."""
        view = PaperView()
        web = view.put("web")
        before = view.model.membership
        view.put("web", ready=3)
        assert view.model.membership == before, "it neither came nor went"
        view.delete(web)
        assert (view.model.since(0), view.model.keys()) == (set(), [])
        assert view.model.membership == before + 1
        view.model.changed(web)
        assert view.model.membership == before + 1, "what is not there does not go again"
        assert web not in view.model.series

    async def test_wake_who_listens(self) -> None:
        """Each of them, until it has enough."""
        view = PaperView()
        with view.model.listened() as one, view.model.listened() as other:
            assert view.model.listeners == 2
            view.model.changed(None)
            assert one.is_set()
            assert other.is_set()
        assert view.model.listeners == 0


class TestCounts:
    def test_of_all_are_added_up(self) -> None:
        """What comes is added, what changes counts once, what goes is taken away."""
        view = PaperView()
        view.put("web", on_demand=1, spot=4, spot_ready=3, doomed=1)
        view.put("api", on_demand=2, spot=2)
        assert list(view.model.fleet)[-1].counts == (9, 3, 5, 1)
        view.put("web", on_demand=1, spot=4)
        assert list(view.model.fleet)[-1].counts == (9, 3, 6, 0)
        view.delete(key_of("api"))
        assert list(view.model.fleet)[-1].counts == (5, 1, 4, 0)
        view.delete(key_of("web"))
        assert list(view.model.fleet)[-1].counts == (0, 0, 0, 0)

    def test_of_a_workload_are_read_once_a_version(self) -> None:
        """A change of a pod or a node of it is no other status."""
        view = PaperView()
        web = view.put("web")
        status = view.model.statuses[web]
        view.now += timedelta(seconds=5)
        view.model.changed(web)
        assert view.model.statuses[web] is status
        assert [one.at for one in view.model.series[web]] == [NOON]

    def test_before_the_first_report_it_says_so(self) -> None:
        """And nothing is wanted."""
        view = PaperView()
        web = view.put("web", {"state": ""})
        assert view.model.statuses[web].state == "Unreported"


class TestSaved:
    def test_is_added_up_now_and_then(self) -> None:
        """Ten seconds; a clock that is set back does not keep it for ever."""
        view = PaperView()
        view.put("web", on_demand=0, spot=10)
        first = view.model.saved
        assert first.ratio(None) == pytest.approx(0.7)
        view.put("api", on_demand=10, spot=0)
        view.now += timedelta(seconds=9)
        assert view.model.saved is first
        view.now += timedelta(seconds=1)
        assert view.model.saved.ratio(None) == pytest.approx(0.35, rel=0.01)
        kept = view.model.saved
        view.now -= timedelta(hours=1)
        assert view.model.saved is not kept


def test_keys_are_in_order() -> None:
    """By namespace, then by name."""
    view = PaperView()
    for name, namespace in (("b", "shop"), ("a", "shop"), ("z", "bank")):
        view.put(name, namespace=namespace)
    assert view.model.keys() == [key_of("z", "bank"), key_of("a"), key_of("b")]


def test_nothing_is_looked_at_before_it_is_said() -> None:
    """A mistake of ours, and no page without workloads."""
    with pytest.raises(RuntimeError, match="nothing is looked at yet"):
        _ = Model().view
