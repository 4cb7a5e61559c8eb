import json
import re
from typing import Any

import pytest

from release import sbom
from release.scratch import ROOT
from release.versions import Version

FIRST = Version(0, 2, 0)
EPOCH = 1_769_860_800  # 2026-01-31T12:00:00Z
A, B, C = "a" * 64, "b" * 64, "c" * 64
RUNTIME = f"""\
one-thing==1.0 \\
    --hash=sha256:{B} \\
    --hash=sha256:{A}
other==2.0.post1 ; sys_platform != 'win32' \\
    --hash=sha256:{C}
"""
TESTED = f"""\
extra==9 \\
    --hash=sha256:{C}
    # via splitter (pyproject.toml:dev)
one-thing==1.0 \\
    --hash=sha256:{B} \\
    --hash=sha256:{A}
    # via
    #   splitter (pyproject.toml)
    #   extra
other==2.0.post1 ; sys_platform != 'win32' \\
    --hash=sha256:{C}
    # via one-thing
"""


def made(version: Version = FIRST) -> dict[str, Any]:
    """Return the document of two packages."""
    content: dict[str, Any] = json.loads(sbom.document(version, runtime=RUNTIME, tested=TESTED, epoch=EPOCH))
    return content


class TestDocument:
    def test_lists_what_is_locked(self) -> None:
        """Each package with its version, package URL and the digests of its files; nothing of the tests."""
        one, other = made()["components"]
        assert one == {
            "type": "library",
            "bom-ref": "pkg:pypi/one-thing@1.0",
            "name": "one-thing",
            "version": "1.0",
            "purl": "pkg:pypi/one-thing@1.0",
            "hashes": [{"alg": "SHA-256", "content": A}, {"alg": "SHA-256", "content": B}],
        }
        assert other["properties"] == [{"name": "splitter:marker", "value": "sys_platform != 'win32'"}]

    def test_says_who_needs_whom(self) -> None:
        """Splitter needs what pyproject.toml names, and that needs the rest."""
        assert made()["dependencies"] == [
            {"ref": "pkg:generic/splitter@0.2.0", "dependsOn": ["pkg:pypi/one-thing@1.0"]},
            {"ref": "pkg:pypi/one-thing@1.0", "dependsOn": ["pkg:pypi/other@2.0.post1"]},
            {"ref": "pkg:pypi/other@2.0.post1"},
        ]

    def test_has_the_time_of_the_commit_and_a_name_of_its_own(self) -> None:
        """The same content has the same serial number, and another content another one."""
        assert made()["metadata"]["timestamp"] == "2026-01-31T12:00:00Z"
        assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made()["serialNumber"])
        assert made() == made()
        assert made()["serialNumber"] != made(Version(0, 2, 1))["serialNumber"]

    def test_refuses_a_lock_it_cannot_read(self) -> None:
        """A package is not left out because its line looks new."""
        with pytest.raises(ValueError, match="not a pin of a lock file: one==1 and more"):
            sbom.pins("one==1 and more\n")


class TestLocks:
    """The document of this repository's own locks."""

    def test_is_whole(self) -> None:
        """Every pin and every digest of the runtime lock is there, and each is needed by somebody."""
        runtime = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        tested = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
        text = sbom.document(Version(0, 2, 0), runtime=runtime, tested=tested, epoch=EPOCH)
        content = json.loads(text)
        assert len(content["components"]) == len(re.findall(r"^\S+==", runtime, re.MULTILINE)) > 20
        assert sum(len(one["hashes"]) for one in content["components"]) == runtime.count("--hash=sha256:")
        needed = {ref for one in content["dependencies"] for ref in one.get("dependsOn", ())}
        assert needed == {one["bom-ref"] for one in content["components"]}
        assert re.findall(r"\w+://[^\"]*", text) == ["http://cyclonedx.org/schema/bom-1.6.schema.json"]
