"""The animated picture of a run."""

import inspect
import io
import xml.etree.ElementTree as ET
from pathlib import Path

from rich.console import Console

from lab.demo import journey
from lab.demo.recording import Frame, Line, Recording, draw
from lab.demo.screen import PLAIN_COLUMNS, Screen


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
