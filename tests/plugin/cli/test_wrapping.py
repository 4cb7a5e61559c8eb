"""Lines that fit."""

from splitter.plugin.cli.wrapping import wrapped


class TestThePlan:
    """`splitter plan` on a terminal."""

    def test_fits_the_columns(self) -> None:
        """A sentence goes on indented, and a word that is longer stays whole, to be copied."""
        text = f"  would change {'x' * 90} and more words than one line of eighty columns could ever hold"
        lines = wrapped(text, 80, further="    ")
        assert " ".join(line.strip() for line in lines) == text.strip()
        assert [line[:4] == "    " for line in lines] == [False] + [True] * (len(lines) - 1)
        assert all(len(line) <= 80 or "x" * 90 in line for line in lines)

    def test_is_whole_where_it_is_piped(self) -> None:
        """A line of a log or of a script is one line."""
        assert wrapped("word " * 40, None) == ["word " * 40]
