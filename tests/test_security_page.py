"""The threat model in docs/security.md: a section for each actor, and tests for each row."""

import re
from collections import Counter
from collections.abc import Iterator

from named import NAMED, ROOT, named_tests
from splitter.core.limits import MAX_BUDGETS, MAX_TERMS, MAX_WRITES
from splitter.core.nodes.spot_supply import REFUSED_S
from splitter.kube.answers import MAX_ANSWER_BYTES, MAX_PAGE_BYTES
from splitter.kube.external_signals import EVENTS_KEPT
from splitter.kube.held_up import MOST
from splitter.kube.shares import SHARE_BYTES
from splitter.reconciler.others import RESERVED_S, TURN_S
from splitter.report.serving import Limits
from splitter.settings import Settings

TEXT = (ROOT / "docs/security.md").read_text(encoding="utf-8")
HEAD = "| it may try | what holds it | test |"
NOT_HELD = "**Not held"
FILE = re.compile(r"`((?:tests|lab)/[\w/]+\.py)`")
NONE = re.compile(r"none: \w.*")


def tables(text: str) -> Iterator[list[list[str]]]:
    """Yield the cells of each table, its head and the line below it left out."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = block.splitlines()
        if head == HEAD:
            yield [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def sections() -> dict[str, str]:
    """Return the text of each section of the second level by its title."""
    titles, texts = (
        re.findall(r"^## (.*)$", TEXT, re.MULTILINE),
        re.split(r"^## .*$", TEXT, flags=re.MULTILINE),
    )
    return dict(zip(titles, texts[1:], strict=True))


def rows() -> list[list[str]]:
    """Return the cells of every row."""
    return [row for table in tables(TEXT) for row in table]


class TestActors:
    def test_have_a_section_each(self) -> None:
        """The table at the beginning links to them, in their order; every section is about one."""
        actors = re.findall(r"^\| \[(.*)\]\(#(.*)\) \|", TEXT, re.MULTILINE)
        assert [name for name, _ in actors] == list(sections())
        assert all(anchor == name.lower().replace(" ", "-") for name, anchor in actors)

    def test_are_held_by_something_and_not_by_all(self) -> None:
        """Each section has a table, whose last rows are what nothing holds."""
        for name, text in sections().items():
            lacks = [row[1].startswith(NOT_HELD) for table in tables(text) for row in table]
            assert lacks == sorted(lacks), name
            assert set(lacks) == {False, True}, name


class TestRows:
    def test_name_their_tests_or_say_why_there_is_none(self) -> None:
        """The last cell has nothing but names of tests, or `none` with the reason."""
        assert len(rows()) > 50
        wrong = [
            row for row in rows() if len(row) != 3 or not (_only_tests(row[2]) or NONE.fullmatch(row[2]))
        ]
        assert not wrong

    def test_name_tests_that_exist(self) -> None:
        """Also those in the sentences between the tables; none is ambiguous."""
        known = Counter(named_tests())
        assert not [name for name in set(NAMED.findall(TEXT)) if known[name] != 1]
        assert not [path for path in FILE.findall(TEXT) if not (ROOT / path).exists()]

    def test_have_the_figures_of_the_code(self) -> None:
        """What a page says in numbers changes with the constants."""
        served, settings = Limits(), Settings()
        figures = (
            f"writes {MAX_WRITES} times at most",
            f"more than {MAX_TERMS} terms",
            f"more than {MAX_BUDGETS:,} budgets",
            f"({settings.workers}, and {settings.emergency_workers} for emergencies)",
            f"loses it after {TURN_S / 60:.0f} minutes",
            f"Up to {MOST} workloads can be left alone",
            f"reserves room for {RESERVED_S:.0f} s",
            f"counts for {REFUSED_S:.0f} s",
            f"{EVENTS_KEPT:,} of each kind",
            f"{MAX_PAGE_BYTES >> 20} MiB at most, a single object {MAX_ANSWER_BYTES >> 20} MiB",
            f"a share of {SHARE_BYTES >> 20} MiB",
            f"{served.connections} connections each",
            f"{served.head_s:.0f} s to ask and {served.whole_s:.0f} s to read",
        )
        assert not [one for one in figures if one not in TEXT]


def _only_tests(cell: str) -> bool:
    return all(NAMED.fullmatch(part) or FILE.fullmatch(part) for part in cell.split(", "))
