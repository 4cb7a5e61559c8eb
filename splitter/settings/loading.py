"""Loads the settings from the file and the environment, and says in words what is wrong with them."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import yaml
from pydantic import ValidationError

from splitter.core.errors import UNREADABLE, SplitterError
from splitter.core.labels_annotations.words import parse_duration, quoted
from splitter.core.reasons import Reason
from splitter.settings import Settings, hint

ENVIRONMENT_PREFIX: Final = "SPLITTER_"

# What Kubernetes puts into a pod's environment for a Service whose name begins with "splitter"; the
# Service "splitter-http" makes SPLITTER_HTTP_PORT, which is why the value is looked at too.
_SERVICE_LINK: Final = re.compile(
    r"SPLITTER_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://.*")

# Read by the tests and the sandbox; a shell that has them set may run the controller too.
_NOT_SETTINGS: Final = ("SPLITTER_DATA", "SPLITTER_REGENERATE", "SPLITTER_SANDBOX")


def load_settings(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings: defaults, over them the file's, over them the environment's.

    `environment` is the process's own unless given. Raises SplitterError with a sentence for each
    thing that is wrong, in the file and in the environment alike.

    >>> load_settings(environment={"SPLITTER_WORKERS": "4"}).workers
    4
    """
    variables = os.environ if environment is None else environment
    written, unknown_keys = _known(_from_file(file), lambda key: f"{key} in {file}", lambda name: name)
    given, unknown_variables = _known(_from_environment(variables), _variable, _variable)
    problems = [*unknown_keys, *unknown_variables]
    try:
        settings = Settings.model_validate({**written, **given})
    except ValidationError as error:
        named = {name: f"{name} in {file}" for name in written} | {name: _variable(name) for name in given}
        problems += _problems(error, named)
    if problems:
        raise SplitterError(_REASON, " ".join(problems))
    return settings


_REASON: Final = Reason.INVALID_SETTINGS


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def _from_file(file: Path | None) -> dict[str, object]:
    """Return what the file says, key by key."""
    if file is None:
        return {}
    try:
        content: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, *UNREADABLE) as error:
        why = " ".join(str(error).split())
        raise SplitterError(
            _REASON, f"the settings {file} cannot be read: {why}. Mend the file, or name another."
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SplitterError(_REASON, f'the settings {file} are no mapping. Write lines such as "workers: 8".')
    return {str(key): value for key, value in content.items()}


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    """Return what the environment says, by the names of settings, without what is not meant for us."""
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in sorted(variables.items())
        if name.startswith(ENVIRONMENT_PREFIX) and not _is_foreign(name, value)
    }


def _is_foreign(name: str, value: str) -> bool:
    if name.startswith(_NOT_SETTINGS):
        return True
    ours = name.removeprefix(ENVIRONMENT_PREFIX).lower() in Settings.model_fields
    return bool(_SERVICE_ADDRESS.fullmatch(value) if ours else _SERVICE_LINK.fullmatch(name))


def _known(
    values: Mapping[str, object], where: Callable[[str], str], spelled: Callable[[str], str]
) -> tuple[dict[str, object], list[str]]:
    """Return the values of known settings, and a sentence for each unknown one."""
    names = tuple(Settings.model_fields)
    problems = [
        f"{where(name)} is no setting; {hint(name, names, spelled)}" for name in values if name not in names
    ]
    return {name: value for name, value in values.items() if name in names}, problems


def _problems(error: ValidationError, named: Mapping[str, str]) -> list[str]:
    """Return one sentence for each setting that is wrong."""
    problems: dict[str, str] = {}
    for fault in error.errors(include_url=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        if fault["type"] == "value_error":
            message = str(fault.get("ctx", {}).get("error", fault["msg"]))
            ended = message if message.endswith(("?", ".")) else f"{message}."
            problems.setdefault(name, f"{named.get(name, name)}: {ended}" if name else ended)
        else:
            problems.setdefault(name, _problem(name, named.get(name, name), fault["input"]))
    return list(problems.values())


def _problem(name: str, where: str, value: object) -> str:
    seconds = parse_duration(value) if isinstance(value, str) and name.endswith("_s") else None
    default = default_of(name)
    example = f"Write for example {quoted(default)}." if default else "Leave it out for the default."
    advice = f'Write "{seconds}".' if seconds else example
    return f"{where} is {quoted(str(value))}; it must be {must_be(name)}. {advice}"


def must_be(name: str) -> str:
    """Return what a setting's value may be, from its field, as in "a whole number, 0 or more"."""
    schema = Settings.model_json_schema()["properties"][name]
    schema = {**schema, **next((part for part in schema.get("anyOf", ()) if part.get("type") != "null"), {})}
    lowest, above, highest = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    low = f"{lowest:g} or more" if lowest is not None else f"more than {above:g}" if above is not None else ""
    if lowest is not None and highest is not None:
        low = f"{lowest:g}..{highest:g}"
    elif highest is not None:
        low = f"{low}, at most {highest:g}".removeprefix(", ")
    match schema.get("type"):
        case "number":
            unit = "a number of seconds" if name.endswith("_s") else "a number"
        case "integer":
            unit = "a whole number"
        case "boolean":
            return "true or false"
        case "array":
            return "a list of texts (in the environment: with commas between them)"
        case _ if "enum" in schema:
            return "one of " + ", ".join(f'"{word}"' for word in schema["enum"])
        case _:
            return "a path" if schema.get("format") == "path" else "a text"
    return f"{unit}, {low}" if low else unit


def default_of(name: str) -> str:
    """Return a default as one writes it, "" where there is none to write."""
    match Settings.model_fields[name].default:
        case bool() as switch:
            return str(switch).lower()
        case int() | float() as number:
            return f"{number:g}"
        case str() as text:
            return text
        case tuple() as texts:
            return ", ".join(texts)
        case _:
            return ""
