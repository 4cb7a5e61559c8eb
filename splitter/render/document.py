"""Parses rendered text into a manifest, as strict YAML, and replaces tokens by values.

Called by `Renderer` with the text and the values of `sandbox.run`. One document comes out, made of
what JSON knows. It must never let a value decide what a line of the text means.
"""

import re
from functools import partial
from typing import Final

import yaml

from splitter.core.desired.compare import canonical_json
from splitter.core.errors import UNREADABLE
from splitter.core.labels_annotations.words import quoted
from splitter.render.errors import Fault
from splitter.render.sandbox import TOKEN


class _Loader(yaml.CSafeLoader):
    """YAML as JSON: `on` and `2026-01-31` are texts, keys are unique, nothing refers to anything."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - PyYAML's
        """Refuse a node met twice: aliases make little text into a large manifest."""
        if node in self.constructed_objects:
            raise yaml.constructor.ConstructorError(
                None, None, "an alias (*) is not allowed", node.start_mark
            )
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 - PyYAML's
        """Refuse a key written twice, of which PyYAML silently takes the last, and one that is no text."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                problem = "a key is a list or a mapping; only a text can be one"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            if key.value in seen:
                problem = f"the key {key.value} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_TAGS: Final = (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", ("n", "~", "")),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
)
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _TAGS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def parse(text: str, template_text: str, fault: Fault) -> object:
    """Return the one document of the rendered text, tokens still in it."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        lines = text.splitlines()
        line = lines[mark.line] if mark and mark.line < len(lines) else ""
        why = ", ".join(part for part in (problem.context, problem.problem) if part)
        what = f"the output is not YAML here: {why}: {quoted(TOKEN.sub('{{ }}', line).strip())}"
        raise fault(_template_line(line, template_text), what) from problem
    except (yaml.YAMLError, *UNREADABLE) as problem:
        raise fault(None, f"the output is not YAML: {problem}") from problem
    finally:
        loader.dispose()


def _template_line(output_line: str, template_text: str) -> int | None:
    """Return the number of the template's line that looks like a line of the output, if there is one."""
    wanted = TOKEN.sub("*", output_line).strip()
    for number, line in enumerate(template_text.splitlines(), start=1):
        if wanted and re.sub(r"\{\{.*?\}\}", "*", line).strip() == wanted:
            return number
    return None


def with_values(node: object, values: list[object], path: str = "") -> object:
    """Return the document with the values in the places of their tokens."""
    match node:
        case dict():
            filled: dict[str, object] = {}
            for key, item in node.items():
                name = with_values(key, values, path)
                if not isinstance(name, str):
                    raise TypeError(
                        f"{path or 'the output'} has a key that is {json_kind(name)}; keys are texts"
                    )
                if name in filled:
                    raise ValueError(f"{path or 'the output'} has the key {quoted(name)} twice")
                filled[name] = with_values(item, values, f"{path}.{name}".lstrip("."))
            return filled
        case list():
            return [with_values(item, values, f"{path}[{index}]") for index, item in enumerate(node)]
        case str():
            whole = TOKEN.fullmatch(node)
            return values[int(whole[1])] if whole else TOKEN.sub(partial(_as_text, values, path), node)
        case None | bool() | int() | float():
            return node
        case _:
            raise TypeError(f"{path or 'the output'} is a {type(node).__name__}, which JSON does not know")


def _as_text(values: list[object], path: str, token: re.Match[str]) -> str:
    """Return a value that stands within a longer text: `{{ name }}-spot`."""
    value = values[int(token[1])]
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return canonical_json(value)
    raise TypeError(f"{path} has {json_kind(value)} within a text; only texts and numbers can stand there")


def json_kind(value: object) -> str:
    """Return what JSON calls a value, with its article."""
    match value:
        case None:
            return "null"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return "a text"
        case _:
            return "a number or boolean"
