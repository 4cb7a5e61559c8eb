"""Lua 5.1 as others embed it: they open a few libraries, and scripts see nothing else."""

from collections.abc import Iterable
from typing import Any, cast

from lupa.lua51 import LuaRuntime, lua_type  # type: ignore[import-untyped]

_BASE = {
    "_G",
    "assert",
    "error",
    "ipairs",
    "next",
    "pairs",
    "select",
    "tonumber",
    "tostring",
    "type",
    "unpack",
}
_BASE |= {"pcall", "xpcall"}
_RAW = {"rawget", "rawset", "rawequal", "setmetatable", "getmetatable"}


class Scripts:
    """One runtime with the base functions and these libraries (`raw`: and those that go round metatables)."""

    def __init__(self, libraries: Iterable[str], *, raw: bool = False) -> None:
        self._lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
        kept = {*_BASE, *libraries, *(_RAW if raw else ())}
        names = self._lua.globals()
        for name in [str(name) for name in names]:
            if name not in kept:
                names[name] = None

    def execute(self, script: str, **given: object) -> Any:  # noqa: ANN401 (whatever a script returns)
        """Run a script that finds these as globals; return what it returns."""
        for name, value in given.items():
            self._lua.globals()[name] = self._table(value)
        return plain(self._lua.execute(script))

    def call(self, function: str, *given: object) -> Any:  # noqa: ANN401
        """Call a function that a script has defined."""
        return plain(self._lua.globals()[function](*map(self._table, given)), given)

    def _table(self, value: object) -> object:
        """Return a value of Python as one of Lua (lupa's own way of it can make a table a part of itself)."""
        if isinstance(value, dict):
            return self._lua.table_from({key: self._table(one) for key, one in value.items()})
        if isinstance(value, list):
            return self._lua.table_from([self._table(one) for one in value])
        return value


def plain(value: object, like: Iterable[object] = ()) -> Any:  # noqa: ANN401
    """Return a value of Lua as one of Python; an empty table is a list if it was one in what was given."""
    if lua_type(value) != "table":
        return value
    table = cast("Any", value)
    keys = list(table.keys())
    if not keys:
        return next((type(one)() for one in like if isinstance(one, dict | list)), {})
    if keys == list(range(1, len(keys) + 1)):
        return [plain(table[key], _at(like, key - 1)) for key in keys]
    return {str(key): plain(table[key], _at(like, key)) for key in keys}


def _at(like: Iterable[object], key: object) -> list[object]:
    mappings = [one[key] for one in like if isinstance(one, dict) and key in one]
    return [
        *mappings,
        *(one[key] for one in like if isinstance(one, list) and isinstance(key, int) and key < len(one)),
    ]
