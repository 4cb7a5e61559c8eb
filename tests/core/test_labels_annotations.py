"""The surface: what annotations and labels mean, and what a user reads when one is wrong."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.labels_annotations import name_problem, short_name, twin_name
from splitter.core.labels_annotations.label import (
    LabelState,
    OwnershipMark,
    ownership_mark_value,
    parse_ownership_mark,
    source_label_state,
)
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS, Level, Policy, parse_policy
from splitter.core.labels_annotations.words import parse_duration
from splitter.core.model import Mode, Pool, RolloutOrder, SpotAffinity
from splitter.core.reasons import Reason

DEFAULTS = Policy()
LAST_GOOD = "Until then the last good policy stays in force."


def refusal(annotation: str, text: str) -> str:
    """Return the only message about one annotation, without the sentence all of them end with."""
    parsed = parse_policy({f"splitter.io/{annotation}": text}, DEFAULTS)
    assert parsed.policy is None
    (problem,) = parsed.problems
    assert problem.reason is Reason.INVALID_ANNOTATION
    assert problem.warning
    assert problem.message.endswith(LAST_GOOD)
    return problem.message.removesuffix(f" {LAST_GOOD}")


class TestParsePolicy:
    def test_without_annotations(self) -> None:
        """No annotation at all is the defaults, without a word."""
        defaults = replace(DEFAULTS, soak_s=42.0, on_demand_base="majority")
        parsed = parse_policy({}, defaults)
        assert parsed.policy == defaults
        assert parsed.problems == ()

    def test_every_annotation(self) -> None:
        """Each annotation of the reference reaches its field."""
        parsed = parse_policy(
            {
                "splitter.io/on-demand-base": "2",
                "splitter.io/spot-percent": "80",
                "splitter.io/on-demand-max": "10",
                "splitter.io/spot-max": "0",
                "splitter.io/spot-affinity": "preferred",
                "splitter.io/grace": "90s",
                "splitter.io/soak": "1h",
                "splitter.io/mode": "twins",
                "splitter.io/freeze": "true",
                "splitter.io/dry-run": "false",
                "splitter.io/template": "canary-2",
                "splitter.io/rollout-order": "spot-first",
                "splitter.io/volumes": "disposable",
                "splitter.io/rank": "7",
                "splitter.io/relief": "cpu=85,memory=90",
                "splitter.io/restarted-at": "2026-01-31T12:00:00Z",
            },
            DEFAULTS,
        )
        assert parsed.problems == ()
        assert parsed.policy == Policy(
            on_demand_base=2,
            spot_percent=80,
            on_demand_max=10,
            spot_max=0,
            spot_affinity=SpotAffinity.PREFERRED,
            rank=7,
            relief="cpu=85,memory=90",
            grace_s=90.0,
            soak_s=3600.0,
            freeze=True,
            dry_run=False,
            template_set="canary-2",
            rollout_order=RolloutOrder.SPOT_FIRST,
            restarted_at="2026-01-31T12:00:00Z",
            mode=Mode.TWINS,
            disposable_volumes=True,
        )

    def test_majority(self) -> None:
        """The base may be the word majority, resolved where N is known."""
        parsed = parse_policy({"splitter.io/on-demand-base": "majority"}, DEFAULTS)
        assert parsed.policy == replace(DEFAULTS, on_demand_base="majority")

    def test_one_key_a_field(self) -> None:
        """Every field of the policy has an annotation that a user can write."""
        assert len(USER_ANNOTATIONS) == len(fields(Policy))

    @pytest.mark.parametrize(
        ("annotation", "text", "message"),
        [
            (
                "spot-percent",
                "80%",
                'splitter.io/spot-percent is "80%"; it must be a whole number 0..100. Write "80".',
            ),
            (
                "spot-percent",
                "101",
                (
                    'splitter.io/spot-percent is "101"; it must be a whole number 0..100. '
                    'Write for example "80".'
                ),
            ),
            (
                "on-demand-base",
                "Majority",
                (
                    'splitter.io/on-demand-base is "Majority"; it must be a whole number, 0 or more, '
                    'or "majority". Write "majority".'
                ),
            ),
            (
                "on-demand-base",
                "-1",
                (
                    'splitter.io/on-demand-base is "-1"; it must be a whole number, 0 or more, '
                    'or "majority". Write for example "2".'
                ),
            ),
            (
                "spot-max",
                "",
                'splitter.io/spot-max is ""; it must be a whole number, 0 or more. Write for example "2".',
            ),
            (
                "spot-affinity",
                "Preferred ",
                (
                    'splitter.io/spot-affinity is "Preferred "; it must be "required" or "preferred". '
                    'Write "preferred".'
                ),
            ),
            (
                "soak",
                "600",
                (
                    'splitter.io/soak is "600"; it must be a duration 1s..1h, such as 90s, 10m or 1h. '
                    'Write "600s".'
                ),
            ),
            (
                "grace",
                "3 minutes",
                (
                    'splitter.io/grace is "3 minutes"; it must be a duration 0s..24h, such as 90s, 10m or '
                    '1h30m. Write for example "180s".'
                ),
            ),
            (
                "freeze",
                "yes",
                'splitter.io/freeze is "yes"; it must be "true" or "false". Write for example "true".',
            ),
            ("mode", "twin", 'splitter.io/mode is "twin"; it must be "twins" or "placement". Write "twins".'),
            (
                "volumes",
                "keep",
                'splitter.io/volumes is "keep"; it must be "disposable". Write for example "disposable".',
            ),
            (
                "rank",
                "high",
                (
                    'splitter.io/rank is "high"; it must be a whole number 0..1000, 0 first. '
                    'Write for example "10".'
                ),
            ),
            (
                "rank",
                "-1",
                (
                    'splitter.io/rank is "-1"; it must be a whole number 0..1000, 0 first. '
                    'Write for example "10".'
                ),
            ),
            (
                "rollout-order",
                "spot_first",
                (
                    'splitter.io/rollout-order is "spot_first"; it must be "on-demand-first" or '
                    '"spot-first". Write "spot-first".'
                ),
            ),
            (
                "template",
                "../default",
                (
                    'splitter.io/template is "../default"; it must be the name of a template set: lower-case '
                    "letters, digits and '-', at most 63 characters. Write for example \"default\"."
                ),
            ),
            (
                "restarted-at",
                "",
                (
                    'splitter.io/restarted-at is ""; it must be a time or any other word of 1..64 printable '
                    'characters without spaces. Write for example "2026-01-31T12:00:00Z".'
                ),
            ),
        ],
    )
    def test_refusals(self, annotation: str, text: str, message: str) -> None:
        """A bad value is named, with what it must be and how to write it."""
        assert refusal(annotation, text) == message

    def test_every_bad_one_is_named(self) -> None:
        """Two mistakes are two sentences, so that one visit mends both."""
        parsed = parse_policy({"splitter.io/soak": "x", "splitter.io/grace": "y"}, DEFAULTS)
        assert parsed.policy is None
        assert [problem.message.split()[0] for problem in parsed.problems] == [
            "splitter.io/grace",
            "splitter.io/soak",
        ]

    def test_digits_of_other_scripts(self) -> None:
        """Only ASCII digits are numbers: what int() would take as well is refused."""
        assert refusal("spot-percent", "٨٠").startswith('splitter.io/spot-percent is "٨٠"; ')

    def test_huge_value(self) -> None:
        """A value of 256 KiB is shortened in the sentence, or no Event could carry it."""
        message = refusal("spot-percent", "9" * 262_144)
        assert len(message) < 256
        assert "(262144 characters)" in message

    def test_line_breaks(self) -> None:
        """A value cannot break the line of a log."""
        assert "\n" not in refusal("soak", "10m\nreason=Balanced")


class TestUnknownAnnotations:
    @pytest.mark.parametrize(
        ("key", "advice"),
        [
            ("splitter.io/spot-percentage", "Did you mean splitter.io/spot-percent?"),
            ("splitter.io/ondemand-base", "Did you mean splitter.io/on-demand-base?"),
            ("splitter.io/xyzzy", "Known are: splitter.io/on-demand-base, splitter.io/spot-percent, "),
        ],
    )
    def test_warning(self, key: str, advice: str) -> None:
        """An unknown annotation is a warning with the nearest known name, and refuses nothing."""
        parsed = parse_policy({key: "1"}, DEFAULTS)
        assert parsed.policy == DEFAULTS
        (problem,) = parsed.problems
        assert problem.message.startswith(
            f"{key} is not an annotation splitter knows, and is ignored. {advice}"
        )

    def test_very_many(self) -> None:
        """Ten are named, and the others counted: each is an Event."""
        problems = parse_policy(
            {f"splitter.io/x{number:04}": "1" for number in range(2500)}, DEFAULTS
        ).problems
        assert len(problems) == 11
        assert problems[-1].message == "2490 more annotations begin with splitter.io/ and are ignored."

    def test_label_as_annotation(self) -> None:
        """The label written as an annotation is pointed out: it is the likeliest slip of all."""
        (problem,) = parse_policy({"splitter.io/split": "enabled"}, DEFAULTS).problems
        assert problem.message == (
            "splitter.io/split is read as a label only. Write it under labels, or remove it."
        )

    def test_ours_and_foreign(self) -> None:
        """What splitter writes itself, and what is under another prefix, is no surprise."""
        annotations = {
            "splitter.io/taken-over": "{}",
            "splitter.io/replicas": "3",
            "splitter.io/rendered-hash": "0",
            "example.com/spot-percentage": "1",
        }
        assert parse_policy(annotations, DEFAULTS).problems == ()


class TestNamespaceDefaults:
    def test_default(self) -> None:
        """A namespace's annotation stands in where the workload has none."""
        parsed = parse_policy({}, DEFAULTS, {"splitter.io/spot-percent": "50"})
        assert parsed.policy == replace(DEFAULTS, spot_percent=50)
        assert dict(parsed.levels)["splitter.io/spot-percent"] is Level.NAMESPACE
        assert dict(parsed.levels)["splitter.io/soak"] is Level.DEFAULT

    def test_override(self) -> None:
        """The workload's own annotation wins, and the namespace's is then not even read."""
        parsed = parse_policy(
            {"splitter.io/spot-percent": "90"}, DEFAULTS, {"splitter.io/spot-percent": "half"}
        )
        assert parsed.policy == replace(DEFAULTS, spot_percent=90)
        assert dict(parsed.levels)["splitter.io/spot-percent"] is Level.SOURCE

    def test_where_it_is_wrong(self) -> None:
        """The sentence says that the Namespace is the place to mend."""
        parsed = parse_policy({}, DEFAULTS, {"splitter.io/soak": "600", "splitter.io/sok": "1"})
        assert [problem.message.split(";")[0] for problem in parsed.problems] == [
            'splitter.io/soak on the Namespace is "600"',
            (
                "splitter.io/sok on the Namespace is not an annotation splitter knows, and is ignored. "
                "Did you mean splitter.io/soak?"
            ),
        ]


class TestDuration:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90s", 90),
            ("10m", 600),
            ("1h30m", 5400),
            ("2h", 7200),
            ("1h0m5s", 3605),
            ("0s", 0),
            ("90m", 5400),
        ],
    )
    def test_accepted(self, text: str, seconds: int) -> None:
        """Hours, minutes and seconds, each at most once, the larger first."""
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize(
        "text",
        ["", "600", "1.5h", "30m1h", "10M", " 10m", "-5m", "10m\n", "1d", "s", "9999999s", "\u0661\u0660m"],
    )
    def test_refused(self, text: str) -> None:
        """Everything else, a number without its unit first of all."""
        assert parse_duration(text) is None

    @given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
    def test_sum(self, hours: int, minutes: int, seconds: int) -> None:
        """The parts add up."""
        assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


class TestSourceLabel:
    def test_enabled_and_absent(self) -> None:
        """The word enabled is a wish; no label is none."""
        assert source_label_state({"splitter.io/split": "enabled"}).state is LabelState.ENABLED
        assert source_label_state({"app": "web"}).state is LabelState.ABSENT

    @pytest.mark.parametrize("value", ["twin", "parked"])
    def test_ours(self, value: str) -> None:
        """What carries a mark of ours is never a source."""
        label = source_label_state({"splitter.io/split": value})
        assert label.state is LabelState.OURS
        assert label.note is not None
        assert label.note.reason is Reason.IS_TWIN

    def test_invalid(self) -> None:
        """Any other word is refused, with both ways out."""
        label = source_label_state({"splitter.io/split": "true"})
        assert label.state is LabelState.INVALID
        assert label.note is not None
        assert label.note.reason is Reason.INVALID_LABEL
        assert label.note.message == (
            'splitter.io/split is "true"; it must be "enabled". Write "enabled" to split this workload, '
            "or remove the label to have it back."
        )


class TestNames:
    def test_twins(self) -> None:
        """Twins are called after their source and their pool."""
        assert [twin_name("web", pool) for pool in Pool] == ["web-on-demand", "web-spot"]

    @pytest.mark.parametrize(("kind", "longest"), [("Deployment", 232), ("StatefulSet", 42)])
    def test_limit(self, kind: str, longest: int) -> None:
        """The longest name leaves room for what splitter and Kubernetes append, and one more is refused."""
        assert name_problem(kind, "w" * longest) is None
        problem = name_problem(kind, "w" * (longest + 1))
        assert problem is not None
        assert problem.reason is Reason.NAME_TOO_LONG
        assert (
            f"has {longest + 1} characters; a {kind} to be split may have at most {longest}"
            in problem.message
        )

    def test_limit_of_placement(self) -> None:
        """Its pods keep their names, so only what Kubernetes appends counts."""
        assert name_problem("StatefulSet", "w" * 52, Mode.PLACEMENT) is None
        problem = name_problem("StatefulSet", "w" * 53, Mode.PLACEMENT)
        assert problem is not None
        assert "has 53 characters; a StatefulSet to be split may have at most 52" in problem.message

    def test_short_name(self) -> None:
        """A name that fits stays as it is; two long ones with one beginning stay apart."""
        assert short_name("web") == "web"
        assert short_name("w" * 63) == "w" * 63
        assert short_name("w" * 64) != short_name("w" * 65)

    @given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True), st.integers(10, 63))
    def test_short_name_is_a_label(self, name: str, max_len: int) -> None:
        """Whatever the object's name, the result is a valid label value of the wanted length."""
        short = short_name(name, max_len)
        assert 1 <= len(short) <= max_len
        assert short[0].isalnum()
        assert short[-1].isalnum()


class TestMark:
    def test_round_trip(self) -> None:
        """What is written is read back, in UTC, to the second."""
        now = datetime(2026, 1, 31, 13, 0, 0, 999, tzinfo=timezone(timedelta(hours=1)))
        text = ownership_mark_value("u-1", now)
        assert text == '{"uid":"u-1","time":"2026-01-31T12:00:00Z"}'
        assert parse_ownership_mark(text) == OwnershipMark("u-1", datetime(2026, 1, 31, 12, tzinfo=UTC))

    @pytest.mark.parametrize(
        "text",
        [
            None,
            "",
            "{",
            "[]",
            "null",
            '{"uid":"u-1"}',
            '{"uid":1,"time":"2026-01-31T12:00:00Z"}',
            '{"uid":"","time":"2026-01-31T12:00:00Z"}',
            '{"uid":"u-1","time":"noon"}',
            "[" * 100_000,
        ],
    )
    def test_not_a_mark(self, text: str | None) -> None:
        """What splitter did not write is no mark, and no error."""
        assert parse_ownership_mark(text) is None

    @given(st.text())
    def test_any_text(self, text: str) -> None:
        """No text raises."""
        parse_ownership_mark(text)
        parse_ownership_mark(json.dumps({"uid": "u", "time": text}))
