"""What a run shows on a terminal, and without one."""

import io

from rich.console import Console

from lab.demo.promises import Cell, Judged
from lab.demo.screen import PLAIN_COLUMNS, Screen


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
