"""The first view: sums, the nodes that go with who stands there, and what was decided lately."""

from dataclasses import replace
from datetime import timedelta

import pytest

from plugin.dashboard.paper_view import NOON, PaperView, key_of
from splitter.core.names import STATEFUL_SET
from splitter.core.nodes.facts import Health
from splitter.plugin.dashboard import fleet
from splitter.plugin.dashboard.fleet import element_id


def minutes(number: float) -> timedelta:
    """Return so many."""
    return timedelta(minutes=number)


class TestFigures:
    def test_are_sums(self) -> None:
        """Of all workloads; replicas on nodes that go are beside the ready ones."""
        view = PaperView()
        view.put("web", on_demand=1, spot=4, on_demand_ready=2, spot_ready=3, doomed=1, state="Moving")
        view.put("api", on_demand=2, spot=2, since=NOON - timedelta(hours=20))
        it = fleet.figures(view.model)
        assert (it.workloads, it.at_rest, it.desired, it.ready, it.going, it.cover) == (2, 1, 9, 9, 1, 1)
        assert it.on_spot == 5 / 9
        assert it.saved_since == NOON - timedelta(hours=20)
        assert it.saved is not None
        assert 0 < it.saved < 1

    def test_of_nothing_are_none(self) -> None:
        """No share of no replicas."""
        it = fleet.figures(PaperView().model)
        assert (it.workloads, it.on_spot, it.saved, it.saved_since) == (0, None, None, None)

    def test_of_a_workload_without_counters(self) -> None:
        """It is not known what it saved; the others count."""
        view = PaperView()
        web = view.put("web", {"usage": None})
        assert fleet.saved(view.model.statuses[web], NOON) is None
        api = view.put("api", on_demand=0, spot=1)
        assert fleet.saved(view.model.statuses[api], NOON) == pytest.approx(0.7)
        assert fleet.figures(view.model).saved == pytest.approx(0.7)


class TestNodesThatGo:
    def test_the_first_to_go_comes_first(self) -> None:
        """Those without a deadline after all that have one, by name."""
        view = PaperView()
        view.put_node("c", Health.DOOMED, deadline=NOON + minutes(2), signal="a taint")
        view.put_node("b", Health.DOOMED, spot=False, labels={"topology.kubernetes.io/zone": "eu-1"})
        view.put_node("a", Health.DOOMED)
        view.put_node("d", Health.DOOMED, deadline=NOON + minutes(1))
        view.put_node("healthy", Health.HEALTHY)
        nodes = fleet.going(view.model)
        assert [one.name for one in nodes] == ["d", "c", "a", "b"]
        assert [(one.pool, one.zone, one.signal) for one in nodes[1:]] == [
            ("spot", "", "a taint"),
            ("spot", "", ""),
            ("on-demand", "eu-1", ""),
        ]

    def test_one_that_is_gone_matters_while_somebody_stands_there(self) -> None:
        """Else the page would show every machine that ever went."""
        view = PaperView()
        web = view.put("web")
        view.put_node("empty", Health.GONE)
        view.put_node("left", Health.GONE)
        view.on_nodes = {"left": {web: 2}}
        (only,) = fleet.going(view.model)
        assert (only.name, only.gone, only.replicas) == ("left", True, 2)

    def test_what_splits_report_counts_where_nodes_may_not_be_seen(self) -> None:
        """Of several workloads together; a node that is seen is shown as it is seen."""
        view = PaperView()
        lost = {"name": "lost", "state": "Lost", "replicas": 2, "signal": "gone"}
        seen = {"name": "seen", "state": "Doomed", "replicas": 9, "signal": "older"}
        view.put("web", {"nodes": [lost, seen]})
        view.put("api", {"nodes": [lost | {"replicas": 1}]})
        view.put_node("seen", Health.DOOMED, signal="a taint")
        nodes = {one.name: one for one in fleet.going(view.model)}
        assert nodes["lost"].on_it == {key_of("web"): 2, key_of("api"): 1}
        assert (nodes["lost"].gone, nodes["lost"].pool, nodes["lost"].replicas) == (True, "", 3)
        assert (nodes["seen"].signal, nodes["seen"].replicas) == ("a taint", 0)

    def test_the_largest_are_named(self) -> None:
        """Eight workloads; the others are a number."""
        view = PaperView()
        view.put_node("n", Health.DOOMED)
        view.on_nodes = {"n": {key_of(f"w{number}"): number for number in range(1, 12)}}
        (only,) = fleet.going(view.model)
        assert [count for _, count in only.workloads] == [11, 10, 9, 8, 7, 6, 5, 4]
        assert (only.more, only.replicas) == (3, 66)


class TestDecisions:
    def test_of_the_last_hours_newest_first(self) -> None:
        """Six; those of the same instant always in the same order."""
        view = PaperView()
        ages = [1, 2, 3, 4, 60 * 7]
        view.put("web", decisions=[(NOON - minutes(age), "Scaled", f"web {age}") for age in ages[::-1]])
        view.put("api", decisions=[(NOON - minutes(age), "Scaled", f"api {age}") for age in ages[::-1]])
        assert [one.decision.message for one in fleet.latest(view.model)] == [
            *("web 1", "api 1", "web 2", "api 2", "web 3", "api 3")
        ]
        assert len(list(fleet.recent_decisions(view.model))) == 8

    def test_of_all_make_one_line(self) -> None:
        """What was asked for of both workloads, from when each was split."""
        view = PaperView()
        view.put(
            "web",
            since=NOON - minutes(60),
            on_demand=2,
            spot=4,
            decisions=[(NOON - minutes(30), "Scaled", "scale spot 8 -> 4 (-4): x")],
        )
        view.put("api", since=NOON - minutes(40), on_demand=1, spot=1)
        asked = [(NOON - one.at, one.on_demand, one.spot) for one in fleet.asked(view.model)]
        assert asked == [(minutes(60), 2, 8), (minutes(40), 3, 9), (minutes(30), 3, 5)]

    def test_before_the_hours_that_are_shown_are_its_beginning(self) -> None:
        """Of what was long ago the last holds."""
        view = PaperView()
        view.put(
            "web",
            since=NOON - minutes(60 * 20),
            on_demand=2,
            spot=4,
            decisions=[(NOON - minutes(60 * 9), "Scaled", "scale spot 8 -> 4 (-4): x")],
        )
        (only,) = fleet.asked(view.model)
        assert (NOON - only.at, only.on_demand, only.spot) == (minutes(60 * 6), 2, 4)


def test_ids_are_letters_and_digits() -> None:
    """Whatever a workload is called; of another kind or namespace it is another one."""
    keys = [key_of("a.b"), key_of("a-b"), key_of("a.b", "bank"), replace(key_of("a.b"), kind=STATEFUL_SET)]
    ids = [element_id(key) for key in keys]
    assert len(set(ids)) == 4
    assert all(one.isalnum() for one in ids)
