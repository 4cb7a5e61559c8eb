"""The picture of modules in docs/architecture.md is made of the import contracts, so it omits none."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from written import in_step

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
_TESTS = "tests/test_architecture.py"


def layers(container: str) -> list[list[str]]:
    """Return the modules of each layer of a container's exhaustive contract, those that import most first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [contract] = [
        one
        for one in contracts["contracts"]
        if one["type"] == "layers" and one["containers"] == [container] and one.get("exhaustive")
    ]
    return [re.split(r"\s*[|:]\s*", layer.strip("() ")) for layer in contract["layers"]]


def summary(container: str, module: str) -> str:
    """Return the first sentence of a module's docstring."""
    path = ROOT / container.replace(".", "/") / module.strip("()")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


def table(container: str) -> str:
    """Return a row for each module, with its layer: it may import from higher numbers only."""
    rows = [
        f"| {number} | `{module.strip('()')}` | {summary(container, module)} |"
        for number, modules in enumerate(layers(container), start=1)
        for module in modules
    ]
    return "\n".join(["| layer | module | what it is for |", "|---|---|---|", *rows])


def test_the_page_shows_every_module() -> None:
    """All modules of splitter, of the lab, of the core and of the plugin, in their layers."""
    tables = [table("splitter"), table("lab"), table("splitter.core"), table("splitter.plugin")]
    in_step(PAGE, _TESTS, _TESTS, tables)


@pytest.mark.parametrize(("container", "most"), [("splitter.core", 6)])
def test_there_are_few_layers(container: str, most: int) -> None:
    """Who opens the core has six steps to learn."""
    assert len(layers(container)) <= most


@pytest.mark.parametrize("container", ["splitter", "lab", "splitter.core", "splitter.plugin"])
def test_no_module_is_left_out(container: str) -> None:
    """What lies in the folder stands in the contract, and nothing else does."""
    folder = ROOT / container.replace(".", "/")
    there = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    named = {module.strip("()") for modules in layers(container) for module in modules}
    assert there - {"__init__"} == named
