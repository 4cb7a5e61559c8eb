"""The log: one line a record, as text or as JSON, with the fields of the record beside its words.

`splitter.run` asks for the handler. What is logged with `extra` becomes `key=value` at the end of a line of
text, and a field of its own in JSON. The one line that tells of a reconcile (`reconcile_fields`) has the same
fields always. Instants are UTC, so that the lines of two machines can be laid side by side. Never a manifest,
a Secret or an environment: fields are words, names and numbers, a sentence is cut, and of the words of
others, such as an API server's in an exception, no value is left (`discretion`).
"""

import copy
import json
import logging
import time

from pythonjsonlogger.json import JsonFormatter

from splitter.core.names import Key
from splitter.core.plan import Plan
from splitter.report.discretion import WithoutValues, traceback_of, without_values
from splitter.report.printable import printable

_SENTENCE = 1024
# What every record has; anything else came with `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECONDS, _MILLISECONDS = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"


def handler(form: str) -> logging.Handler:
    """Return what writes to standard error; `form` is `text` or `json`.

    Example of a line: 2026-01-05T10:00:00.123Z INFO    splitter.reconciler reconciled workload=shop/web
    kind=Deployment state=Moving reason=SpotLost actions=2 took_ms=41 because="scale on-demand 3 -> 6 ...".
    """
    made = _Discreet()
    made.setFormatter(
        _json() if form == "json" else _Text("%(asctime)s %(levelname)-7s %(name)s %(message)s")
    )
    return made


def reconcile_fields(key: Key, plan: Plan, took_s: float) -> dict[str, str | int]:
    """Return the fields of the one line about a reconcile."""
    return {
        "workload": str(key),
        "kind": key.kind,
        "state": plan.state.value,
        "reason": plan.verdict.reason.value,
        "actions": len(plan.actions),
        "took_ms": round(took_s * 1000),
        "because": without_values(plan.verdict.message)[:_SENTENCE],
    }


class _Discreet(logging.StreamHandler):  # type: ignore[type-arg] # its parameter is for type checkers only
    def format(self, record: logging.LogRecord) -> str:
        """Return a record's line; exceptions, whoever logs them and however, are told without values."""
        record = copy.copy(record)
        for name, value in list(vars(record).items()):
            if isinstance(value, BaseException):
                setattr(record, name, WithoutValues(value))
        if isinstance(record.args, tuple):
            record.args = tuple(
                WithoutValues(one) if isinstance(one, BaseException) else one for one in record.args
            )
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = traceback_of(record.exc_info[1])
            record.exc_info = None
        return super().format(record)


class _Text(logging.Formatter):
    default_time_format = _SECONDS
    default_msec_format = _MILLISECONDS
    converter = staticmethod(time.gmtime)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's own name)
        """Return one line: a foreign sentence may hold several."""
        fields = (f"{name}={_word(value)}" for name, value in vars(record).items() if name not in _OWN)
        return " ".join([printable(super().formatMessage(record)), *fields])


def _word(value: object) -> str:
    """Return a value as one word; what is no word is quoted as in JSON."""
    text = str(value)
    plain = text and not any(letter.isspace() or letter in '"=' for letter in text)
    return printable(text if plain else json.dumps(text, ensure_ascii=False))


def _json() -> logging.Formatter:
    made = JsonFormatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        json_ensure_ascii=True,  # so that no sign of a stranger's text turns a terminal's line around
    )
    made.default_time_format, made.default_msec_format = _SECONDS, _MILLISECONDS
    made.converter = time.gmtime
    return made
