"""A real Prometheus on loopback, which scrapes one controller and works by the rules that travel with it.

Minutes become seconds, as in the controller's own settings: the `for` of each alert is a sixtieth of what it
is. The expressions are untouched.
"""

import json
import re
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

import yaml

from lab.sandbox.ports import LOOPBACK, HeldPorts
from lab.sandbox.processes import Child, Nursery
from lab.sandbox.waiting import wait_until
from monitoring.expressions import MONITORING
from monitoring.prometheus import tool

FASTER = 60
_UNITS_S = {"s": 1, "m": 60, "h": 3600}
_START_DEADLINE_S = 90.0
_ANSWER_S = 10.0


class Prometheus:
    """Runs within a `with`; it knows its one target and the time since it began."""

    def __init__(self, home: Path, target_port: int) -> None:
        self._home = home
        self._target_port = target_port
        self._nursery = Nursery()
        self._child: Child | None = None
        self._ports = HeldPorts()
        self._port = 0

    def __enter__(self) -> Self:
        """Start, and return when it has scraped its target."""
        self._port = self._ports.take()
        config = self._home / "prometheus.yaml"
        config.write_text(yaml.safe_dump(self._config()), encoding="utf-8")
        self._child = self._nursery.start(
            "prometheus",
            [
                str(tool("prometheus")),
                f"--config.file={config}",
                f"--web.listen-address={LOOPBACK}:{self._port}",
                f"--storage.tsdb.path={self._home / 'series'}",
                "--storage.tsdb.retention.time=1h",
            ],
            log=self._home / "prometheus.log",
            environment={},
            directory=self._home,
        )
        try:
            wait_until(
                lambda: self._is_scraping() or None,
                what="Prometheus to scrape splitter",
                deadline_s=_START_DEADLINE_S,
                check=self._child.check,
            )
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end()

    def _end(self) -> None:
        self._nursery.end()
        self._ports.release()

    def value(self, expression: str) -> float | None:
        """Return the one value of an expression now, None when it has none."""
        values = self.values(expression)
        assert len(values) <= 1, values
        return next(iter(values.values()), None)

    def values(self, expression: str) -> dict[str, float]:
        """Return the values of an expression now, by their labels as Prometheus writes them."""
        result = self._ask("query", query=expression)["result"]
        return {
            ",".join(f"{name}={text}" for name, text in sorted(one["metric"].items())): float(one["value"][1])
            for one in result
        }

    def alerts(self) -> dict[str, str]:
        """Return the alerts that are pending or firing, as name/workload -> state."""
        return {
            "/".join([one["labels"]["alertname"], *filter(None, [one["labels"].get("name")])]): one["state"]
            for one in self._ask("alerts")["alerts"]
        }

    def _is_scraping(self) -> bool:
        try:
            return self.value('up{job="splitter"} == 1') is not None
        except OSError:
            return False  # it does not listen yet, or is still reading its storage

    def _ask(self, what: str, **query: str) -> dict[str, Any]:
        url = f"http://{LOOPBACK}:{self._port}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
            body = json.loads(answer.read())
        assert body["status"] == "success", body
        result: dict[str, Any] = body["data"]
        return result

    def _config(self) -> dict[str, Any]:
        files = []
        for number, source in enumerate(("rules.yaml", "kube-prometheus/rules.yaml")):
            file = self._home / f"rules-{number}.yaml"
            file.write_text(yaml.safe_dump(_faster(MONITORING / source)), encoding="utf-8")
            files.append(file.name)
        scrape = {
            "job_name": "splitter",
            "honor_labels": True,
            "static_configs": [{"targets": [f"{LOOPBACK}:{self._target_port}"]}],
        }
        every = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
        return {"global": every, "rule_files": files, "scrape_configs": [scrape]}


def _faster(source: Path) -> dict[str, Any]:
    rules: dict[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            if (written := re.fullmatch(r"(\d+)([smh])", rule.get("for", ""))) is not None:
                rule["for"] = f"{int(written[1]) * _UNITS_S[written[2]] * 1000 // FASTER}ms"
    return rules
