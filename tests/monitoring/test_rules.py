"""Alerts: they fire when they should, say what to do, and are made of metrics that there are."""

import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitoring.expressions import MONITORING, SOURCES, faults, recorded, rules, unknown
from monitoring.prometheus import promtool

ROOT = Path(__file__).resolve().parents[2]
RUNBOOKS = ROOT / "docs/runbooks"
CASES = Path(__file__).with_name("rules.test.yaml")
SEVERITIES = {"info", "warning", "critical"}
SECTIONS = ["What it means", "How to look", "What to do", "When to leave it alone"]


def alerts() -> dict[str, dict[str, Any]]:
    """Return the alerts by their names."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


class TestRules:
    @pytest.mark.parametrize("source", SOURCES)
    def test_are_well_formed(self, source: str) -> None:
        """Promtool finds no fault with them."""
        checked = promtool("check", "rules", MONITORING / source)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def test_fire_as_they_should(self) -> None:
        """Promtool plays hours of series and finds each alert firing when it should, and only then."""
        tested = promtool("test", "rules", CASES)
        assert tested.returncode == 0, tested.stdout + tested.stderr

    def test_are_all_tried(self) -> None:
        """Each alert is tried both ways: a case in which it fires, and the quiet day on which it does not."""
        cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
        fires: set[str] = set()
        quiet: set[str] = set()
        for case in cases:
            for one in case.get("alert_rule_test", ()):
                (fires if one["exp_alerts"] else quiet).add(one["alertname"])
            for one in case.get("promql_expr_test", ()):
                said = " ".join([one["expr"], *(sample["labels"] for sample in one["exp_samples"])])
                if one["exp_samples"]:
                    fires |= set(re.findall(r'alertname="(\w+)"', said))
        assert fires == set(alerts())
        assert quiet == set(alerts())

    def test_use_what_there_is(self) -> None:
        """No rule is made of a metric that nobody serves."""
        wrong = {rule.get("alert", rule.get("record")): unknown(rule["expr"], recorded()) for rule in rules()}
        assert {name: names for name, names in wrong.items() if names} == {}

    def test_notice_what_there_is_not(self, tmp_path: Path) -> None:
        """The test above would see a name that is wrong, and promtool a bracket that is missing."""
        assert unknown("rate(splitter_decision_total[5m]) > splitter:nothing", recorded()) == [
            "splitter_decision_total",
            "splitter:nothing",
        ]
        assert unknown('sum(splitter_replicas{pool="splitter_x"})', recorded()) == []
        assert "unclosed" in faults(["sum(splitter_replicas"], tmp_path)

    @pytest.mark.parametrize("name", alerts())
    def test_say_what_and_how_bad(self, name: str) -> None:
        """Each alert has a severity, a summary of one line and a description."""
        alert = alerts()[name]
        assert alert["labels"]["severity"] in SEVERITIES
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
        assert "\n" not in alert["annotations"]["summary"]
        assert len(alert["annotations"]["summary"]) <= 160


class TestOperator:
    """The objects of the Prometheus operator hold the same rules: they are made from the plain files."""

    @pytest.mark.parametrize(("source", "name"), SOURCES.items())
    def test_are_in_step(self, source: str, name: str) -> None:
        """`SPLITTER_REGENERATE=1 pytest tests/monitoring` makes them anew."""
        plain = (MONITORING / source).read_text(encoding="utf-8")
        body = plain[plain.index("groups:\n") :]
        made = (
            f"# Made from {Path(source).name} beside it; change it there.\n"
            "apiVersion: monitoring.coreos.com/v1\n"
            "kind: PrometheusRule\n"
            "metadata:\n"
            f"  name: {name}\n"
            "  namespace: splitter-system\n"
            "  labels:\n"
            "    app.kubernetes.io/name: splitter\n"
            "spec:\n"
        ) + textwrap.indent(body, "  ")
        file = (MONITORING / source).with_name("prometheusrule.yaml")
        if os.environ.get("SPLITTER_REGENERATE"):
            file.write_text(made, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == made
        assert yaml.safe_load(made)["spec"] == yaml.safe_load(plain)

    def test_are_all_applied(self) -> None:
        """What the kustomization names is there, and nothing beside it is left out but the plain rules."""
        written = yaml.safe_load((MONITORING / "kustomization.yaml").read_text(encoding="utf-8"))
        named = {*written["resources"], *written["configMapGenerator"][0]["files"], "kustomization.yaml"}
        assert {path.name for path in MONITORING.iterdir() if path.is_file()} == named | {"rules.yaml"}

    def test_scrape_the_port_that_is_served(self) -> None:
        """The PodMonitor names the port and the labels of splitter's Deployment, and keeps our own labels."""
        monitor = yaml.safe_load((MONITORING / "podmonitor.yaml").read_text(encoding="utf-8"))
        documents = yaml.safe_load_all((ROOT / "manifests/deployment.yaml").read_text(encoding="utf-8"))
        [deployment] = [one for one in documents if one["kind"] == "Deployment"]
        template = deployment["spec"]["template"]
        ports = [port["name"] for one in template["spec"]["containers"] for port in one["ports"]]
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in ports
        assert endpoint["honorLabels"] is True
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert wanted <= template["metadata"]["labels"].items()


class TestRunbooks:
    """Whoever is woken by an alert finds a page, and no page is about an alert that nobody has."""

    def test_each_alert_has_one(self) -> None:
        """The address in the alert is that of its page."""
        reported = {name: alert["annotations"]["runbook_url"] for name, alert in alerts().items()}
        assert reported == {name: f"docs/runbooks/{name}.md" for name in alerts()}
        assert all((ROOT / path).is_file() for path in reported.values())

    def test_each_is_about_an_alert(self) -> None:
        """No page has outlived its alert."""
        assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"index", "README"} == set(alerts())

    @pytest.mark.parametrize("name", alerts())
    def test_answers_four_questions(self, name: str) -> None:
        """What it means, how to look, what to do, when to leave it alone; looking is a command."""
        text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n")
        assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == SECTIONS
        look = text.split("## How to look")[1].split("## What to do")[0]
        assert re.search(r"^(kubectl|splitter) ", look, flags=re.MULTILINE)

    def test_are_all_in_the_overview(self) -> None:
        """The how-to has a row for each, with its severity."""
        text = (ROOT / "docs/how-to/monitor.md").read_text(encoding="utf-8")
        rows = dict(
            re.findall(r"^\| \[(\w+)\]\(\.\./runbooks/\1\.md\) \| (\w+) \|", text, flags=re.MULTILINE)
        )
        ours = {name: alert["labels"]["severity"] for name, alert in alerts().items() if "Kube" not in name}
        assert rows == ours

    def test_name_what_there_is(self) -> None:
        """A metric that a page tells to look at exists."""
        for path in RUNBOOKS.glob("*.md"):
            text = path.read_text(encoding="utf-8")
            result = re.findall(r"splitter(?::|_(?!\())\w[\w:]*", text)
            assert unknown("\n".join(result), recorded() | {"splitter_"}) == [], path.name
