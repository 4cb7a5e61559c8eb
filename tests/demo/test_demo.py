"""The demo judges from what was recorded, compares field by field, and can be read without a terminal."""

import inspect
import io
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from splitter.cli import app
from splitter.core.split_status.usage import Amount, Usage, Use
from splitter.demo import DemoOptions, journey
from splitter.demo.money import has_saved, would_save
from splitter.demo.promises import Cell, Expected, Judged, ReplicasWritten, Step, judge
from splitter.demo.recording import Frame, Line, Recording, draw
from splitter.demo.restored import Portrait, differences, traces, uncollected
from splitter.demo.screen import PLAIN_COLUMNS, Screen
from splitter.demo.watching import ScaleLog
from splitter.demo.workload import Workload, policy_of, read_workload
from splitter.sandbox import Between, Instant, Steps, Timeline
from splitter.sandbox.asked import Asked
from splitter.settings.loading import load_settings

JsonObject = dict[str, Any]


def at(second: float) -> Instant:
    """Return a moment, in seconds since the beginning."""
    return Instant(second, second)


def workload(*, replicas: int = 4, surge: str = "1", unavailable: str = "0") -> Workload:
    """Build a workload called web."""
    return Workload("web", replicas, surge, unavailable, {"app": "web"})


def timeline(available: Mapping[float, int], total: Mapping[float, int] | None = None) -> Timeline:
    """Build a timeline from the counts that hold from a second on."""

    def steps(counts: Mapping[float, int]) -> Steps:
        return Steps(tuple(counts), tuple(counts.values()))

    counted = steps(total or available)
    return Timeline(Between(at(0), at(100)), steps(available), counted, counted)


def step(expected: Expected, **changed: Any) -> Step:  # noqa: ANN401 - fields of Step
    """Build a step from second 10 to second 20."""
    return Step("a step", at(10), at(20), {"web": expected}, **changed)


def asked(counts: Mapping[float, int]) -> Asked:
    """Make what the ReplicaSets are asked for from the counts that hold from a second on."""
    result = Asked()
    for second, replicas in counts.items():
        result.see(
            at(second), {"metadata": {"name": "web-spot-1"}, "spec": {"replicas": replicas}}, deleted=False
        )
    return result


def judged(
    of: Step,
    counts: Timeline,
    *writes: ReplicasWritten,
    web: Workload | None = None,
    replicas: Mapping[float, int] | None = None,
) -> Judged:
    """Judge a step of `web` by its counts; 4 replicas are asked for all the time, unless said."""
    return judge(of, [web or workload()], {"web": counts}, writes, asked(replicas or {0: 4}))


def cell(result: Judged) -> Cell:
    """Return the only cell of a verdict."""
    return result.cells["web"]


class TestWorkload:
    """N, S, U and F are what Kubernetes makes of the strategy."""

    @pytest.mark.parametrize(
        ("surge", "unavailable", "replicas", "expected"),
        [
            ("25%", "25%", 10, (3, 2, 10)),
            ("2", "0", 8, (2, 0, 8)),
            ("0", "1", 4, (0, 1, 3)),
            ("0%", "25%", 3, (0, 1, 2)),  # both rounded to 0: Kubernetes takes one away
            ("1", "1", 0, (1, 1, 0)),
        ],
    )
    def test_counts(
        self, surge: str, unavailable: str, replicas: int, expected: tuple[int, int, int]
    ) -> None:
        """Shares are rounded up for the surge, down for the unavailable; F is N where surge is allowed."""
        result = workload(surge=surge, unavailable=unavailable)
        assert (result.surge(replicas), result.unavailable(replicas), result.floor(replicas)) == expected

    def test_is_read_off_a_deployment(self) -> None:
        """What the manifest leaves out has Kubernetes' default."""
        raw = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
        assert read_workload(raw) == Workload("web", 1, "25%", "25%", {"app": "web"})

    def test_policy_stands_in_a_comment(self) -> None:
        """The manifest itself says how the demo annotates it."""
        text = "# Policy in the demo: splitter.io/on-demand-base=2 splitter.io/spot-percent=80"
        assert policy_of(f"# The front page.\n{text}\nkind: Deployment\n") == {
            "splitter.io/on-demand-base": "2",
            "splitter.io/spot-percent": "80",
        }
        assert policy_of("# Policy in the demo: none, all of it on spot\n") == {}
        assert policy_of("kind: Deployment\n") == {}


class TestJudge:
    """Promises are judged from the recorded pods, within the step only."""

    def test_kept(self) -> None:
        """At the floor and at the bound is kept; a pod that came before the old one went is not asked for."""
        result = judged(
            step(Expected(4, 4)), timeline({0: 4}, {0: 4, 12: 6, 15: 4}), replicas={0: 4, 12: 5, 15: 4}
        )
        assert cell(result) == Cell(lowest=4, floor=4, highest=6, asked=5, bound=5)
        assert result.kept
        assert result.took_s == 10

    def test_a_dip_breaks_the_floor(self) -> None:
        """One replica less for a moment is enough."""
        result = judged(step(Expected(4, 4)), timeline({0: 4, 12: 3, 12.1: 4}))
        assert not cell(result).floor_kept
        assert not result.kept

    def test_what_happened_outside_the_step_is_not_its_fault(self) -> None:
        """A dip before or after is judged elsewhere."""
        result = judged(step(Expected(4, 4)), timeline({0: 0, 5: 4, 21: 0}))
        assert result.kept

    def test_too_many_pods_break_the_bound(self) -> None:
        """N + S is the most."""
        result = judged(step(Expected(4, 4)), timeline({0: 4}), replicas={0: 4, 12: 6})
        assert cell(result).floor_kept
        assert not cell(result).bound_kept
        assert not result.kept

    def test_a_broken_promise_is_told_with_its_numbers(self) -> None:
        """How far off it was, and for how long."""
        counts = timeline({0: 4, 12: 3, 12.5: 4}, {0: 4, 12: 7, 13: 4})
        result = judged(step(Expected(4, 4)), counts, replicas={0: 4, 12: 7, 13: 4})
        assert result.faults() == [
            "a step: web had 3 available, the floor is 4; below it for 0.50 s",
            "a step: web was asked for 7 pods, the bound is 5",
        ]

    def test_a_scale_up_has_the_old_floor_and_the_new_bound(self) -> None:
        """The new replicas cannot be there at once."""
        result = judged(
            step(Expected(4, 8)), timeline({0: 4, 15: 8}, {0: 4, 11: 8}), web=workload(surge="25%")
        )
        assert (cell(result).floor, cell(result).bound) == (4, 10)

    @pytest.mark.parametrize(("surge", "bound"), [("0", 5), ("1", 5), ("2", 6)])
    def test_the_probe_is_one_more_where_there_is_no_surge(self, surge: str, bound: int) -> None:
        """A workload that may not surge is allowed one replica that asks whether spot is back."""
        result = judged(
            step(Expected(4, 4), capacity_probe=True), timeline({0: 4}), web=workload(surge=surge)
        )
        assert cell(result).bound == bound

    def test_the_doomed_do_not_count_against_the_bound(self) -> None:
        """In an outage their replacements run beside them."""
        result = judged(step(Expected(4, 4, doomed=3), noticed=at(11)), timeline({0: 4}))
        assert cell(result).bound == 8

    def test_nothing_is_promised_when_the_notice_is_too_short(self) -> None:
        """Replicas that are taken without a notice are missing until others have started."""
        short = step(Expected(4, 4, doomed=3), noticed=at(11), floor_is_promised=False)
        result = judged(short, timeline({0: 4, 12: 1, 15: 4}))
        assert cell(result).floor is None
        assert result.kept

    def test_the_write_is_timed_from_the_taint(self) -> None:
        """The first raise of the on-demand twin counts, and the one that asks for all replicas."""
        writes = (
            ReplicasWritten(at(10.5), "web-on-demand", 0, 1),  # before the notice
            ReplicasWritten(at(11.05), "web-spot", 3, 4),
            ReplicasWritten(at(11.1), "web-on-demand", 1, 2),
            ReplicasWritten(at(11.25), "web-on-demand", 2, 4),
            ReplicasWritten(at(15), "web-on-demand", 4, 1),
        )
        outage = step(Expected(4, 4, doomed=3), noticed=at(11))
        result = judged(outage, timeline({0: 4}), *writes)
        assert cell(result).write_s == pytest.approx(0.1)
        assert cell(result).cover_s == pytest.approx(0.25)

    def test_no_write_is_no_number(self) -> None:
        """A workload without doomed replicas, or one that was not covered, has none."""
        unhurt = judged(step(Expected(4, 4), noticed=at(11)), timeline({0: 4}))
        forgotten = judged(step(Expected(4, 4, doomed=2), noticed=at(11)), timeline({0: 4}))
        assert cell(unhurt).write_s is None
        assert cell(forgotten).write_s is None

    @pytest.mark.parametrize("changed", [{"stopped": True}, {"restored": {"web": False}}])
    def test_a_step_that_ends_badly_is_a_broken_promise(self, changed: JsonObject) -> None:
        """One that did not settle in time, or that did not restore."""
        result = judged(step(Expected(4, 4), **changed), timeline({0: 4}))
        assert not result.kept


def deployment(**metadata: JsonObject) -> JsonObject:
    """Build a raw Deployment called web."""
    containers = [{"name": "web", "image": "web:1"}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}, **metadata},
        "spec": {"replicas": 4, "template": {"spec": {"containers": containers}}},
    }


class TestRestored:
    """A Deployment that is given back is compared field by field."""

    def test_the_same_is_restored(self) -> None:
        """The revision that Kubernetes counts is not the user's."""
        before = Portrait.of(deployment(annotations={"deployment.kubernetes.io/revision": "1", "team": "a"}))
        after = Portrait.of(deployment(annotations={"deployment.kubernetes.io/revision": "2", "team": "a"}))
        assert differences(before, after) == []

    def test_what_is_left_behind_is_named(self) -> None:
        """Each field with what it is and was."""
        raw = deployment(annotations={"splitter.io/taken-over": "x"})
        raw["spec"]["paused"] = True
        assert differences(Portrait.of(deployment()), Portrait.of(raw)) == [
            "web: spec.paused is True, was absent",
            "web: annotations.splitter.io/taken-over is 'x', was absent",
        ]

    def test_what_the_user_changed_is_expected(self) -> None:
        """A count and an image that were set meanwhile stay."""
        raw = deployment()
        raw["spec"]["replicas"] = 9
        raw["spec"]["template"]["spec"]["containers"] = [{"name": "web", "image": "web:2"}]
        expected = Portrait.of(deployment()).scaled(9).with_image("web:2")
        assert differences(expected, Portrait.of(raw)) == []
        assert differences(Portrait.of(deployment()), Portrait.of(raw)) == [
            "web: spec.replicas is 9, was 4",
            "web: spec.template.spec.containers[0].image is 'web:2', was 'web:1'",
        ]

    def test_traces_elsewhere_are_named(self) -> None:
        """Labels and marks of splitter's, and a Split; not the user's own annotations."""
        left = [
            {"kind": "Split", "metadata": {"name": "web"}},
            {"kind": "Pod", "metadata": {"name": "web-1", "labels": {"splitter.io/pool": "spot"}}},
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "web-a", "annotations": {"splitter.io/taken-over": "x"}},
            },
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "web-b", "annotations": {"splitter.io/spot-max": "3"}},
            },
            {"kind": "Deployment", "metadata": {"name": "web", "annotations": {"splitter.io/spot-max": "3"}}},
        ]
        assert traces("web", left) == [
            "web: Split web is still there",
            "web: Pod web-1 still carries splitter.io/pool",
            "web: ReplicaSet web-a still carries splitter.io/taken-over",
        ]

    def test_a_gone_twins_replica_set_is_kubernetes_to_collect(self) -> None:
        """It is waited for; the user's own, and what another workload's twin has, are not."""

        def owned(name: str, owner: str) -> JsonObject:
            return {
                "kind": "ReplicaSet",
                "metadata": {"name": name, "ownerReferences": [{"kind": "Deployment", "name": owner}]},
            }

        left = [
            owned("web-a", "web"),
            owned("web-spot-b", "web-spot"),
            owned("web-api-spot-c", "web-api-spot"),
        ]
        assert uncollected("web", left) == ["web-spot-b"]


class TestScaleLog:
    """Writes are seen on the Deployments themselves."""

    def test_a_change_is_a_write(self) -> None:
        """The first sight is none, nor is a change of something else, nor a deletion."""
        log = ScaleLog()
        for second, replicas, deleted in (
            (1, 3, False),
            (2, 3, False),
            (3, 5, False),
            (4, 5, True),
            (5, 1, False),
        ):
            raw = deployment()
            raw["spec"]["replicas"] = replicas
            log.see(at(second), raw, deleted)
        assert log.writes() == (ReplicasWritten(at(3), "web", 3, 5),)


class TestOptions:
    """What is shortened is said, and is a setting that splitter knows."""

    def test_settings_are_settings(self) -> None:
        """`splitter run` starts with them."""
        settings = load_settings(environment=DemoOptions(soak_s=7).settings)
        assert (settings.soak_s, settings.http_port, settings.metrics_port) == (7, 0, 0)

    @pytest.mark.parametrize(("notice_s", "useful"), [(0, False), (5, False), (10, True)])
    def test_a_short_notice_promises_nothing(self, notice_s: float, useful: bool) -> None:
        """Pods of the sandbox take 2 to 4 s to become ready."""
        assert DemoOptions(notice_s=notice_s).notice_is_useful is useful


def printed(judged: Judged) -> str:
    """Return the verdict as it is printed without a terminal."""
    output = io.StringIO()
    with Screen(Console(file=output, width=PLAIN_COLUMNS, force_terminal=False, color_system=None)) as screen:
        screen.show_table(lambda: [("web", "4", "1/1", "3/3", "4", "Steady", "Balanced")])
        screen.heading("Outage")
        screen.print_table()
        screen.decision("web", "SpotInterrupted", "scale on-demand 1 -> 4 (+3): " + "a long sentence " * 9)
        screen.verdict([judged], tuple(judged.cells))
    return output.getvalue()


class TestScreen:
    """Without a terminal: plain lines of 80 columns."""

    def test_is_plain_and_narrow(self) -> None:
        """No control character, no line that wraps, five workloads side by side."""
        cells = {
            name: Cell(10, 10, 19, 19, 19, 0.0567, 0.1234)
            for name in ("cart", "catalog", "payments", "search", "web")
        }
        text = printed(Judged("outage", 14.2, cells, noticed=True, restored=dict.fromkeys(cells, True)))
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= PLAIN_COLUMNS
        assert "10/10" in text
        assert "57" in text
        assert "123" in text
        assert "BROKEN" not in text

    def test_a_broken_promise_stands_out_without_colours(self) -> None:
        """The number is marked and the word is there."""
        text = printed(Judged("outage", 14.2, {"web": Cell(9, 10, 12, 12, 13)}))
        assert "!9/10" in text
        assert "BROKEN" in text
        assert "12/13" in text

    def test_lines_of_a_log_stay_lines(self) -> None:
        """A fault that quotes a log can be read."""
        output = io.StringIO()
        with Screen(Console(file=output, width=PLAIN_COLUMNS)) as screen:
            screen.bad("it ended with code 1:\nTraceback\n  NameError")
        assert [line.strip() for line in output.getvalue().splitlines()][1:] == ["Traceback", "NameError"]

    def test_nothing_promised_is_a_dash(self) -> None:
        """A floor that is not promised is not shown as kept to."""
        assert "1/-" in printed(Judged("outage", 14.2, {"web": Cell(1, None, 12, 12, 13)}))


class TestCommandLine:
    """What cannot be done is refused before anything starts."""

    def test_a_cluster_of_the_users_is_refused(self) -> None:
        """The demo takes nodes away."""
        answer = CliRunner().invoke(app, ["demo", "--kubeconfig", "mine"])
        assert answer.exit_code == 2
        assert "sandbox of its own" in answer.output


class TestMoney:
    def test_what_the_labels_would_save(self) -> None:
        """4 of 10 stay on on-demand by the policy, one of one goes to spot by default."""
        policies = {"web": {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "80"}}
        assert would_save({"web": 10, "api": 1}, policies) == (
            "the labels would put 7 of 11 replicas on spot, and save 45%"
            " (a replica on spot taken to cost 0.3 of one on on-demand)"
        )

    def test_what_was_saved(self) -> None:
        """The sum of all Splits, and those that tell nothing left out."""
        noon = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
        held = {Use.SPOT: Amount(6), Use.ON_DEMAND: Amount(5), Use.DESIRED: Amount(10)}
        usage = Usage(noon, noon, {}, held).to_json()
        splits: list[JsonObject] = [{"status": {"usage": usage}}, {}, {"status": {"usage": 7}}]
        reported = has_saved(splits, noon + timedelta(minutes=3))
        assert reported.startswith("so far 55% of the replicas' time was on spot and 32% was saved")

    def test_nothing_was_counted(self) -> None:
        """No share of nothing."""
        assert has_saved([], datetime.now(UTC)).startswith("nothing was counted")


def frames_of(picture: str) -> list[Frame]:
    """Return the frames of a picture that `draw` has made: a line each 17 pixels, the first at 30."""
    svg, height = "{http://www.w3.org/2000/svg}", 17
    frames = []
    for group in ET.fromstring(picture).iter(f"{svg}g"):  # noqa: S314 - the project's own file
        rows = {int(text.get("y", "0")): text for text in group.iter(f"{svg}text")}
        ys = range(30, max(rows, default=30) + 1, height)
        lines = (rows.get(y) for y in ys)
        frames.append(
            tuple(
                Line("t", "") if one is None else Line(one.get("class", "t"), one.text or "") for one in lines
            )
        )
    return frames


class TestRecording:
    """A picture of a run, drawn by the demo itself."""

    PICTURE = Path(__file__).resolve().parents[2] / "docs" / "assets" / "demo.svg"

    def test_a_frame_is_what_the_screen_showed(self) -> None:
        """Heading, what was said, the table; of many decisions the first and how many there were."""
        recording = Recording()
        console = Console(file=io.StringIO(), width=PLAIN_COLUMNS)
        with Screen(console, recording) as screen:
            screen.show_table(lambda: [("web", "4", "1/1", "3/3", "4", "Steady", "Balanced")])
            screen.heading("Take over")
            screen.command("kubectl label <web>")
            for _ in range(5):
                screen.decision("web", "TakenOver", "taking over")
            screen.print_table()
            screen.heading("Verdict")
            screen.good("kept")
            screen.end_recording()
        first, last = recording.frames
        assert first[0] == Line("h", "== Take over")
        assert [line.kind for line in first].count("d") == 4
        assert "and 2 decisions more" in first[6].text
        assert first[-1].text.split() == ["web", "4", "1/1", "3/3", "4", "Steady", "Balanced"]
        assert [line.text.split()[-1] for line in last if line.text] == ["Verdict", "kept"]
        assert frames_of(draw(recording.frames)) == [first, last]

    def test_the_committed_one_is_the_projects_own(self) -> None:
        """`draw` makes these bytes of its frames; every step is shown, and every promise was kept."""
        picture = self.PICTURE.read_text(encoding="utf-8")
        frames = frames_of(picture)
        assert draw(frames) == picture
        walked = inspect.getsource(journey.Journey).count("with self._step(")
        assert len(frames) == walked + 1
        assert all(frame[0].kind == "h" for frame in frames)
        assert frames[-1][0].text.startswith("== Verdict")
        assert f"every promise was kept, in {walked} steps" in frames[-1][-1].text
        assert not any(line.kind == "b" for frame in frames for line in frame)
        assert len(picture) < 40_000
