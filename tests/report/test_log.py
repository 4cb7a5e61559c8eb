"""The log: one line a record, the same fields as text and as JSON, and never what is nobody's business."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from builders import KEY
from splitter.core.actions import HolderKind, Scale
from splitter.core.handover import Step
from splitter.core.model import Note
from splitter.core.plan import Plan
from splitter.core.reasons import Reason, State
from splitter.kube.client import ApiError
from splitter.report.log import handler, reconcile_fields

MOVED = Plan(
    Step.RUN,
    State.MOVING,
    Note(Reason.SPOT_LOST, "scale on-demand 3 -> 6 (+3): 3 of 7 replicas are gone"),
    (Scale(HolderKind.DEPLOYMENT, "web-on-demand", 3, 6, None),),
)
FIELDS = {
    "workload": "shop/web",
    "kind": "Deployment",
    "state": "Moving",
    "reason": "SpotLost",
    "actions": 1,
    "took_ms": 41,
    "because": MOVED.verdict.message,
}


def written(form: str, words: object = "reconciled", /, **fields: Any) -> str:  # noqa: ANN401 (of a record)
    """Return the line that a record becomes."""
    record = logging.makeLogRecord(
        {"name": "splitter.reconciler", "levelno": logging.INFO, "levelname": "INFO", "msg": words, **fields}
    )
    record.created = datetime(2026, 1, 5, 10, 0, 0, 123_000, tzinfo=UTC).timestamp()
    record.msecs = 123.0
    return handler(form).format(record)


class TestReconcile:
    def test_fields(self) -> None:
        """A reconcile has the same fields always, and they are words and numbers."""
        assert reconcile_fields(KEY, MOVED, 0.0412) == FIELDS

    def test_as_text(self) -> None:
        """One line that a person reads and a machine can split."""
        assert written("text", **reconcile_fields(KEY, MOVED, 0.0412)) == (
            "2026-01-05T10:00:00.123Z INFO    splitter.reconciler reconciled workload=shop/web"
            " kind=Deployment state=Moving reason=SpotLost actions=1 took_ms=41"
            ' because="scale on-demand 3 -> 6 (+3): 3 of 7 replicas are gone"'
        )

    def test_as_json(self) -> None:
        """The same fields, each by itself."""
        line = written("json", **reconcile_fields(KEY, MOVED, 0.0412))
        assert json.loads(line) == {
            "time": "2026-01-05T10:00:00.123Z",
            "level": "INFO",
            "logger": "splitter.reconciler",
            "message": "reconciled",
            **FIELDS,
        }

    def test_is_cut(self) -> None:
        """A sentence with the words of a foreign webhook in it does not fill the log."""
        long = Plan(Step.RUN, State.HELD, Note(Reason.WRITE_DENIED, "x" * 5000))
        assert len(str(reconcile_fields(KEY, long, 0)["because"])) == 1024

    @pytest.mark.parametrize("form", ["text", "json"])
    @pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\x9b", "\u2028", "\u202e", "\x00"])
    def test_is_one_line_that_moves_no_cursor(self, form: str, sign: str) -> None:
        """Whatever stands in the words of others: a line of the log is one, and reads as it stands."""
        sentence = f"calm{sign}2026-01-05T10:00:00.123Z INFO shop/web Balanced"
        values = reconcile_fields(KEY, Plan(Step.RUN, State.HELD, Note(Reason.WRITE_DENIED, sentence)), 0)
        for line in (written(form, **values), written(form, sentence), written(form, "%s", args=(sentence,))):
            assert line.isprintable()
            assert "calm" in line

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_an_exception_begins_no_line(self, form: str) -> None:
        """A traceback has several lines, and none of them is what the exception says."""
        error = RuntimeError("calm\n2026-01-05T10:00:00.123Z INFO    splitter.reconciler reconciled")
        line = written(form, "failed", exc_info=(RuntimeError, error, None))
        text = json.loads(line)["exc_info"] if form == "json" else line
        assert not any(one.startswith("2026") for one in text.splitlines()[1:])
        assert r"calm\n2026" in text

    def test_holds_no_value(self) -> None:
        """What an API server, a kubelet or a template quotes in a sentence is in Event and Split only."""
        said = (
            'the API server would refuse to write the spot twin: a.image: Invalid value: "hunter2": must not'
        )
        values = reconcile_fields(KEY, Plan(Step.RUN, State.HELD, Note(Reason.WRITE_DENIED, said)), 0)
        assert values["because"] == said.replace('"hunter2"', "…")


class TestLines:
    @pytest.mark.parametrize("form", ["text", "json"])
    def test_one_a_record(self, form: str) -> None:
        """What somebody else says over several lines is one line here."""
        assert len(written(form, "one\ntwo", because="three\nfour").splitlines()) == 1

    def test_empty_field(self) -> None:
        """A field without a value is told from none."""
        assert written("text", because="").endswith(' because=""')

    def test_no_fields(self) -> None:
        """A record without fields is its words."""
        assert written("text", "connected").endswith(" connected")
        assert set(json.loads(written("json", "connected"))) == {"time", "level", "logger", "message"}

    def test_quotes(self) -> None:
        """A field with signs of its own is quoted as in JSON."""
        assert written("text", because='is "x"').endswith(' because="is \\"x\\""')

    @pytest.mark.parametrize("form", ["text", "json"])
    @pytest.mark.parametrize("words", ["%s", "%r", "%10s of %s"])
    def test_exceptions(self, form: str, words: str) -> None:
        """An exception is told without what it quotes, however it comes into a record."""
        error = ApiError(422, "Invalid", 'spec.a: Invalid value: "hunter2": wrong')
        arguments = (error,) * words.count("%")
        for line in (
            written(form, words, args=arguments),
            written(form, "failed", exc_info=(ApiError, error, None)),
            written(form, "failed", why=error),
            written(form, error),
        ):
            reported = "\n".join(map(str, json.loads(line).values())) if form == "json" else line
            assert "422 Invalid: spec.a: Invalid value: …: wrong" in reported
            assert "hunter2" not in line

    def test_traceback(self) -> None:
        """A bug is told with its whole traceback."""
        try:
            int("hunter2")
        except ValueError as error:
            line = written("text", "a reconcile failed", exc_info=(type(error), error, error.__traceback__))
        assert "Traceback" in line
        assert "ValueError: invalid literal" in line
        assert "base 10: 'hunter2'" not in line
