"""What a scan of the image has found (osv-scanner's JSON): a weakness that has a fix stops a release.

One without a fix is only listed: the base is a Debian, which always has some of these.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from release.errors import ReleaseError

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A known weakness of one package. `fixed_in`: versions, empty if there is no fix."""

    package: str
    name: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.name} in {self.package}: {', '.join(self.fixed_in) or 'no fix yet'}"


def findings(report: str) -> list[Finding]:
    """Return what a report says. Raises ReleaseError if it is none: the scanner leaves none if it fails."""
    try:
        results = json.loads(report)["results"] or ()
        return [one for result in results for package in result["packages"] for one in _of(package)]
    except (ValueError, KeyError, TypeError) as error:
        raise ReleaseError(
            f"This is no report of osv-scanner: {error!r}. Look at the scanner's step."
        ) from error


def judge(weaknesses: list[Finding]) -> None:
    """Raise ReleaseError if there is a fix for any of them."""
    if fixable := [str(finding) for finding in weaknesses if finding.fixed_in]:
        raise ReleaseError(
            "\n".join(
                (
                    *fixable,
                    "These have fixes: upgrade the locks (make lock ALL=1) or the base (.ci/base --newest).",
                )
            )
        )


def _of(package: Json) -> Iterator[Finding]:
    what = package["package"]
    names = {what["name"], what.get("os_package_name")}
    for weakness in package.get("vulnerabilities", ()):
        places = weakness.get("affected", ())
        own = [one for one in places if _is(one.get("package", {}), names, what["ecosystem"])]
        fixed = {
            event["fixed"]
            for place in own or places
            for some in place.get("ranges", ())
            for event in some.get("events", ())
            if "fixed" in event
        }
        yield Finding(f"{what['name']} {what['version']}", weakness["id"], tuple(sorted(fixed)))


def _is(package: Json, names: set[str | None], ecosystem: str) -> bool:
    return package.get("ecosystem") == ecosystem and package.get("name") in names
