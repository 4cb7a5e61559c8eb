"""The tests that pages name: the rules of the specification, and the rows of the threat model."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`((?:Test\w+\.)?test_\w+|[\w-]+\.golden)`")


def named_tests() -> Iterator[str]:
    """Yield each test as the pages name it: `Class.test_name`, or `test_name`."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for one in inside:
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{owner}{one.name}"
