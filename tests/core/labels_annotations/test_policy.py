"""What annotations mean, and what a user reads when one is wrong."""

from dataclasses import fields, replace

import pytest

from splitter.core.labels_annotations.policy import (
    USER_ANNOTATIONS,
    Level,
    Policy,
    RolloutOrder,
    SpotAffinity,
    parse_policy,
)
from splitter.core.model import Mode
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
