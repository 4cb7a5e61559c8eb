"""The rules, PromQL as promtool reads it, and the metrics that an expression is made of."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from monitoring.prometheus import promtool
from report.shown import served

MONITORING = Path(__file__).resolve().parents[2] / "manifests/monitoring"
# Each file of rules, and the name of the object of the Prometheus operator that is made from it.
SOURCES = {"rules.yaml": "splitter", "kube-prometheus/rules.yaml": "splitter-kube-prometheus"}
# Of kube-state-metrics and of the client library: not splitter's, and used.
_OTHERS = re.compile(r"kube_deployment_\w+|process_\w+")
_WORDS = re.compile(r"(?<![\w:$\"])(?:splitter|kube_deployment|process)[\w:]*(?![\w:\"])")


def rules() -> list[dict[str, Any]]:
    """Return all rules of all files."""
    read = [yaml.safe_load((MONITORING / source).read_text(encoding="utf-8")) for source in SOURCES]
    return [rule for file in read for group in file["groups"] for rule in group["rules"]]


def recorded() -> set[str]:
    """Return the names that recording rules give."""
    return {rule["record"] for rule in rules() if "record" in rule}


def faults(expressions: Iterable[str], folder: Path) -> str:
    """Return what promtool says of expressions that do not parse; empty when all do."""
    rules = [{"record": "one", "expr": text} for text in expressions]
    file = folder / "expressions.yaml"
    # Two rules of one name with the same labels are a duplicate to promtool; each gets a label of its own.
    numbered = [{**rule, "labels": {"number": str(number)}} for number, rule in enumerate(rules)]
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": numbered}]}), encoding="utf-8")
    checked = promtool("check", "rules", file)
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr


def unknown(expression: str, recorded: Iterable[str]) -> list[str]:
    """Return the names of metrics in an expression that nobody serves or records."""
    known = set(recorded)
    for name, (kind, _) in served().items():
        known |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    quoted = re.sub(r"\"[^\"]*\"", '""', expression)
    return [name for name in _WORDS.findall(quoted) if name not in known and not _OTHERS.fullmatch(name)]
