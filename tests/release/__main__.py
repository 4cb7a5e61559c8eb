"""`make release` and `make dist`: a version is committed, tagged and built; nothing is pushed.

`tag`, `scan` and `notes` are for workflows: does a tag say what the tree says, has the image known weaknesses
that have a fix, and what changed in a version.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from release import changelog, cutting, scanning, versions
from release.artifacts import IMAGE
from release.errors import ReleaseError
from release.repository import Repository


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for in the repository of the present folder and return the exit code."""
    chosen = _parser().parse_args(arguments)
    repository = Repository(Path.cwd())
    try:
        _obey(repository, chosen)
    except ReleaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _obey(repository: Repository, chosen: argparse.Namespace) -> None:
    match chosen.what:
        case "cut":
            today = datetime.now(UTC).date()
            cutting.cut(repository, chosen.version, today=today, image=chosen.image, say=_say)
        case "build":
            cutting.rebuild(repository, chosen.commit, image=chosen.image, say=_say)
        case "tag":
            if chosen.name != (tag := versions.current(repository.root).tag):
                raise ReleaseError(
                    f"The tag is {chosen.name}, and this tree is {tag}: tag the commit of the release."
                )
        case "scan":
            if not chosen.report.exists():
                raise ReleaseError(
                    f"there is no {chosen.report}: the scanner has failed, or found no package."
                )
            weaknesses = scanning.findings(chosen.report.read_text(encoding="utf-8"))
            for finding in weaknesses:
                if not finding.fixed_in:
                    _say(str(finding))
            scanning.judge(weaknesses)
        case _:
            text = (repository.root / changelog.FILE).read_text(encoding="utf-8")
            _say(changelog.section(text, str(versions.current(repository.root))))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="release", description="Releases of splitter.", allow_abbrev=False)
    what = parser.add_subparsers(dest="what", required=True)
    cut = what.add_parser("cut", help="commit, tag and build a version")
    cut.add_argument("version", help="three numbers, such as 0.2.0")
    build = what.add_parser("build", help="build the artifacts of a commit into dist/")
    build.add_argument("--commit", default="HEAD", help="the commit or tag (HEAD)")
    for command in (cut, build):
        command.add_argument(
            "--image", default=IMAGE, help="where the image will be pulled from, without a tag"
        )
    tag = what.add_parser("tag", help="fail unless a tag is that of this tree's version")
    tag.add_argument("name")
    scan = what.add_parser("scan", help="fail for known weaknesses of the image that have a fix")
    scan.add_argument("report", type=Path, help="what osv-scanner has written, in JSON")
    what.add_parser("notes", help="print what the change log says of this tree's version")
    return parser


if __name__ == "__main__":
    sys.exit(main())
