"""When a wait is over, by what a Split says."""

from dataclasses import replace

import pytest

from builders import NOW
from splitter.core.split_status import Condition, Memory, SplitStatus
from splitter.plugin.core.waiting import Asked, Judgement, Until, judged

ALL = "4 of 4 replicas have the template of generation 7 and are available"
SOME = "1 of 4 replicas have the template of generation 7 and are available"
RESTART = "splitter.io/restarted-at"
SEVEN = Asked(7, {})
DONE = SplitStatus(
    source_generation=7,
    state="Steady",
    reason="Balanced",
    message="2 on on-demand, 2 on spot",
    memory=Memory(good_annotations={"splitter.io/soak": "10m"}),
    conditions=(
        Condition("PolicyValid", "True", "AsExpected", "", NOW),
        Condition("Updated", "True", "AsExpected", ALL, NOW),
        Condition("Stalled", "False", "AsExpected", "", NOW),
    ),
)


def saying(status: SplitStatus = DONE, /, **conditions: tuple[str, str]) -> SplitStatus:
    """Return a status with other conditions: status and message by type."""
    others = [one for one in status.conditions if one.type not in conditions]
    made = [Condition(kind, *(value, "Why", message), NOW) for kind, (value, message) in conditions.items()]
    return replace(status, conditions=(*others, *made))


class TestTheGeneration:
    @pytest.mark.parametrize("until", list(Until))
    @pytest.mark.parametrize("newer", [0, 1])
    def test_is_reached(self, until: Until, newer: int) -> None:
        """The one that is waited for, or a newer one."""
        status = replace(DONE, source_generation=7 + newer)
        assert judged(status, SEVEN, until) == Judgement(ALL, done=True)

    def test_is_not_seen_yet(self) -> None:
        """All that is said is about the one before: steady, updated, stalled."""
        before = replace(saying(Stalled=("True", "")), source_generation=6)
        assert judged(before, SEVEN) == Judgement(
            "splitter has seen generation 6 of it, and not 7 yet", unseen=True
        )

    def test_nothing_is_said(self) -> None:
        """Nor is it done where nothing is reported."""
        assert judged(SplitStatus(), SEVEN) == Judgement("splitter has not reported on it yet", unseen=True)


class TestAnnotations:
    """Of a StatefulSet they raise no generation: a restart, another policy."""

    @pytest.mark.parametrize("before", ["", "2026-01-01T00:00:00Z"])
    def test_that_are_not_in_force_yet(self, before: str) -> None:
        """Missing there, or with the value before."""
        status = replace(DONE, memory=Memory(good_annotations={RESTART: before} if before else {}))
        asked = Asked(7, {RESTART: "2026-01-02T00:00:00Z"})
        assert judged(status, asked) == Judgement(f"{RESTART} is not in force yet")

    def test_several(self) -> None:
        """All are named; what is none of the policy is nothing to wait for."""
        asked = Asked(7, {"splitter.io/soak": "9m", RESTART: "x", "splitter.io/taken-over": "u", "team": "a"})
        assert judged(DONE, asked) == Judgement(f"splitter.io/soak, {RESTART} are not in force yet")
        assert judged(DONE, Asked(7, {"splitter.io/soak": "10m", "team": "a"})).done

    def test_that_cannot_be_read(self) -> None:
        """A new image comes all the same; a restart that was asked for does not, and it is said why."""
        invalid = saying(PolicyValid=("False", 'splitter.io/soak is "soon".'))
        assert judged(invalid, Asked(7, {"splitter.io/soak": "soon"})).done
        asked = Asked(7, {"splitter.io/soak": "soon", RESTART: "2026-01-02T00:00:00Z"})
        assert judged(invalid, asked) == Judgement(
            f'{RESTART} is not in force yet: splitter.io/soak is "soon".'
        )


class TestOnTheWay:
    def test_says_how_many_and_why(self) -> None:
        """As `kubectl rollout status` does."""
        rolling = replace(
            saying(Updated=("False", SOME)), state="Rolling", reason="Rolling", message="one by one"
        )
        assert judged(rolling, SEVEN) == Judgement(f"{SOME} (Rolling: one by one)")

    def test_without_a_count(self) -> None:
        """A sentence is not said twice."""
        text = DONE.message
        assert judged(saying(Updated=("False", text)), SEVEN) == Judgement(f"Balanced: {text}")

    def test_in_the_wrong_pool(self) -> None:
        """Rolled out, while on-demand covers for spot: that may last for hours."""
        covered = replace(DONE, state="Held", reason="SpotLost", message="3 are lost")
        assert judged(covered, SEVEN).done
        assert judged(covered, SEVEN, Until.STEADY) == Judgement(f"{ALL}; Held, SpotLost: 3 are lost")

    @pytest.mark.parametrize(("state", "refused"), [("Rolling", False), ("Refused", True)])
    def test_stalled(self, state: str, *, refused: bool) -> None:
        """Nothing goes on by itself; whether it is split at all makes a difference to its user."""
        stalled = replace(saying(Stalled=("True", "no"), Updated=("False", SOME)), state=state)
        assert judged(stalled, SEVEN) == Judgement(f"Balanced: {DONE.message}", failed=True, refused=refused)


class TestAnOlderController:
    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            ("Steady", {"done": True}),
            ("Rolling", {}),
            ("Refused", {"failed": True, "refused": True}),
        ],
    )
    def test_goes_by_its_state(self, state: str, expected: dict[str, bool]) -> None:
        """It knows no condition Updated; the generation counts all the same."""
        old = replace(DONE, conditions=DONE.conditions[:1], state=state)
        assert judged(old, SEVEN) == Judgement(f"Balanced: {DONE.message}", **expected)
        assert judged(old, Asked(8, {})).unseen
