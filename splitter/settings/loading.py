"""Loads the settings from the file and the environment, and says in words what is wrong with them."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import yaml
from pydantic import BaseModel, ValidationError

from splitter.core.errors import UNREADABLE, SplitterError
from splitter.core.labels_annotations.words import parse_duration, quoted
from splitter.core.reasons import Reason
from splitter.settings import Settings, TuningSettings, hint

Place = tuple[str, ...]
"""Where a setting is in the file: ("workers",), or within a block, ("tuning", "calm_s")."""

ENVIRONMENT_PREFIX: Final = "SPLITTER_"
TUNING: Final = "tuning"
PLACES: Final[tuple[Place, ...]] = (
    *((name,) for name in Settings.model_fields if name != TUNING),
    *((TUNING, name) for name in TuningSettings.model_fields),
)

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

    >>> load_settings(environment={"SPLITTER_WORKERS": "4", "SPLITTER_TUNING_CALM_S": "60"}).tuning.calm_s
    60.0
    """
    written = _from_file(file)
    given = _from_environment(os.environ if environment is None else environment)
    named = {place: f"{in_file(place)} in {file}" for place in written}
    problems = [
        *(f"{named[place]} {_misplaced(place, written[place], in_file)}" for place in _unknown(written)),
        *(f"{variable(place)} {_misplaced(place, given[place], variable)}" for place in _unknown(given)),
    ]
    values: dict[str, object] = {}
    tuning: dict[str, object] = {}
    for place, value in {**written, **given}.items():
        if place in PLACES:
            (values if len(place) == 1 else tuning)[place[-1]] = value
    try:
        settings = Settings.model_validate({**values, TUNING: tuning})
    except ValidationError as error:
        problems += _problems(error, named | {place: variable(place) for place in given})
    if problems:
        raise SplitterError(_REASON, " ".join(problems))
    return settings


_REASON: Final = Reason.INVALID_SETTINGS


def variable(place: Place) -> str:
    """Return a setting's name in the environment."""
    return ENVIRONMENT_PREFIX + "_".join(place).upper()


def in_file(place: Place) -> str:
    """Return a setting's name in the file, as in "tuning.calm_s"."""
    return ".".join(place)


def place_of(name: str) -> Place:
    """Return the place of the setting that a variable sets.

    >>> place_of("SPLITTER_TUNING_CALM_S"), place_of("SPLITTER_WORKERS")
    (('tuning', 'calm_s'), ('workers',))
    """
    block, _, within = (key := name.removeprefix(ENVIRONMENT_PREFIX).lower()).partition("_")
    return (block, within) if block == TUNING and within else (key,)


def placed(content: Mapping[object, object]) -> dict[Place, object]:
    """Return what a file says, by places; a block that is no mapping stays whole."""
    values: dict[Place, object] = {}
    for key, value in content.items():
        if key == TUNING and isinstance(value, Mapping):
            values |= {(TUNING, str(name)): each for name, each in value.items()}
        else:
            values[str(key),] = value
    return values


def _from_file(file: Path | None) -> dict[Place, object]:
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
    return placed(content)


def _from_environment(variables: Mapping[str, str]) -> dict[Place, object]:
    """Return what the environment says, by the places of settings, without what is not meant for us."""
    return {
        place_of(name): value
        for name, value in sorted(variables.items())
        if name.startswith(ENVIRONMENT_PREFIX) and not _is_foreign(name, value)
    }


def _is_foreign(name: str, value: str) -> bool:
    if name.startswith(_NOT_SETTINGS):
        return True
    ours = place_of(name) in PLACES
    return bool(_SERVICE_ADDRESS.fullmatch(value) if ours else _SERVICE_LINK.fullmatch(name))


def _unknown(values: Mapping[Place, object]) -> list[Place]:
    return [place for place in values if place not in PLACES]


def _misplaced(place: Place, value: object, spelled: Callable[[Place], str]) -> str:
    """Return what is wrong with a name that is no setting's, and what to write."""
    names = {known[-1]: known for known in (*PLACES, (TUNING,))}
    name, is_file = place[-1].removeprefix(f"{TUNING}."), spelled is in_file
    if place == (TUNING,):
        return (
            f'{_said(value)}; it must be a block of settings. Write for example "tuning: {{calm_s: 60}}".'
            if is_file
            else f"is no setting. Write a variable for each, such as {variable((TUNING, 'calm_s'))}."
        )
    if name not in names:
        candidates = tuple(one for one in names if len(names[one]) >= len(place))
        return f"is no setting; {hint(name, candidates, lambda near: spelled(names[near]))}"
    inside = len(names[name]) > 1
    write = f'"{name}: ..." {"below tuning:, indented" if inside else "outside it"}'
    return (
        f"{'belongs' if inside else 'does not belong'} under tuning. "
        f"Write {write if is_file else variable(names[name])}."
    )


def _problems(error: ValidationError, named: Mapping[Place, str]) -> list[str]:
    """Return one sentence for each setting that is wrong."""
    problems: dict[Place, str] = {}
    for fault in error.errors(include_url=False):
        place = next((one for one in PLACES if fault["loc"][: len(one)] == one), ())
        where = named.get(place, in_file(place))
        if fault["type"] == "value_error":
            message = str(fault.get("ctx", {}).get("error", fault["msg"]))
            ended = message if message.endswith(("?", ".")) else f"{message}."
            problems.setdefault(place, f"{where}: {ended}" if place else ended)
        else:
            problems.setdefault(place, _problem(place, where, fault["input"]))
    return list(problems.values())


def _problem(place: Place, where: str, value: object) -> str:
    seconds = parse_duration(value) if isinstance(value, str) and place[-1].endswith("_s") else None
    default = default_of(place)
    example = f"Write for example {quoted(default)}." if default else "Leave it out for the default."
    advice = f'Write "{seconds}".' if seconds else example
    return f"{where} {_said(value)}; it must be {must_be(place)}. {advice}"


def _said(value: object) -> str:
    return "is empty" if value is None else f"is {quoted(str(value))}"


def must_be(place: Place) -> str:
    """Return what a setting's value may be, from its field, as in "a whole number, 0 or more"."""
    name = place[-1]
    schema = _model(place).model_json_schema()["properties"][name]
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


def _model(place: Place) -> type[BaseModel]:
    return Settings if len(place) == 1 else TuningSettings


def default_of(place: Place) -> str:
    """Return a default as one writes it, "" where there is none to write."""
    match _model(place).model_fields[place[-1]].default:
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
