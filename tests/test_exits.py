"""How a verb ends where a person can mend something."""

from pathlib import Path

import pytest
import typer

from splitter.exits import Exit, faults_as_sentences


class TestFaultsAsSentences:
    """One sentence on standard error, and the code for it."""

    def test_a_file_that_is_not_there(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It is named."""
        file = tmp_path / "prices.yaml"
        with pytest.raises(typer.Exit) as ended, faults_as_sentences("savings"):
            file.read_text()
        assert ended.value.exit_code == Exit.MENDABLE
        assert capsys.readouterr().err == f"splitter savings: {file}: No such file or directory\n"

    @pytest.mark.parametrize("fault", [ValueError("no price"), OSError("no price")])
    def test_a_fault_without_a_file(self, fault: Exception, capsys: pytest.CaptureFixture[str]) -> None:
        """Its own words are the sentence."""
        with pytest.raises(typer.Exit) as ended, faults_as_sentences("savings"):
            raise fault
        assert ended.value.exit_code == Exit.MENDABLE
        assert capsys.readouterr().err == "splitter savings: no price\n"

    def test_a_fault_of_ours(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It is no sentence: its traceback is needed."""
        with pytest.raises(RuntimeError, match="a bug"), faults_as_sentences("savings"):
            raise RuntimeError("a bug")
        assert not capsys.readouterr().err
