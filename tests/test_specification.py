"""The specification in docs/design: citations lead to rules, and rules lead to code and to a test."""

import re
from itertools import pairwise
from pathlib import Path

from named import NAMED, ROOT, named_tests

PAGES = {
    "H": "docs/design/handover.md",
    "R": "docs/design/rebalancing.md",
    "P": "docs/design/placement.md",
    "G": "docs/design/guard.md",
    "K": "docs/design/estimator.md",
}
CITATION = re.compile(r"\b[HRPGK][1-9][0-9]?\b")
RANGE = re.compile(r"\b[HRPGK]\d+ to [HRPGK]?\d+")
RULE = re.compile(r"^(?:\*\*([A-Z]\d+)\. |\| ([A-Z]\d+) \|)", re.MULTILINE)
PAGE = re.compile(r"[\w./-]*\w\.md\b")
ADR = re.compile(r"(?:\bADRs? |\bdocs/adr/)(\d+)")
# A page that is not in the repository, by words: "Source: design, section 3".
ELSEWHERE = re.compile(r"design(?:'s|,| page|: )")


def written(*folders: str) -> list[Path]:
    """List what people read and cite in: code, manifests, templates, pages."""
    kinds = {".py", ".md", ".yaml", ".j2"}
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds)
    return sorted(path for path in paths if "adr" not in path.parts)


def rules() -> dict[str, str]:
    """Return each rule's number and text."""
    texts = {}
    for page in PAGES.values():
        text = (ROOT / page).read_text(encoding="utf-8")
        marks = [(m[1] or m[2], m.start()) for m in RULE.finditer(text)]
        for (number, start), (_, end) in pairwise([*marks, ("", len(text))]):
            assert number not in texts, f"{number} stands twice"
            texts[number] = text[start:end]
    return texts


class TestRules:
    """A rule has a number of its page, and can be found from both sides."""

    def test_stand_on_the_page_of_their_letter(self) -> None:
        """Every page has rules, all with its own letter."""
        for letter, page in PAGES.items():
            numbers = [m[1] or m[2] for m in RULE.finditer((ROOT / page).read_text(encoding="utf-8"))]
            assert numbers
            assert all(one.startswith(letter) for one in numbers), page

    def test_lead_to_code(self) -> None:
        """`grep -rn H44 splitter` finds what decides by a rule: a range does not count as a citation."""
        cited = {
            one
            for path in written("splitter")
            for one in CITATION.findall(RANGE.sub("", path.read_text(encoding="utf-8")))
        }
        assert not sorted(rules().keys() - cited)

    def test_lead_to_a_test(self) -> None:
        """Every rule names a test that proves it, also a row of the table."""
        assert not [number for number, text in rules().items() if not NAMED.search(text)]

    def test_name_tests_that_exist(self) -> None:
        """Every test and every story that a rule names is there."""
        known = {*named_tests(), *(path.name for path in (ROOT / "tests").rglob("*.golden"))}
        named = {one for text in rules().values() for one in NAMED.findall(text)}
        assert named
        assert not sorted(named - known)


class TestCitations:
    """What code and pages cite is in the repository."""

    def test_of_rules_are_resolved(self) -> None:
        """A number that is cited is a rule."""
        known = rules().keys()
        unknown = [
            (path.relative_to(ROOT).as_posix(), number)
            for path in written("splitter", "manifests", "templates", "docs")
            for number in CITATION.findall(path.read_text(encoding="utf-8"))
            if number not in known
        ]
        assert not unknown

    def test_of_pages_are_resolved(self) -> None:
        """A page or a decision that code names exists; none is cited that is not in the repository."""
        pages = ("", "docs", "docs/reference", "docs/runbooks")
        adrs = {path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")}
        missing = []
        for path in written("splitter", "manifests", "templates"):
            text = path.read_text(encoding="utf-8")
            cited = PAGE.findall(text)
            lost = [page for page in cited if not any((ROOT / base / page).exists() for base in pages)]
            lost += [f"ADR {number}" for number in ADR.findall(text) if number.zfill(4) not in adrs]
            missing += [(path.relative_to(ROOT).as_posix(), one) for one in (*lost, *ELSEWHERE.findall(text))]
        assert not missing


class TestTheTour:
    """The tour and the recipes of CONTRIBUTING lead through files that are there."""

    def test_names_files_that_exist(self) -> None:
        """Every file in a row of the tour, and every path of the package that a recipe names, exists."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        tour = re.findall(r"`([\w/]+\.py)`", text[text.index("## A tour") : text.index("## Walls")])
        recipes = re.findall(r"`(splitter/[\w/.]+|tests/[\w/]+\.py|docs/design)`", text)
        assert len(tour) > 10
        missing = [path for path in tour if not (ROOT / "splitter" / path).exists()]
        missing += [path for path in recipes if not (ROOT / path).exists()]
        assert not missing
