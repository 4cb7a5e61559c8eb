"""Parts of pages and manifests that code writes: as they would be written now, or the test fails."""

import os
import re
from pathlib import Path

_BEGIN = "written by {}; anew: SPLITTER_REGENERATE=1 pytest {}"
_END = "end of what is written"


def in_step(path: Path, writer: str, tests: str, tables: list[str]) -> None:
    """Check the marked tables of a page, one after the other; write them where that is asked for.

    `writer` is the module that makes them, `tests` what to run to have them written anew.
    """
    text = path.read_text(encoding="utf-8")
    comment = "# {}" if path.suffix == ".yaml" else "<!-- {} -->"
    begin, end = comment.format(_BEGIN.format(writer, tests)), comment.format(_END)
    parts = re.split(f"({re.escape(begin)}\n.*?\n *{re.escape(end)})", text, flags=re.DOTALL)
    assert len(parts) == 2 * len(tables) + 1, f"{path.name} must have {len(tables)} tables after {begin}"
    margins = [" " * (len(table) - len(table.lstrip(" "))) for table in tables]
    parts[1::2] = [f"{begin}\n{table}\n{margin}{end}" for table, margin in zip(tables, margins, strict=True)]
    if os.environ.get("SPLITTER_REGENERATE"):
        path.write_text("".join(parts), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "".join(parts)
