"""The values of the chart as its README tells them: values.yaml, read with its comments."""

import json
import re
from dataclasses import dataclass

import yaml

from splitter.bundled import bundled_path

CHART = bundled_path("manifests/helm/splitter")
BEGIN, END = "<!-- values -->", "<!-- end of values -->"
_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z]+):(?P<value>.*)")
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its path with dots, its default, and what its comment says."""

    path: str
    default: object
    reported: str


def values(text: str | None = None) -> list[Value]:
    """Return each value of values.yaml in its order; a comment stands above the key or behind the value.

    Raises ValueError where a line is neither a comment nor a key.
    """
    written = (CHART / "values.yaml").read_text(encoding="utf-8") if text is None else text
    collected: list[Value] = []
    above: list[str] = []
    parents: list[str] = []
    for line in written.splitlines():
        if line.strip().startswith("#"):
            above.append(line.strip().removeprefix("#").strip())
            continue
        if not line.strip():
            above.clear()
            continue
        key = _KEY.fullmatch(line)
        if key is None:
            raise ValueError(f"values.yaml: {line!r} is no key and no comment")
        del parents[len(key["indent"]) // _INDENT :]
        parents.append(key["key"])
        value, _, behind = key["value"].partition(" # ")
        if value.strip():
            reported = behind.strip() or " ".join(above)
            collected.append(Value(".".join(parents), yaml.safe_load(value), reported))
        above.clear()
    return collected


def table() -> str:
    """Return the table of the README, between its marks."""
    rows = [
        f"| `{one.path}` | `{json.dumps(one.default)}` | {one.reported.replace('|', chr(92) + '|')} |"
        for one in values()
    ]
    return "\n".join([BEGIN, "| value | default | what it is |", "|---|---|---|", *rows, END])


def with_table(readme: str) -> str:
    """Return the README with the table of today. Raises ValueError when the marks are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: {BEGIN} and {END} are missing")
    return f"{before}{table()}{after}"
