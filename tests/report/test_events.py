"""Events: what is said about a source, and that it is not said in each reconcile."""

from datetime import timedelta

import pytest

from builders import KEY, NOW, source
from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.report.events import DONE_S, Said, event

SCALED = Note(Reason.SCALED, "scale web-spot 3 -> 5")
REFUSED = Note(Reason.STRATEGY_RECREATE, "strategy Recreate is refused", warning=True)

# How a long sentence ends, and what it is about.
WORDS = (("a", ""), ("b", ""), ("c", "y" * 1_000_000))


class TestRepeats:
    def test_first_time(self) -> None:
        """What was never said is said, in order."""
        assert Said().due(KEY, [SCALED, REFUSED], NOW) == [SCALED, REFUSED]

    @pytest.mark.parametrize(("after_s", "again"), [(0, False), (1, False), (1799, False), (1800, True)])
    def test_what_stands(self, after_s: float, again: bool) -> None:
        """It is said again when its Event is no longer kept."""
        said = Said()
        said.due(KEY, [REFUSED], NOW)
        due = said.due(KEY, [REFUSED], NOW + timedelta(seconds=after_s))
        assert due == ([REFUSED] if again else [])

    @pytest.mark.parametrize(("after_s", "again"), [(0, False), (59, False), (60, True)])
    def test_what_was_done(self, after_s: float, again: bool) -> None:
        """A second loss with the numbers of the first is news, a second reconcile of the same one is not."""
        said = Said()
        said.due(KEY, [SCALED], NOW, DONE_S)
        due = said.due(KEY, [SCALED], NOW + timedelta(seconds=after_s), DONE_S)
        assert due == ([SCALED] if again else [])

    def test_the_same_news(self) -> None:
        """What it is about says whether it is news, where it says that; not the numbers in the sentence."""
        one, two, other = (
            Note(Reason.IMAGE_PULL_FAILED, message, warning=True, about=about)
            for message, about in (("1 of 3", "web:1"), ("2 of 3", "web:1"), ("2 of 3", "web:2"))
        )
        said = Said()
        assert said.due(KEY, [one], NOW) == [one]
        assert said.due(KEY, [two, other], NOW) == [other]

    def test_counted_from_when_it_was_said(self) -> None:
        """A reconcile in which it was not said does not put it off any further."""
        said = Said()
        said.due(KEY, [REFUSED], NOW)
        said.due(KEY, [REFUSED], NOW + timedelta(seconds=900))
        assert said.due(KEY, [REFUSED], NOW + timedelta(seconds=1801)) == [REFUSED]

    def test_twice_in_one_pass(self) -> None:
        """Said twice in one reconcile, it is said once."""
        assert Said().due(KEY, [SCALED, SCALED], NOW) == [SCALED]

    @pytest.mark.parametrize(
        ("key", "note"),
        [
            (Key("Deployment", "shop", "cart"), SCALED),
            (Key("Deployment", "other", "web"), SCALED),
            (KEY, Note(Reason.SCALED, "scale web-spot 5 -> 6")),
            (KEY, Note(Reason.RETURNING, SCALED.message)),
        ],
    )
    def test_something_else(self, key: Key, note: Note) -> None:
        """Another workload, sentence or reason is something else."""
        said = Said()
        said.due(KEY, [SCALED], NOW)
        assert said.due(key, [note], NOW) == [note]

    def test_long_sentences(self) -> None:
        """An API server may quote a megabyte: as much is remembered as an Event can say, and no more."""
        said = Said()
        long = [Note(Reason.WRITE_DENIED, "x" * 1_000_000 + end, about=about) for end, about in WORDS]
        assert [(len(one.message), len(one.about)) for one in said.due(KEY, long, NOW)] == [
            (1024, 0),
            (1024, 1024),
        ]

    def test_memory_is_bounded(self) -> None:
        """Ten thousand sentences are remembered; the one said longest ago is forgotten first."""
        said = Said()
        notes = [Note(Reason.SCALED, str(number)) for number in range(10_001)]
        said.due(KEY, notes, NOW)
        assert said.due(KEY, [notes[1], notes[0]], NOW) == [notes[0]]


class TestEvent:
    def test_as_posted(self) -> None:
        """An Event names the source, the reason and the sentence."""
        result = event(KEY, source().uid, SCALED, NOW, "splitter-abc")
        name = result["metadata"].pop("name")
        assert name.startswith("web.")
        assert result == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": "shop"},
            "eventTime": "2026-01-05T10:00:00.000000Z",
            "reportingController": "splitter.io/splitter",
            "reportingInstance": "splitter-abc",
            "action": "Scaled",
            "reason": "Scaled",
            "note": "scale web-spot 3 -> 5",
            "type": "Normal",
            "regarding": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": "shop",
                "name": "web",
                "uid": "uid-web",
            },
        }

    def test_warning(self) -> None:
        """What a user should mend is a warning."""
        assert event(KEY, source().uid, REFUSED, NOW, "one")["type"] == "Warning"

    def test_names_differ(self) -> None:
        """Two Events of the same moment are two objects."""
        names = {event(KEY, source().uid, SCALED, NOW, "one")["metadata"]["name"] for _ in range(100)}
        assert len(names) == 100

    def test_fits(self) -> None:
        """What the API server would refuse as too long is cut."""
        key = Key("Deployment", "shop", "x" * 253)
        long = Note(Reason.SCALED, "ä" * 2000)
        result = event(key, source().uid, long, NOW, "h" * 300)
        assert len(result["note"]) == 1024
        assert len(result["metadata"]["name"]) <= 253
        assert len(result["reportingInstance"]) == 128
