"""The page of `python -m bench.scale`: fits, goals, and what stands where a figure is missing."""

import pytest

from bench.scale.core import limit
from bench.scale.tables import growth, lines, markdown, memory, of_n_log_n
from lab.bench.crowd import must_be_loopback

MACHINE = {"cpu": "some CPU", "cpus": 2, "python": "3.11", "date": "2026-01-05"}
USED = {"machine_percent": 97, "load_average": 4.2, "limit": "the machine"}


class TestGrowth:
    """The exponent of n^k."""

    @pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
    def test_is_that_of_a_power(self, power: float) -> None:
        """A figure that is a power of the size has that power, whatever its factor."""
        assert growth({size: 3.0 * size**power for size in (100, 300, 1000)}) == power

    def test_has_none_for_one_size(self) -> None:
        """Through one point goes any line."""
        assert growth({100: 1.0}) is None

    def test_leaves_out_what_has_no_logarithm(self) -> None:
        """No writes while idle grow in no way."""
        assert growth({100: 0.0, 300: 0.0, 1000: 0.0}) is None

    def test_of_n_log_n(self) -> None:
        """Between 100 and 1,000 it is a little more than linear."""
        assert of_n_log_n([100, 300, 1000]) == pytest.approx(1.17, abs=0.02)


class TestMemory:
    """Megabytes by a line."""

    def test_is_split_into_a_base_and_pods(self) -> None:
        """90 MB and 2 KB a pod: 92 MB at 100 workloads, 110 MB at 1,000."""
        sizes = {100: 92.0, 300: 96.0, 1000: 110.0}
        result = memory({size: {"memory_of_a_new_process": {"resident": mb}} for size, mb in sizes.items()})
        assert result == (90.0, 2.0)


class TestLines:
    """One row a figure."""

    @staticmethod
    def _row(title: str, figures: dict[str, object]) -> tuple[str, ...]:
        return next(row for row in lines({1000: figures}) if row[0] == title)

    def test_shows_a_goal_that_is_met(self) -> None:
        """The ratio to the floor of the same run is what is judged."""
        figures = {"on_boarding": {"seconds": 130.0, **USED}, "roll_floor": {"seconds": 100.0}}
        row = self._row("(a) all taken over at once", figures)
        assert row[1:] == ("130 s", "100 s", "1.30", "<= 1.3 x floor", "yes", "-", "the machine", "97 %, 4.2")

    def test_shows_a_goal_that_is_missed(self) -> None:
        """A figure over its goal says so, in bold."""
        row = self._row("(b) notice on one node, p99", {"one_node": {"p99_ms": 251.0}})
        assert row[5] == "**no**"

    def test_never_meets_a_ratio_without_a_floor(self) -> None:
        """Without the floor there is nothing to compare with."""
        assert self._row("(f) new image of all", {"roll": {"seconds": 1.0}})[5] == "**no**"

    def test_shows_a_failure_as_missing(self) -> None:
        """What did not end in time has no figure, and no goal is called met."""
        row = self._row("(f) new image of all", {"roll": {"failed": "waited 900 s"}})
        assert set(row[1:]) == {"-"}

    def test_judges_memory_by_the_number_of_pods(self) -> None:
        """120 MB and 2 KB for each of 10,000 pods are 140 MB."""
        title = "(j) resident after a start"
        for resident, met in ((140.0, "yes"), (141.0, "**no**")):
            assert self._row(title, {"memory_of_a_new_process": {"resident": resident}})[5] == met


class TestMarkdown:
    """The page."""

    def test_names_the_command_and_all_sizes(self) -> None:
        """A reader can make the figures anew."""
        page = markdown({100: {}, 1000: {}}, MACHINE, "make scale")
        assert "`make scale`" in page
        assert "| measure | 100 | 1,000 | floor |" in page

    def test_says_what_was_not_measured(self) -> None:
        """A row without any figure is named below the table instead, not left out in silence."""
        page = markdown({1000: {"roll": {"seconds": 1.0}}}, MACHINE, "make scale", still=True)
        assert "a still life" in page
        assert "| (f) new image of all |" in page
        assert "| (e) return |" not in page
        assert "(e) return" in page.partition("Not measured in this run: ")[2]


class TestLimit:
    """Who set the pace."""

    @pytest.mark.parametrize(
        ("core", "machine", "said"),
        [(95, 99, "splitter's core"), (30, 99, "the machine"), (5, 40, "waiting")],
    )
    def test_is_whoever_had_no_time_left(self, core: float, machine: float, said: str) -> None:
        """A full core of splitter's own comes first: with it nothing else could be faster."""
        assert limit(core, machine) == said


class TestMustBeLoopback:
    """No benchmark runs against a real cluster."""

    @pytest.mark.parametrize("url", ["https://127.0.0.1:6443", "https://localhost:1", "https://[::1]:6443"])
    def test_takes_this_machine(self, url: str) -> None:
        """A sandbox serves on loopback."""
        must_be_loopback(url)

    @pytest.mark.parametrize(
        "url", ["https://10.0.0.1:6443", "https://cluster.example", "https://0.0.0.0:1", ""]
    )
    def test_refuses_everything_else(self, url: str) -> None:
        """It would lose nodes, and workloads."""
        with pytest.raises(AssertionError, match="loopback"):
            must_be_loopback(url)
