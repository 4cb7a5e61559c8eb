import json
from pathlib import Path
from typing import Any

import pytest

from release.__main__ import main
from release.errors import ReleaseError
from release.scanning import findings, judge


def affected(ecosystem: str, name: str, *events: dict[str, str]) -> dict[str, Any]:
    """Return what a record of a weakness says of one package."""
    package = {"ecosystem": ecosystem, "name": name}
    return {"package": package, "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, *events]}]}


def report(*places: dict[str, Any]) -> str:
    """Return a report about one package with one weakness, which concerns some packages."""
    package = {
        "name": "openssl",
        "os_package_name": "libssl3t64",
        "version": "3.5.1-1",
        "ecosystem": "Debian:13",
    }
    weakness = {"id": "DEBIAN-CVE-2026-1", "affected": places}
    return json.dumps({"results": [{"packages": [{"package": package, "vulnerabilities": [weakness]}]}]})


FIXED = affected("Debian:13", "openssl", {"fixed": "3.5.2-1"})
UNFIXED = affected("Debian:13", "openssl")


class TestFindings:
    @pytest.mark.parametrize(
        ("places", "fixed_in"),
        [
            ((FIXED,), ("3.5.2-1",)),
            ((affected("Debian:13", "libssl3t64", {"fixed": "3.5.2-1"}),), ("3.5.2-1",)),
            ((UNFIXED,), ()),
            # A fix in another Debian, or in another package, is none here.
            ((affected("Debian:12", "openssl", {"fixed": "3.0.1-1"}), UNFIXED), ()),
            ((affected("Debian:13", "nodejs", {"fixed": "20"}), UNFIXED), ()),
            # What the record calls by another name may be this package.
            ((affected("Debian", "openssl", {"fixed": "3.5.2-1"}),), ("3.5.2-1",)),
            ((), ()),
        ],
    )
    def test_know_whether_there_is_a_fix(
        self, places: tuple[dict[str, Any], ...], fixed_in: tuple[str, ...]
    ) -> None:
        """For the package, in its own distribution."""
        [finding] = findings(report(*places))
        assert finding.fixed_in == fixed_in

    @pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"results": [{}]}', '{"results": 1}'])
    def test_what_is_no_report_is_refused(self, text: str) -> None:
        """A scan that failed is not a scan that found nothing."""
        with pytest.raises(ReleaseError, match="no report of osv-scanner"):
            findings(text)

    @pytest.mark.parametrize(
        "text", ['{"results": []}', '{"results": null}', '{"results": [{"packages": []}]}']
    )
    def test_may_be_none(self, text: str) -> None:
        """Then nothing is known."""
        judge(findings(text))


class TestCommand:
    def test_fails_for_what_has_a_fix(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It says what, and what to do; the rest is listed."""
        file = tmp_path / "image.json"
        file.write_text(report(FIXED))
        assert main(["scan", str(file)]) == 1
        assert capsys.readouterr().err.startswith(
            "DEBIAN-CVE-2026-1 in openssl 3.5.1-1: 3.5.2-1\nThese have fixes: "
        )
        file.write_text(report(UNFIXED))
        assert main(["scan", str(file)]) == 0
        assert capsys.readouterr().out == "DEBIAN-CVE-2026-1 in openssl 3.5.1-1: no fix yet\n"

    def test_fails_without_a_report(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The scanner writes none if it finds no package."""
        assert main(["scan", str(tmp_path / "image.json")]) == 1
        assert "there is no" in capsys.readouterr().err
