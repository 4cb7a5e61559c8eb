"""The layers in docs/architecture.md are those of the import contracts: no module is left out."""

import ast
import re
import tomllib
from pathlib import Path

from written import in_step

ROOT = Path(__file__).resolve().parent.parent
_TESTS = "tests/test_architecture.py"


def _layers(package: str) -> list[list[str]]:
    """Return the modules of each layer, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(one for one in contracts["contracts"] if one.get("containers") == [package])
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def _purpose(package: str, module: str) -> str:
    """Return the first sentence of a module's docstring."""
    path = ROOT / package.replace(".", "/") / module
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


def _table(package: str) -> str:
    rows = [
        f"| {number} | `{module}` | {_purpose(package, module)} |"
        for number, layer in enumerate(_layers(package), start=1)
        for module in layer
    ]
    return "\n".join(["| layer | module | what it is for |", "|---|---|---|", *rows])


def test_layers_are_those_of_the_contracts() -> None:
    """Each module stands in its layer, with the first sentence of its docstring."""
    tables = [_table("splitter"), _table("splitter.core")]
    in_step(ROOT / "docs" / "architecture.md", _TESTS, _TESTS, tables)
