"""`splitter simulate`: what it takes, what it prints, what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitter.plugin.cli import app

RUN = CliRunner()
OUTAGE = ("--outage", "every=2h,last=10m,nodes=8,days=1")
TRACES = Path(__file__).parents[1] / "simulate" / "traces"


class TestTheCommand:
    """One trace, one policy or several, a table or JSON."""

    def test_prints_a_table(self) -> None:
        """Without any policy, the defaults."""
        invoked = RUN.invoke(app, ["simulate", *OUTAGE, "--replicas", "8"])
        assert invoked.exit_code == 0
        assert "defaults   98.333 %  0.459" in invoked.output

    def test_compares_policies(self) -> None:
        """--annotation holds for all; each policy adds its own."""
        invoked = RUN.invoke(
            app,
            [
                *("simulate", *OUTAGE, "--replicas", "8", "--annotation", "soak=5m", "-o", "json"),
                *("--policy", "plain", "--policy", "warm:on-demand-base=2,splitter.io/spot-percent=80"),
            ],
        )
        plain, warm = json.loads(invoked.stdout)["policies"]
        assert plain["annotations"] == {"splitter.io/soak": "5m"}
        assert warm["annotations"] == {
            "splitter.io/soak": "5m",
            "splitter.io/on-demand-base": "2",
            "splitter.io/spot-percent": "80",
        }
        assert warm["leastReadyReplicas"] == 3
        assert warm["availability"] > plain["availability"]
        assert warm["cost"] > plain["cost"]

    @pytest.mark.parametrize("trace", ["bamboo-p3", "bamboo-g4dn"])
    def test_draws_a_picture(self, trace: str, tmp_path: Path) -> None:
        """--picture writes an SVG."""
        picture = tmp_path / "picture.svg"
        reported = ["--trace", str(TRACES / f"{trace}.csv"), "--replicas", "16", "--picture", str(picture)]
        assert RUN.invoke(app, ["simulate", *reported]).exit_code == 0
        assert picture.read_text(encoding="utf-8").startswith("<svg")

    def test_warns_of_what_means_nothing(self) -> None:
        """An unknown annotation is ignored, and said to be, on standard error."""
        invoked = RUN.invoke(
            app, ["simulate", *OUTAGE, "--replicas", "8", "--annotation", "spot-percentage=8"]
        )
        assert invoked.exit_code == 0
        assert "Did you mean splitter.io/spot-percent?" in invoked.stderr

    @pytest.mark.parametrize(
        ("reported", "sentence"),
        [
            (["--annotation", "spot-percent=80%"], 'must be a whole number 0..100. Write "80".\n'),
            (["--annotation", "spot-percent"], '"spot-percent" is no annotation; write KEY=VALUE'),
            (["--policy", "a:soak=1"], "splitter.io/soak is"),
            (["--policy", "a:soak=1m", "--policy", "b:soak=1x"], "policy b: InvalidAnnotation: "),
            (["--policy", "a", "--policy", "a"], "policy a is there twice"),
            (["--policy", "soak=5m"], 'policy "soak=5m" has no name'),
            (["--policy", "a:soak=5m,soak=6m"], "policy a: splitter.io/soak is there twice"),
            (["--annotation", "on-demand-max=1", "--annotation", "spot-max=1"], "hold fewer than the 8 rep"),
            (["--picture", "/nowhere/picture.svg"], "No such file or directory"),
        ],
    )
    def test_refuses_in_one_sentence(self, reported: list[str], sentence: str) -> None:
        """Exit code 1, the reason on standard error, no traceback."""
        invoked = RUN.invoke(app, ["simulate", *OUTAGE, "--replicas", "8", *reported])
        assert invoked.exit_code == 1
        assert invoked.stderr.startswith("splitter simulate: ")
        assert invoked.stderr.count("\n") == 1
        assert sentence in invoked.stderr

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("0,add,a\n1,jump,a\n", "mine, line 2: '1,jump,a' is no change"),
            ('{"metadata": {"gap_seconds": 60}, "data": [1, null]}', "mine, field data[1] is None"),
            ("0,add,a", "nothing to simulate"),
        ],
    )
    def test_refuses_a_trace_with_where_it_is_wrong(self, text: str, sentence: str, tmp_path: Path) -> None:
        """The line, or the field, and what it must be."""
        trace = tmp_path / "mine.trace"
        trace.write_text(text, encoding="utf-8")
        invoked = RUN.invoke(app, ["simulate", "--trace", str(trace), "--replicas", "8"])
        assert invoked.exit_code == 1
        assert sentence in invoked.stderr

    @pytest.mark.parametrize(
        "reported",
        [
            ["--replicas", "8"],
            [*OUTAGE],
            [*OUTAGE, "--replicas", "0"],
            [*OUTAGE, "--replicas", "8", "--trace", "x"],
            [*OUTAGE, "--replicas", "8", "--spot-price", "nan"],
            [*OUTAGE, "--replicas", "8", "--notice", "inf"],
        ],
    )
    def test_is_used_wrongly(self, reported: list[str]) -> None:
        """Exactly one trace, at least one replica, numbers that are numbers: else exit code 2."""
        assert RUN.invoke(app, ["simulate", *reported]).exit_code == 2
