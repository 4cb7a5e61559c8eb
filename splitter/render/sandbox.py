"""Runs a template: text with tokens out, and the values that the tokens stand for.

`Renderer` compiles each template here once and runs it for each twin; `document` makes a manifest
of what comes out. Nothing in a template can call, import, roll dice or read the clock, and nothing
it is given can write text: see the package's docstring for why values travel as tokens.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Final

from jinja2 import (
    StrictUndefined,
    Template,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    nodes,
    pass_context,
)
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from splitter.core.desired.manifest import merge, without
from splitter.core.desired.scheduling import (
    add_tolerations,
    leave_dead_nodes_after,
    prefer_node_affinity,
    require_node_affinity,
)
from splitter.core.desired.tracking import portable_labels, with_labels
from splitter.core.desired.twin import hosts
from splitter.core.labels_annotations.words import quoted
from splitter.render.errors import Fault

# etcd takes objects of 1.5 MiB at most; a twin needs room beside it for managedFields and status.
MAX_BYTES: Final = 1024 * 1024

OUR_FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "require_node_affinity": require_node_affinity,
    "prefer_node_affinity": prefer_node_affinity,
    "add_tolerations": add_tolerations,
    "leave_dead_nodes_after": leave_dead_nodes_after,
    "portable_labels": portable_labels,
    "with_labels": with_labels,
    "without": without,
    "merge": merge,
    "hosts": hosts,
}

# Of Jinja2's own, those that are plain arithmetic on values: none with dice (`random` would roll the
# twins in each reconcile), none that marks text as safe or writes JSON into it.
_JINJA_FILTERS: Final = (
    *("default", "d", "items", "dictsort", "list", "length", "first", "last", "sort", "unique", "map"),
    *("select", "reject", "selectattr", "rejectattr", "join", "lower", "upper", "trim", "replace", "int"),
    *("string", "abs", "sum", "min", "max", "round"),
)

# Statements that capture rendered text, where tokens stand, or that reach for another file.
_FORBIDDEN_STATEMENTS: Final[Mapping[type[nodes.Node], str]] = {
    nodes.FilterBlock: "{% filter %}",
    nodes.AssignBlock: "{% set %} ... {% endset %}",
    nodes.Macro: "{% macro %}",
    nodes.CallBlock: "{% call %}",
    nodes.Include: "{% include %}",
    nodes.Import: "{% import %}",
    nodes.FromImport: "{% from %}",
    nodes.Extends: "{% extends %}",
}

# What a template is given; `Renderer` fills them.
VARIABLES: Final = ("source", "twin", "pool", "policy", "presets", "peers")
_EMITTED: Final = "_emitted"
# So many keys of a mapping are listed where one is missing.
_NAMED: Final = 20


class Environment(ImmutableSandboxedEnvironment):
    """Jinja2 with mappings instead of objects, our filters, and neither calls nor globals."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, finalize=keep_aside, autoescape=False, keep_trailing_newline=True
        )
        self.globals.clear()
        self.filters.clear()
        self.filters.update({name: FILTERS[name] for name in _JINJA_FILTERS})
        self.filters.update({name: _defined(function) for name, function in OUR_FILTERS.items()})

    def template(self, text: str, file: str, fault: Fault) -> Template:
        """Compile one template; raises TemplateError, with the line where there is one."""
        try:
            parsed = self.parse(text, filename=file)
            for kind, statement in _FORBIDDEN_STATEMENTS.items():
                for node in parsed.find_all(kind):
                    raise fault(node.lineno, f"{statement} is not allowed; use if, for, and set with `=`")
            for unknown in _unknown_names(parsed):
                raise fault(unknown.lineno, _undefined(f"{unknown.name!r} is undefined"))
            code = self.compile(text, name=file, filename=file)
        except TemplateSyntaxError as problem:
            raise fault(problem.lineno, f"{problem.message} (Jinja2 syntax)") from problem
        except (RecursionError, SyntaxError, MemoryError) as problem:
            raise fault(None, f"it is nested too deeply to be read: {problem}") from problem
        return Template.from_code(self, code, {})

    # Jinja2 looks for attributes before keys: a label called "items" would be a method of dict.
    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - Jinja2's own signature
        """Return the value of `obj.attribute`; of a mapping, only its keys."""
        if not isinstance(obj, Mapping):
            return super().getattr(obj, attribute)
        if attribute in obj:
            return obj[attribute]
        return self._missing(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401 - Jinja2's own signature
        """Return the value of `obj[argument]`; of a mapping, only its keys."""
        if not isinstance(obj, Mapping):
            return super().getitem(obj, argument)
        return obj[argument] if argument in obj else self._missing(obj, argument)

    def _missing(self, obj: Mapping[object, object], name: object) -> Undefined:
        names = sorted(str(key) for key in obj)
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        there = ", ".join([*names[:_NAMED], *more]) or "nothing"
        hint = (
            f"{quoted(str(name))} is not there (there is: {there}); may it be missing, add `| default(...)`"
        )
        return self.undefined(hint=hint, obj=obj, name=str(name))

    def call(self, context: Context, obj: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401, ARG002 - as above
        """Refuse every call: templates are made of values and filters."""
        if isinstance(obj, Undefined):
            str(obj)  # raises UndefinedError
        raise SecurityError("a template calls nothing; write a filter, such as `{{ value | lower }}`")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - as above
        """Multiply numbers only: a text times a billion would take the memory of all."""
        if operator == "**" or not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"{operator} is for numbers only, and ** for none")
        return super().call_binop(context, operator, left, right)


def _unknown_names(parsed: nodes.Template) -> Iterator[nodes.Name]:
    """Yield each name that is no variable and is given a value nowhere: no source could help."""
    names = list(parsed.find_all(nodes.Name))
    known = {*VARIABLES, "loop", *(name.name for name in names if name.ctx != "load")}
    return (name for name in names if name.name not in known)


def _undefined(message: str | None) -> str:
    return f"{message}; the variables are {', '.join(VARIABLES)}"


def _defined(function: Callable[..., object]) -> Callable[..., object]:
    """Return a filter that refuses what is undefined, instead of taking it for an empty mapping."""

    @wraps(function)
    def checked(*arguments: object, **named: object) -> object:
        for argument in (*arguments, *named.values()):
            _insist(argument)
        return function(*arguments, **named)

    return checked


def _insist(value: object) -> None:
    """Raise UndefinedError for what is undefined, in a literal too: later, its line is another one."""
    match value:
        case Undefined():
            str(value)
        case Mapping():
            for item in value.values():
                _insist(item)
        case list() | tuple():
            for item in value:
                _insist(item)
        case _:
            pass


# Nobody who writes a value can know it, so no value passes for a token.
_NONCE: Final = f"v{secrets.token_hex(8)}n"
TOKEN: Final = re.compile(rf"{_NONCE}(\d+)z")


@pass_context
def keep_aside(context: Context, value: object) -> str:
    """Keep the value of an expression, and return the token that stands for it in the text."""
    if isinstance(value, Undefined):
        str(value)  # raises UndefinedError
    values: list[object] = context[_EMITTED]
    values.append(plain(value))
    return f"{_NONCE}{len(values) - 1}z"


def plain(value: object) -> object:
    """Return a value as JSON knows it; tuples and what filters such as `map` yield become lists."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case Mapping():
            return {_plain_key(key): plain(item) for key, item in value.items()}
        case list() | tuple() | Iterator():
            return [plain(item) for item in value]
        case Undefined():
            return str(value)  # raises UndefinedError
        case _:
            raise TypeError(f"an expression gives a {type(value).__name__}, which is not JSON")


def _plain_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{quoted(str(key))} is a key and not a text; write it in quotes")
    return str(key)


def run(template: Template, variables: Mapping[str, object], fault: Fault) -> tuple[str, list[object]]:
    """Return the rendered text, with tokens, and the values they stand for, in order.

    Raises TemplateError with the line, whatever goes wrong; a text that grows too long is given up. And
    MemoryError, of which `line_of` knows the line.
    """
    values: list[object] = []
    try:
        return _joined(template.generate({**variables, _EMITTED: values})), values
    except UndefinedError as problem:
        raise fault(_line(problem.__traceback__, template), _undefined(problem.message)) from problem
    except MemoryError as problem:
        raise MemoryError(_line(problem.__traceback__, template)) from None
    except Exception as problem:  # a template can fail in any way, and must hold nobody but its set
        raise fault(_line(problem.__traceback__, template), str(problem)) from problem


def _joined(pieces: Iterator[str]) -> str:
    taken: list[str] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            raise OverflowError(f"the output has more than {MAX_BYTES} characters")
    return "".join(taken)


def line_of(problem: MemoryError) -> int | None:
    """Return the template's line that needed too much memory, if it is known."""
    return next((line for line in problem.args if isinstance(line, int)), None)


def _line(traceback: TracebackType | None, template: Template) -> int | None:
    """Return the template's line in a traceback that Jinja2 has rewritten."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == template.filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
