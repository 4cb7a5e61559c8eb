"""How a verb ends where a person can mend something."""

from pathlib import Path

import pytest

from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.exits import Exit, MendableError, failures_as_sentences, faults_as_sentences


class TestFaultsAsSentences:
    """One sentence on standard error, and the code for it."""

    def test_a_file_that_is_not_there(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It is named."""
        file = tmp_path / "prices.yaml"
        with pytest.raises(SystemExit) as ended, faults_as_sentences("savings"):
            file.read_text()
        assert ended.value.code == Exit.MENDABLE
        assert capsys.readouterr().err == f"splitter savings: {file}: No such file or directory\n"

    @pytest.mark.parametrize("fault", [ValueError("no price"), OSError("no price")])
    def test_a_fault_without_a_file(self, fault: Exception, capsys: pytest.CaptureFixture[str]) -> None:
        """Its own words are the sentence."""
        with pytest.raises(SystemExit) as ended, faults_as_sentences("savings"):
            raise fault
        assert ended.value.code == Exit.MENDABLE
        assert capsys.readouterr().err == "splitter savings: no price\n"

    def test_a_fault_of_ours(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It is no sentence: its traceback is needed."""
        with pytest.raises(RuntimeError, match="a bug"), faults_as_sentences("savings"):
            raise RuntimeError("a bug")
        assert not capsys.readouterr().err


class TestFailuresAsSentences:
    """What a person can mend ends the process without a traceback."""

    @pytest.mark.parametrize(
        ("failure", "sentence"),
        [
            (MendableError("name one"), "splitter: name one\n"),
            (SplitterError(Reason.FORBIDDEN, "ask\x1b[2J"), "splitter: Forbidden: ask\\x1b[2J\n"),
        ],
    )
    def test_what_can_be_mended(
        self, failure: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Nothing in the sentence moves a cursor."""
        with pytest.raises(SystemExit) as ended, failures_as_sentences():
            raise failure
        assert ended.value.code == Exit.MENDABLE
        assert capsys.readouterr().err == sentence

    def test_a_bug(self) -> None:
        """It keeps its traceback."""
        with pytest.raises(ZeroDivisionError), failures_as_sentences():
            raise ZeroDivisionError
