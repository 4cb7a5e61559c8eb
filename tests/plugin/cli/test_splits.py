"""Splits as a table."""

import pytest

from plugin.cli.one_split import SPLIT, split
from splitter.plugin.cli.splits import cells, table


class TestTheTable:
    """One line for each workload."""

    def test_shows_ready_of_wanted(self) -> None:
        """All of desired; each pool's ready of what it should hold."""
        assert table([split(), split("api", state="Steady", reason="Balanced")]).plain.splitlines() == [
            "WORKLOAD  READY  ON-DEMAND  SPOT  COVER  STATE   REASON",
            "web        7/10        4/4   3/6      3  Moving  SpotInterrupted",
            "api        7/10        4/4   3/6      3  Steady  Balanced",
        ]

    def test_names_the_namespace_where_there_are_several(self) -> None:
        """As kubectl users write it."""
        assert table([split()], namespaced=True).plain.splitlines()[1].startswith("shop/web  ")

    def test_shows_the_sentence_when_wide(self) -> None:
        """The message comes last, whole."""
        line = table([split()], wide=True, width=80).plain.splitlines()[1]
        assert line.endswith("SpotInterrupted  " + SPLIT["status"]["message"])

    @pytest.mark.parametrize("reason", ["SpotInterrupted", "RolloutInProgress", "WaitingForController"])
    def test_fits_a_small_terminal(self, reason: str) -> None:
        """80 columns hold a long name, a long state and a long reason; both ends of the name stay."""
        one = split("a-very-long-name-of-a-workload", "production", state="GivingBack", reason=reason)
        shown = table([one], namespaced=True, width=80).plain.splitlines()
        assert max(map(len, shown)) <= 80
        assert shown[1].startswith("produ")
        assert "load  " in shown[1]

    def test_does_not_shorten_what_is_piped(self) -> None:
        """Without a width every name is whole, however long."""
        assert "a" * 200 in table([split("a" * 200)]).plain

    def test_says_in_words_what_it_says_in_colour(self) -> None:
        """The state alone is coloured, and an unknown state is not."""
        coloured = table([split(state="Refused"), split(state="Novel")])
        assert [(coloured.plain[span.start : span.end].strip(), span.style) for span in coloured.spans] == [
            ("Refused", "red")
        ]

    def test_survives_a_split_without_a_report(self) -> None:
        """A Split just created has no status: dashes."""
        assert cells({"metadata": {"name": "web"}}, namespaced=False) == (
            *("web", "-/-", "-/-", "-/-"),
            *("-", "-", "-"),
        )

    def test_names_the_source_of_another_kind(self) -> None:
        """The Split of a StatefulSet has another name than its source."""
        one = split("db-sts")
        one["spec"]["source"] = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        assert cells(one, namespaced=True)[0] == "shop/statefulset/db"
