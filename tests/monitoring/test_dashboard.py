"""The dashboard: each of its expressions parses, and asks for something that there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from monitoring.expressions import MONITORING, faults, recorded, unknown
from report.shown import served

DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
# What Grafana puts in.
VARIABLES = {"$__rate_interval": "5m", "$__range": "1d", "$namespace": ".*", "$kind": ".*", "$name": ".*"}
SHOWN_ELSEWHERE: set[str] = {"splitter_build_info"}  # the version: in the join of memory and CPU only


def panels() -> list[dict[str, Any]]:
    """Return what shows something."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    """Return all of PromQL, variables put in."""
    collected = [target["expr"] for panel in panels() for target in panel["targets"]]
    collected += [one["expr"] for one in DASHBOARD["annotations"]["list"]]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            collected.append(
                re.sub(r"label_values\((.+), (\w+)\)", r"count by (\2) (\1)", variable["definition"])
            )
    for name, value in VARIABLES.items():
        collected = [text.replace(name, value) for text in collected]
    return collected


class TestExpressions:
    def test_parse(self, tmp_path: Path) -> None:
        """Prometheus reads every one of them."""
        assert len(expressions()) > 30
        assert not [text for text in expressions() if "$" in text]
        assert faults(expressions(), tmp_path) == ""

    def test_use_what_there_is(self) -> None:
        """None asks for a metric that nobody serves or records."""
        assert [hit for text in expressions() for hit in unknown(text, recorded())] == []

    def test_group_by_labels_that_there_are(self) -> None:
        """None groups by a label that its metric does not have."""
        ours = {name: labels for name, (_, labels) in served().items()}
        for text in expressions():
            for grouped, metric in re.findall(r"by \(([\w, ]+)\) \(+(?:\w+\()*(splitter_\w+)", text):
                base = re.sub(r"_(bucket|sum|count)$", "", metric)
                labels = ours.get(metric, ours.get(base, frozenset())) | {"le"}
                assert {one.strip() for one in grouped.split(",")} <= labels, text

    def test_leave_nothing_out(self) -> None:
        """Every metric is to be seen somewhere, by itself or through a recording rule."""
        from_rules = (MONITORING / "rules.yaml").read_text(encoding="utf-8")
        text = " ".join(expressions()) + from_rules
        unseen = {name for name in served() if not re.search(rf"\b{name}(_bucket|_count)?\b", text)}
        assert unseen - SHOWN_ELSEWHERE == set()


class TestPanels:
    def test_do_not_overlap(self) -> None:
        """Each has its own place on the grid."""
        taken: set[tuple[int, int]] = set()
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            cells = {
                (column, line)
                for column in range(place["x"], place["x"] + place["w"])
                for line in range(place["y"], place["y"] + place["h"])
            }
            assert not taken & cells, panel["title"]
            assert place["x"] + place["w"] <= 24, panel["title"]
            taken |= cells

    def test_have_numbers_of_their_own(self) -> None:
        """Grafana tells panels apart by their ids."""
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
    def test_say_what_they_show(self, panel: dict[str, Any]) -> None:
        """Each has a title, a sentence, a unit and the data source that is chosen above."""
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
