"""How far a command is: on a terminal, and nowhere else."""

import io
import sys

import pytest

from splitter.plugin.cli.progress import progress


class Terminal(io.StringIO):
    """Standard error, as a person sees it."""

    def isatty(self) -> bool:
        """Say that somebody looks."""
        return True


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO, True), (Terminal, False)])
def test_is_not_shown_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], *, wanted: bool
) -> None:
    """Into a pipe or a file, or where it is not wanted; whoever tells is not told so."""
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    with progress(wanted=wanted) as tell:
        tell("looking at [bold]", None)
        tell("playing", 0.5)
    assert written.getvalue() == ""


def test_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done is text: no mark-up and no control character of a name reaches the terminal."""
    written = Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as tell:
        tell("playing [red]web[/red]\x1b]0;x\x07", 0.5)
    shown = written.getvalue()
    assert "[red]web[/red]" in shown
    assert "\x1b]0;x\x07" not in shown
    assert "50%" in shown
