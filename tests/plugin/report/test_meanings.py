"""What docs/reference/reasons.md says of each reason, and how it is read."""

import re
import subprocess
import sys

import pytest

from splitter.bundled import bundled_path
from splitter.core.reasons import Reason
from splitter.plugin.report.meanings import Meaning, meanings, read_meanings

PAGE = bundled_path("docs/reference/reasons.md").read_text(encoding="utf-8")


class TestThePage:
    """What it has to say."""

    def test_has_one_row_for_each_reason(self) -> None:
        """A reason without one is looked up in vain; one stands in one section only."""
        rows = [reason for reason, _ in read_meanings(PAGE)]
        assert sorted(rows) == sorted(Reason)

    def test_has_a_table_in_each_section(self) -> None:
        """No heading is without reasons, and no reason without a heading."""
        headings = re.findall(r"^## (.*)$", PAGE, flags=re.MULTILINE)
        assert list(dict.fromkeys(meaning.section for meaning in meanings().values())) == headings

    @pytest.mark.parametrize("reason", Reason)
    def test_says_what_a_reason_means(self, reason: Reason) -> None:
        """In a sentence, under the type of an Event or none."""
        meaning = meanings()[reason]
        assert meaning.means.endswith(".")
        assert meaning.event in {"Normal", "Warning", ""}
        assert "  " not in f"{meaning.means}{meaning.remedy}"

    @pytest.mark.parametrize("reason", [one for one in Reason if meanings()[one].event == "Warning"])
    def test_says_what_to_do_about_a_warning(self, reason: Reason) -> None:
        """A Warning means that somebody should look; this says at what."""
        assert meanings()[reason].remedy or reason is Reason.ON_DEMAND_DOOMED


class TestAnInstallationWithoutIt:
    """It is broken, and says so where the page is needed; all else goes on."""

    @pytest.mark.parametrize(
        ("words", "code", "says"),
        [
            (["--help"], 0, ""),
            (["dashboard"], 1, "splitter dashboard: docs/reference/reasons.md is missing from"),
        ],
        ids=["help", "dashboard"],
    )
    def test_ends_with_a_sentence(self, words: list[str], code: int, says: str) -> None:
        """No traceback, and none at all for who asks which verbs there are."""
        script = (
            "import sys, splitter.bundled; splitter.bundled._roots = list;"
            f" sys.argv = {['splitter', *words]!r}; from splitter.command import main; main()"
        )
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert ended.returncode == code
        assert ended.stderr.startswith(says)
        assert ended.stderr.count("\n") == (1 if says else 0)


class TestReading:
    """From Markdown to values."""

    def test_goes_by_the_columns_of_each_table(self) -> None:
        """A table may have a column more; links and code stay as they are written."""
        page = (
            "# Reasons\n\n## First\n\n| reason | type | what it means | what to do |\n|---|---|---|---|\n"
            "| `Soaking` | Normal | It [soaks](a.md). | |\n\n## Second\n\n"
            "| reason | type | moves | what it means | what to do |\n|---|---|---|---|---|\n"
            "| `NotReady` | Warning | no | It is not. | `kubectl logs` |\n"
        )
        assert dict(read_meanings(page)) == {
            Reason.SOAKING: Meaning("First", "Normal", "It [soaks](a.md).", ""),
            Reason.NOT_READY: Meaning("Second", "Warning", "It is not.", "`kubectl logs`"),
        }

    @pytest.mark.parametrize(
        "row", ["| `NoSuchReason` | Normal | It is. | |", "| `Soaking` | a | bar | too | many |"]
    )
    def test_takes_no_row_that_is_wrong(self, row: str) -> None:
        """A reason that there is not, or a cell with a bar in it."""
        header = "## A\n| reason | type | what it means | what to do |\n|---|---|---|---|\n"
        with pytest.raises(ValueError, match=r"."):
            list(read_meanings(header + row))
