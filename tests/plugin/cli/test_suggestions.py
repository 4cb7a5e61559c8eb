"""Suggestions as a table."""

from splitter.core.model import Mode, Note
from splitter.core.names import Key
from splitter.core.reasons import Reason
from splitter.plugin.cli.suggestions import Suggestion, Suggestions, as_lines
from splitter.plugin.core.suggestion import Proposal
from splitter.plugin.simulate.estimate import Estimate


class TestTheTable:
    """What fits a terminal."""

    def test_wraps_sentences_and_no_command(self) -> None:
        """A command is copied whole."""
        key = Key("Deployment", "shop", "w" * 60)
        one = Proposal(key, Mode.TWINS, 4, 0, 0, None, why="word " * 40, annotations={"a": "b" * 90})
        lines = list(as_lines(Suggestions((Suggestion(one, Estimate(0.5, 0)),)), namespaced=False, width=80))
        long = [line for line in lines if len(line) > 80]
        assert long == [f"    {command}" for command in one.commands]
        assert lines[1].startswith("www")
        assert "..." in lines[1]

    def test_orders_by_saving(self) -> None:
        """Of the same share the larger workload first, and the refused last."""
        note = Note(Reason.STRATEGY_RECREATE, "no", warning=True)

        def one(name: str, cpu_m: int, saving: float | None) -> Suggestion:
            made = Proposal(Key("Deployment", "shop", name), Mode.TWINS, 4, cpu_m, 0, None, refusal=note)
            return Suggestion(made, Estimate(saving, 0) if saving is not None else None)

        collected = [one("d", 9000, None), one("c", 9000, 0.2), one("b", 500, 0.69), one("a", 800, 0.69)]
        assert [each.proposal.key.name for each in sorted(collected, key=Suggestion.order)] == [
            "a",
            "b",
            "c",
            "d",
        ]
