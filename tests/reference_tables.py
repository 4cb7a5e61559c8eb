"""The tables of the reference pages, and the schema of `status.policy`: made of the code's own tables."""

import re
from typing import Final

from splitter import exits
from splitter.core.labels_annotations.policy import ANNOTATIONS, Policy
from splitter.core.labels_annotations.words import Annotation, reported

_DEFAULTS: Final = Policy()


def annotations_table() -> str:
    """Return the table in Markdown."""
    lines = ["| annotation | value | default | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{row.key}` | {row.form.must_be} | {default_of(row)} | {row.means} |" for row in ANNOTATIONS
    ]
    return "\n".join(lines)


def default_of(row: Annotation) -> str:
    """Return the default as one would write it; `none` where nothing can be written that means the same."""
    value = reported(getattr(_DEFAULTS, row.field))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    own = f"`{text}`" if value is not None and row.form.read(text) is not None else ""
    return "; ".join(filter(None, (own, row.for_statefulsets))) or "none"


def policy_schema() -> dict[str, dict[str, object]]:
    """Return the schema of `status.policy`, by field."""
    return {
        row.reported_as: {"description": _plain(row.means), **row.form.schema}
        for row in ANNOTATIONS
        if row.reported_as
    }


def _plain(markdown: str) -> str:
    """Return a meaning as a sentence without links and marks, as `kubectl explain` shows it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "")
    # What begins with a value is left as that is written.
    return f"{text if markdown.startswith('`') else text[0].upper() + text[1:]}."


def exits_table() -> str:
    """Return the table of exit codes in Markdown."""
    rows = [f"| {int(code)} | {meaning} |" for code, meaning in exits.MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])
