"""What a soak prints, of hours made by hand; and what its command refuses."""

from dataclasses import replace

import pytest

from lab.chaos.judge import Terms, Verdict
from lab.soak.__main__ import main
from lab.soak.bill import Billed
from lab.soak.day import Deed, What
from lab.soak.flat import Finding, Gauge
from lab.soak.gauges import tasks_in
from lab.soak.report import line_of, table
from lab.soak.suite import Hour
from lab.splits import ON_DEMAND, SPOT

TERMS = Terms("chaos-web", least=5, most=6, surge=2, unavailable=0)
VERDICT = Verdict(TERMS, lowest=4, excused=1, highest=7, starting=2, faults=())
DEEDS = (Deed(1.0, What.NODE_GOES, node="0/a"), Deed(2.0, What.NODE_GOES, node="0/b"), Deed(3.0, What.DEPLOY))
HOUR = Hour(3, DEEDS, (VERDICT,), 7.0, (), 0)
GROWS = Finding(Gauge.MEMORY, second=80.0, last=95.5, an_hour=60.0, growth=16.0)
BILLED = [
    Billed("chaos-web", SPOT, 1000.0, 990.0),
    Billed("chaos-db", ON_DEMAND, 1000.0, 1030.0),
]
FLAT = Finding(Gauge.WATCHES, second=15.0, last=15.0, an_hour=0.0, growth=0.0)


def test_an_hour() -> None:
    """One line says what was promised, seen and done."""
    assert line_of(HOUR) == ("hour 3: kept; at rest after 7 s; least web 4/4; 1 x deploy, 2 x node goes")


def test_a_broken_hour() -> None:
    """It says what was broken, and what could not be done."""
    [first, fault] = line_of(replace(HOUR, faults=("floor: broken",), steady_s=None, undone=2)).splitlines()
    assert first.startswith("hour 3: BROKEN; never at rest")
    assert first.endswith("; 2 not done")
    assert fault == "  floor: broken"


def test_a_run() -> None:
    """Each gauge of each splitter has a row, and says whether it is flat."""
    findings = {("one", Gauge.MEMORY): GROWS, ("two", Gauge.WATCHES): FLAT}
    said = table(7, [HOUR, HOUR], findings, 3, BILLED)
    assert "seed 7: 2 hours, 2 kept every promise" in said
    assert "2 x deploy, 4 x node goes" in said
    assert "| one | resident memory, MiB | 80.0 | 95.5 | +60.0 | +16.0 | 6 | GROWS |" in said
    assert "| two | watches | 15.0 | 15.0 | +0.0 | +0.0 | 1 | flat |" in said
    assert "3 samples could not be taken" in said
    assert "| web | spot | 1000 | 990 | -1.00 % | near |" in said
    assert "| db | onDemand | 1000 | 1030 | +3.00 % | OFF |" in said


def test_with_restarts() -> None:
    """Where no process was sampled none is spoken of."""
    said = table(7, [HOUR], {}, 0, BILLED)
    assert "| splitter |" not in said
    assert "| web | spot | 1000 | 990 | -1.00 % | near |" in said


class TestScrape:
    def test_tasks(self) -> None:
        """The launcher's own metric is read."""
        assert tasks_in("# TYPE chaos_asyncio_tasks gauge\nchaos_asyncio_tasks 41.0\n") == 41

    def test_without(self) -> None:
        """A splitter that was started otherwise is no zero."""
        with pytest.raises(ValueError, match="no chaos_asyncio_tasks"):
            tasks_in("# TYPE splitter_leader gauge\nsplitter_leader 1.0\n")


class TestCommand:
    def test_lists(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The day can be read with nothing played."""
        assert main(["--list", "--minutes", "20"]) == 0
        said = capsys.readouterr().out
        assert [line for line in said.splitlines() if line.startswith("hour")] == [
            f"hour {number}:" for number in range(24)
        ]

    @pytest.mark.parametrize("minutes", ["1", "0", "-5", "nan", "inf", "soon"])
    def test_refuses_too_little(self, minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Of a minute nothing can be said."""
        with pytest.raises(SystemExit):
            main(["--minutes", minutes])
        assert "not a number of minutes, 3 or more" in capsys.readouterr().err

    def test_no_other_cluster(self, capsys: pytest.CaptureFixture[str]) -> None:
        """There is no option for a kubeconfig."""
        with pytest.raises(SystemExit):
            main(["--kubeconfig", "/etc/hosts"])
        assert "unrecognized arguments" in capsys.readouterr().err

    def test_a_trace_that_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What cannot be read is said, and nothing is started."""
        assert main(["--trace", "/dev/null"]) == 1
        assert "error: null has no changes" in capsys.readouterr().err
