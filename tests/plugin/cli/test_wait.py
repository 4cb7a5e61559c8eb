"""`splitter wait`: what it prints, how it ends, and what becomes of its workload meanwhile."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
import typer

from splitter.exits import Exit
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from splitter.plugin.cli import wait as verb
from splitter.plugin.cli.target import Target
from splitter.plugin.core.waiting import Until

Raw = dict[str, Any]
WEB = Target("shop", "web", "Deployment")
INSTEAD = "wait with `kubectl rollout status deployment/web -n shop`"


def source(generation: int = 7, uid: str = "u", **labels: str) -> Raw:
    """Return the Deployment."""
    labels = labels or {"splitter.io/split": "enabled"}
    return {"metadata": {"uid": uid, "generation": generation, "labels": labels}}


def split(generation: int = 7, updated: str = "True", owner: str = "u", **status: object) -> Raw:
    """Return its Split."""
    conditions = [
        {"type": "Updated", "status": updated, "reason": "Why", "message": f"{generation} of 9"},
        {"type": "Stalled", "status": "False", "reason": "AsExpected", "message": ""},
    ]
    said = {"state": "Steady", "reason": "Balanced", "message": "all is well", "conditions": conditions}
    return {
        "metadata": {"ownerReferences": [{"uid": owner}]},
        "status": {"sourceGeneration": generation, **said, **status},
    }


STALLED = [{"type": "Stalled", "status": "True", "reason": "Why", "message": "no"}]


class Looks:
    """An API server: what each look finds, the last of them for ever; None is a 404."""

    def __init__(self, sources: list[object], splits: list[object]) -> None:
        self._answers = {"deployments": list(sources), "splits": list(splits)}

    async def get(self, path: ResourcePath) -> Raw:
        """Answer, or raise."""
        answers = self._answers[path.plural]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, ApiError):
            raise answer
        if answer is None:
            raise ApiError(404, "NotFound", "not there")
        assert isinstance(answer, dict)
        return answer


Ended = tuple[Exit, str, str]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Return how to wait, without a rest between looks: the code, standard output and standard error."""
    monkeypatch.setattr(verb, "_LOOK_S", 0)

    def run(sources: list[object], splits: list[object], timeout_s: float = math.inf) -> Ended:
        client: Any = Looks(sources, splits)
        code = asyncio.run(verb.wait_for(client, [WEB], Until.UPDATED, timeout_s))
        return code, *capsys.readouterr()

    return run


class TestEnds:
    def test_when_it_is_rolled_out(self, waited: Callable[..., Ended]) -> None:
        """What it waits for is printed as often as it changes."""
        looks: list[object] = [None, split(6), split(6), split(7, "False"), split()]
        code, said, complaint = waited([source()], looks)
        assert (code, complaint) == (Exit.DONE, "")
        assert said.splitlines() == [
            "waiting for deployment shop/web: splitter has not reported on it yet",
            "waiting for deployment shop/web: splitter has seen generation 6 of it, and not 7 yet",
            "waiting for deployment shop/web: 7 of 9 (Balanced: all is well)",
            "deployment shop/web is rolled out: 7 of 9",
        ]

    def test_at_the_generation_of_its_beginning(self, waited: Callable[..., Ended]) -> None:
        """A later change is another's: it is not waited for, and does no harm."""
        assert waited([source(), source(8)], [split(6), split(7)])[0] is Exit.DONE
        assert waited([source(), source(9)], [split(6), split(9)])[0] is Exit.DONE

    def test_when_the_time_is_over(self, waited: Callable[..., Ended]) -> None:
        """What it waited for last is said."""
        code, _, complaint = waited([source()], [split(7, "False")], 0)
        assert code is Exit.MENDABLE
        assert complaint == "timed out waiting for deployment shop/web: 7 of 9 (Balanced: all is well)\n"

    def test_when_nobody_has_looked(self, waited: Callable[..., Ended]) -> None:
        """Then it is asked whether splitter is running."""
        code, _, complaint = waited([source()], [split(6)], 0)
        assert code is Exit.MENDABLE
        assert complaint.endswith(
            "and not 7 yet. Is splitter running (kubectl -n splitter-system get pods)?\n"
        )

    def test_when_it_stalls(self, waited: Callable[..., Ended]) -> None:
        """At once, without the whole time."""
        looks: list[object] = [split(7, "False"), split(conditions=STALLED)]
        code, _, complaint = waited([source()], looks)
        assert code is Exit.MENDABLE
        assert complaint == "deployment shop/web cannot be rolled out: Balanced: all is well\n"

    def test_when_it_is_refused(self, waited: Callable[..., Ended]) -> None:
        """It rolls by itself: it is said what waits for that."""
        code, said, complaint = waited([source()], [split(state="Refused", conditions=STALLED)])
        assert (code, said) == (Exit.NOT_SPLIT, "")
        assert complaint == (
            f"deployment shop/web is labelled and not split; {INSTEAD}. Balanced: all is well\n"
        )


class TestItsWorkload:
    def test_is_not_there(self, waited: Callable[..., Ended]) -> None:
        """Nothing is waited for."""
        assert waited([None], [None]) == (Exit.NOT_SPLIT, "", "deployment shop/web is not there\n")

    def test_is_not_split(self, waited: Callable[..., Ended]) -> None:
        """Nor where the label is missing."""
        code, said, complaint = waited([source(app="web")], [None])
        assert (code, said) == (Exit.NOT_SPLIT, "")
        assert complaint == (
            f"deployment shop/web is not split: it has no label splitter.io/split=enabled; {INSTEAD}\n"
        )

    def test_is_deleted(self, waited: Callable[..., Ended]) -> None:
        """Or made anew under its name: another one."""
        for later in (None, source(1, uid="another")):
            code, _, complaint = waited([source(), source(), later], [split(6), split(6), split()])
            assert code is Exit.MENDABLE
            assert complaint == "deployment shop/web was deleted while it was waited for\n"

    def test_loses_its_label(self, waited: Callable[..., Ended]) -> None:
        """It is given back: its own roll is another wait."""
        code, _, complaint = waited([source(), source(), source(app="web")], [split(6)])
        assert code is Exit.NOT_SPLIT
        assert INSTEAD in complaint

    def test_has_the_split_of_another(self, waited: Callable[..., Ended]) -> None:
        """A Split that this very workload does not own says nothing of it."""
        code, _, complaint = waited([source()], [split(owner="another")], 0)
        assert code is Exit.MENDABLE
        assert "splitter has not reported on it yet" in complaint

    def test_has_signs_in_its_status(self, waited: Callable[..., Ended]) -> None:
        """Whoever may edit a Split writes no lines on a terminal."""
        looks: list[object] = [split(7, "False", message="calm\x1b[2J\nall is done"), split()]
        said = waited([source()], looks)[1]
        assert "calm\\x1b[2J\\nall is done" in said


class TestTheServer:
    def test_is_away_for_a_while(self, waited: Callable[..., Ended]) -> None:
        """It is said, and the wait goes on; a Split that fails the same."""
        away = ApiError(0, "NoAnswer", "connection refused")
        code, said, _ = waited([source(), away, source()], [ApiError(503, "Busy", "later"), split()])
        assert code is Exit.DONE
        assert "no answer from the API server (connection refused); trying again" in said
        assert "no answer from the API server (later); trying again" in said

    @pytest.mark.parametrize("status", [401, 403])
    def test_lets_it_read_nothing(self, waited: Callable[..., Ended], status: int) -> None:
        """No time mends that."""
        refused = ApiError(status, "Forbidden", "splits.splitter.io is forbidden")
        with pytest.raises(ApiError, match="is forbidden"):
            waited([source()], [refused])


@pytest.mark.parametrize(
    ("written", "expected"), [("90s", 90), ("1h30m", 5400), ("0s", math.inf), ("0", math.inf)]
)
def test_a_time(written: str, expected: float) -> None:
    """As kubectl's, and 0 is without end there, too."""
    assert verb.seconds_of(written) == expected


@pytest.mark.parametrize("written", ["600", "soon", "-1s", "1.5m"])
def test_what_is_no_time(written: str) -> None:
    """A number without a unit is a guess."""
    with pytest.raises(typer.BadParameter, match="write a duration such as 90s"):
        verb.seconds_of(written)
