"""Finds the files that travel with splitter: `templates/`, `manifests/`, `examples/`, a page.

Called by `render` (template sets), by the command line (the demo applies manifests and the example
application), and by `plugin.report.meanings` (the page of reasons). In a checkout these are the folders
beside the package, so that an edit counts at once; in an installed wheel they are package data
(`splitter/_bundled`, see pyproject.toml). It reads nothing and never writes.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent
PACKAGE_DATA = PACKAGE / "_bundled"
FOLDERS = ("templates", "manifests", "examples", "docs/reference/reasons.md")


def bundled_path(relative: str) -> Path:
    """Return the path of a bundled file or folder, the checkout's own before the installed copy.

    Raises `ValueError` for a path outside the bundled folders, `FileNotFoundError` for one that is
    not there.

    >>> bundled_path("manifests/crd.yaml").name
    'crd.yaml'
    """
    path = Path(relative)
    if not any(map(path.is_relative_to, FOLDERS)) or ".." in path.parts:
        raise ValueError(
            f"{relative!r} is not a bundled path; it must start with one of {', '.join(FOLDERS)}"
        )
    places = [root / relative for root in _roots()]
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(
        f"{relative} is missing from this installation of splitter; looked for "
        f"{' and '.join(str(place) for place in places)}. Install splitter again, or run it from a checkout",
    )


def _roots() -> list[Path]:
    """List where bundled folders may lie; the checkout only if it is splitter's own."""
    in_checkout = (CHECKOUT / "pyproject.toml").is_file()
    return [CHECKOUT, PACKAGE_DATA] if in_checkout else [PACKAGE_DATA]
